//! Errors of the command line itself: what clap rejects becomes one line and a hint.
//!
//! Decides nothing about a good command line; `args` reads those.

use std::error::Error;
use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use outlast_client::problem::Problem;

use crate::args::{self, suggest};
use crate::output;
use crate::output::errors::{self, Errors};
use crate::output::page::shell_words;

/// Prints help, or what is wrong with the arguments.
pub(crate) fn explain(usage: &clap::Error, typed: &[OsString]) -> u8 {
    let is_alone = typed.len() < 2;
    if is_alone && usage.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // `outlast` alone asks for nothing else, so a pipe gets the help as from `--help`.
        drop(output::print(&usage.to_string()));
        return 0;
    }
    let is_help = !usage.use_stderr();
    let asks_for_json = typed.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
    if is_help || usage.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Without standard output there is no reader to tell.
        drop(usage.print());
    } else {
        let errors = if asks_for_json { Errors::Json } else { Errors::ForPeople };
        errors::report(&as_problem(usage, typed), errors);
    }
    if is_help { 0 } else { outlast_client::problem::REFUSED }
}

/// What is wrong, in one line, and a line to paste or where to read on.
fn as_problem(usage: &clap::Error, typed: &[OsString]) -> Problem {
    let typed = Typed::new(typed);
    let (message, hint) = match usage.kind() {
        ErrorKind::InvalidSubcommand => unknown_verb(usage, &typed),
        ErrorKind::UnknownArgument => unknown_argument(usage, &typed),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            (invalid_value(usage, &typed), None)
        }
        ErrorKind::MissingRequiredArgument => (missing(usage, &typed), None),
        ErrorKind::ArgumentConflict => conflict(usage, &typed),
        _ => (flattened(&usage.to_string()), None),
    };
    let hint = hint.unwrap_or_else(|| format!("{} --help", typed.verb));
    Problem::refusal("usage", message).hint(hint)
}

/// The arguments, and the verb that they name: `outlast daemon run`.
struct Typed {
    program: clap::Command,
    words: Vec<String>,
    verb: String,
}

impl Typed {
    fn new(typed: &[OsString]) -> Self {
        let words: Vec<String> =
            typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let program = args::whole();
        let (mut at, mut verb) = (&program, "outlast".to_owned());
        for word in words.iter().skip(1) {
            let Some(next) = at.find_subcommand(word) else { break };
            at = next;
            verb = format!("{verb} {}", next.get_name());
        }
        Self { program, words, verb }
    }

    /// How an option was typed that clap calls by its long name: `-f` for `--file <LOOP>`.
    fn spelling(&self, option: &str) -> String {
        let long = option.split(' ').next().unwrap_or(option);
        let typed = |word: &str| self.options().any(|it| it == word);
        let mut args = self.command().get_arguments();
        let arg = args.find(|arg| arg.get_long().is_some_and(|it| long == format!("--{it}")));
        match arg.and_then(clap::Arg::get_short).map(|short| format!("-{short}")) {
            Some(short) if !typed(long) && self.options().any(|it| has_letter(it, &short[1..])) => {
                short
            }
            _ => long.to_owned(),
        }
    }

    /// The options, without what is behind `--`.
    fn options(&self) -> impl Iterator<Item = &str> {
        self.words.iter().map(String::as_str).take_while(|word| *word != "--")
    }

    /// The line without `-i`. A loop that has no task yet gets the input as its task.
    fn without_stdin(&self) -> Option<String> {
        let at = self.options().position(|it| it == "--stdin" || has_letter(it, "i"))?;
        // One letter of several, as in `-di`.
        let rest = Some(self.words[at].replace('i', "")).filter(|it| has_letter(it, ""));
        let (before, after) = (self.words.get(1..at)?.iter().cloned(), &self.words[at + 1..]);
        let words: Vec<String> = before.chain(rest).chain(after.iter().cloned()).collect();
        let line = format!("outlast {}", shell_words(&words));
        let is = |names: &[&str]| {
            self.options().any(|it| {
                names.iter().any(|name| it == *name || it.starts_with(&format!("{name}=")))
            })
        };
        let is_loop = is(&["-f", "--file"]) && !is(&["--task"]);
        Some(if is_loop { format!(r#"{line} --task "$(cat)""#) } else { line })
    }

    /// The verb that the arguments are for.
    fn command(&self) -> &clap::Command {
        let above = self.verb.split(' ').skip(1);
        above.fold(&self.program, |at, verb| at.find_subcommand(verb).unwrap_or(at))
    }

    /// The line with something else in the place of a word.
    fn with(&self, word: &str, instead: &[&str]) -> Option<String> {
        let at = self.words.iter().skip(1).position(|typed| typed == word)? + 1;
        let instead = instead.iter().map(|word| (*word).to_owned());
        let words = self.words[1..at].iter().cloned().chain(instead);
        let words: Vec<String> = words.chain(self.words[at + 1..].iter().cloned()).collect();
        Some(format!("outlast {}", shell_words(&words)))
    }
}

/// True of short options in one word, this letter among them: `-di`.
fn has_letter(word: &str, letter: &str) -> bool {
    word.strip_prefix('-').is_some_and(|letters| {
        let is_short = |it: char| it.is_ascii_alphabetic();
        !letters.is_empty() && letters.chars().all(is_short) && letters.contains(letter)
    })
}

fn unknown_verb(usage: &clap::Error, typed: &Typed) -> (String, Option<String>) {
    let word = text(usage, ContextKind::InvalidSubcommand);
    let command = typed.command();
    let by_meaning = || match typed.verb.as_str() {
        "outlast" => suggest::by_meaning(&typed.program, &word).map(str::to_owned),
        // To change one is to give all of it anew.
        "outlast schedule" if is_change(&word) => {
            Some("outlast schedule add NAME --replace --every 1h -- COMMAND".to_owned())
        }
        "outlast trigger" if is_change(&word) => {
            Some("outlast trigger add NAME --replace --webhook -- COMMAND".to_owned())
        }
        _ => None,
    };
    let by_letters = || typed.with(&word, &[suggest::by_letters(command, &word)?]);
    let hint = by_meaning().or_else(by_letters).map(|line| match line.as_str() {
        // Before that, a restart would start the same program again.
        "outlast daemon restart" => format!("install the new version first, then:\n{line}"),
        _ => format!("did you mean:\n{line}"),
    });
    (format!("unknown command '{word}'"), hint)
}

fn is_change(word: &str) -> bool {
    ["edit", "change", "update", "set", "replace"].contains(&word)
}

fn unknown_argument(usage: &clap::Error, typed: &Typed) -> (String, Option<String>) {
    let word = text(usage, ContextKind::InvalidArg);
    if let Some(message) = negative_value(&word, typed) {
        return (message, None);
    }
    if word.starts_with('-') {
        // Ours first: clap goes by letters alone, and finds `--retry` for `--turns`.
        let ours = suggest::option(typed.command(), &word);
        let similar = Some(text(usage, ContextKind::SuggestedArg)).filter(|it| !it.is_empty());
        let hint = ours.or(similar).map(|option| format!("did you mean {option}"));
        return (format!("unknown option '{word}'"), hint);
    }
    let is_command = ["outlast schedule add", "outlast trigger add"].contains(&typed.verb.as_str());
    let separated = if is_command { typed.with(&word, &["--", &word]) } else { None };
    let hint = separated.map(|line| format!("put the command after --:\n{line}"));
    (format!("unexpected argument '{word}'"), hint)
}

/// A value that begins with a minus looks like an option: `--delay -5m`.
fn negative_value(word: &str, typed: &Typed) -> Option<String> {
    let is_number = |it: &str| {
        it.strip_prefix('-').is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_it = |it: &&str| is_number(it) && it.starts_with(word);
    let at = typed.options().position(|it| is_it(&it))?;
    let (value, option) = (&typed.words[at], typed.words.get(at.checked_sub(1)?)?);
    let is_named = |arg: &&clap::Arg| {
        arg.get_long().is_some_and(|it| *option == format!("--{it}"))
            || arg.get_short().is_some_and(|it| *option == format!("-{it}"))
    };
    let arg = typed.command().get_arguments().find(is_named)?;
    arg.get_action()
        .takes_values()
        .then(|| format!("invalid value '{value}' for {arg}: must be more than 0"))
}

/// `-i cannot be used with -f`, in the letters that were typed.
fn conflict(usage: &clap::Error, typed: &Typed) -> (String, Option<String>) {
    let others = match usage.get(ContextKind::PriorArg) {
        Some(ContextValue::String(other)) => vec![other.as_str()],
        Some(ContextValue::Strings(others)) => others.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    };
    let one = text(usage, ContextKind::InvalidArg);
    if one.is_empty() || others.is_empty() {
        return (flattened(&usage.to_string()), None);
    }
    let (one, is_same) = (typed.spelling(&one), others.contains(&one.as_str()));
    if is_same {
        return (format!("{one} cannot be given twice"), None);
    }
    let others: Vec<String> = others.into_iter().map(|other| typed.spelling(other)).collect();
    let mut named = std::iter::once(&one).chain(&others);
    let reads_stdin = named.any(|it| ["-i", "--stdin"].contains(&it.as_str()));
    let hint = if reads_stdin { typed.without_stdin() } else { None };
    (format!("{one} cannot be used with {}", others.join(", ")), hint)
}

/// `outlast stop needs <RUN>...`
fn missing(usage: &clap::Error, typed: &Typed) -> String {
    match usage.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(args)) if !args.is_empty() => {
            // What needs them is one of these options; without them the verb needs none of this.
            let by = ["--tries", "--lost"].into_iter().find(|by| {
                typed.options().any(|it| it == *by || it.starts_with(&format!("{by}=")))
            });
            match by {
                Some(by) => format!("{by} needs {}", args.join(" and ")),
                None => format!("{} needs {}", typed.verb, args.join(" ")),
            }
        }
        _ => flattened(&usage.to_string()),
    }
}

/// `invalid value '-1' for --max-turns <N>: must be 1 or more`
fn invalid_value(usage: &clap::Error, typed: &Typed) -> String {
    let (arg, value) =
        (text(usage, ContextKind::InvalidArg), text(usage, ContextKind::InvalidValue));
    let why = match (usage.get(ContextKind::ValidValue), usage.source()) {
        (Some(ContextValue::Strings(valid)), _) if !valid.is_empty() => {
            format!("use {}", valid.join(", "))
        }
        (_, Some(source)) => {
            let why = number_words(&value, &source.to_string());
            least_words(&value, typed).filter(|_| why == ANY_NUMBER).unwrap_or(why)
        }
        _ => return flattened(&usage.to_string()),
    };
    match value.is_empty() {
        true => format!("{arg} needs a value: {why}"),
        false => format!("invalid value '{value}' for {arg}: {why}"),
    }
}

/// What a parser that cannot read a negative number is said to want.
const ANY_NUMBER: &str = "must be 0 or more";

/// What is said of 0 in the place of a negative number: a parser without a sign does not get as far as its least value.
fn least_words(value: &str, typed: &Typed) -> Option<String> {
    let at = typed.options().position(|it| it == value)?;
    let mut words: Vec<OsString> = typed.words.iter().map(OsString::from).collect();
    words[at] = "0".into();
    let usage = args::read(&words).err()?;
    let is_of_zero = text(&usage, ContextKind::InvalidValue) == "0";
    let said = usage.source().filter(|_| is_of_zero)?.to_string();
    Some(number_words("0", &said))
}

/// What the parsers of numbers say, in words for people.
fn number_words(value: &str, said: &str) -> String {
    let range = said.split_once(" is not in ").and_then(|(value, range)| {
        let (least, most) = range.split_once("..")?;
        let most = most.trim_start_matches('=').to_owned();
        Some((value.parse::<i128>().ok()?, least.parse::<i128>().ok()?, most))
    });
    match range {
        Some((value, least, _)) if value < least => format!("must be {least} or more"),
        Some((_, _, most)) => format!("must be {most} or less"),
        None if said.contains("invalid digit") && value.parse::<i128>().is_ok() => {
            ANY_NUMBER.to_owned()
        }
        None if said.contains("invalid digit") || said.contains("from empty string") => {
            "not a whole number".to_owned()
        }
        None if said.contains("too large to fit") => "the number is too large".to_owned(),
        None => said.to_owned(),
    }
}

/// The first line, with the names of what is missing on the same line.
fn flattened(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let named: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    match named.as_slice() {
        [] => first.to_owned(),
        named => format!("{first} {}", named.join(" ")),
    }
}

fn text(usage: &clap::Error, kind: ContextKind) -> String {
    match usage.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        let typed: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let usage = args::read(&typed).expect_err("a bad command line");
        let Problem::Told { info, .. } = as_problem(&usage, &typed) else { panic!("it is told") };
        format!("{} / {}", info.message, info.hint.unwrap_or_default().replace('\n', " "))
    }

    #[test]
    fn what_is_wrong_is_one_line_and_a_hint() {
        insta::assert_snapshot!(said("outlast stop"), @"outlast stop needs <RUN>... / outlast stop --help");
        insta::assert_snapshot!(said("outlast shwo x"), @"unknown command 'shwo' / did you mean: outlast show x");
        insta::assert_snapshot!(said("outlast daemon stauts --json"), @"unknown command 'stauts' / did you mean: outlast daemon status --json");
        insta::assert_snapshot!(said("outlast ps --nope"), @"unknown option '--nope' / outlast ps --help");
        insta::assert_snapshot!(said("outlast ps --stat failed"), @"unknown option '--stat' / did you mean --state");
        insta::assert_snapshot!(said("outlast run --nope make"), @"unknown option '--nope' / outlast run --help");
        insta::assert_snapshot!(said("outlast schedule add n --every 5m make check"), @"unexpected argument 'make' / put the command after --: outlast schedule add n --every 5m -- make check");
    }

    #[test]
    fn a_bad_value_points_to_the_help_of_its_own_verb() {
        insta::assert_snapshot!(said("outlast wait --timeout 5x a"), @"invalid value '5x' for --timeout <DURATION>: not a duration; write 90s, 5m, 2h, 1h30m or 500ms / outlast wait --help");
        insta::assert_snapshot!(said("outlast run --name"), @"a value is required for '--name <NAME>' but none was supplied / outlast run --help");
    }

    #[test]
    fn options_that_exclude_each_other_are_named_as_they_were_typed() {
        insta::assert_snapshot!(said("outlast run -i -f WORKFLOW.md"), @r#"-i cannot be used with -f / outlast run -f WORKFLOW.md --task "$(cat)""#);
        insta::assert_snapshot!(said("outlast run --stdin --file=WORKFLOW.md --task x"), @"--stdin cannot be used with --file / outlast run --file=WORKFLOW.md --task x");
        insta::assert_snapshot!(said("outlast run -di -f WORKFLOW.md"), @r#"-i cannot be used with -f / outlast run -d -f WORKFLOW.md --task "$(cat)""#);
        insta::assert_snapshot!(said("outlast run -t -i -- cat -i"), @"-t cannot be used with -i / outlast run -t -- cat -i");
        insta::assert_snapshot!(said("outlast run --at 03:00 --delay 5m -- make"), @"--at cannot be used with --delay / outlast run --help");
    }

    #[test]
    fn a_bad_number_is_told_in_words_for_people() {
        insta::assert_snapshot!(said("outlast run --max-turns -1 true"), @"invalid value '-1' for --max-turns <N>: must be 1 or more / outlast run --help");
        insta::assert_snapshot!(said("outlast run --max-turns 99999999999 true"), @"invalid value '99999999999' for --max-turns <N>: must be 4294967295 or less / outlast run --help");
        insta::assert_snapshot!(said("outlast run --retry many true"), @"invalid value 'many' for --retry <N>: not a whole number / outlast run --help");
        insta::assert_snapshot!(said("outlast run --retry -1 true"), @"invalid value '-1' for --retry <N>: must be 0 or more / outlast run --help");
        insta::assert_snapshot!(said("outlast run --max-cost -1 true"), @"invalid value '-1' for --max-cost <USD>: not an amount of money; write dollars such as 5, 0.50 or 0.000001 / outlast run --help");
        insta::assert_snapshot!(said("outlast logs --tail -5 x"), @"invalid value '-5' for --tail <LINES>: must be 0 or more / outlast logs --help");
    }

    #[test]
    fn a_least_value_is_named_and_a_negative_value_is_no_option() {
        insta::assert_snapshot!(said("outlast ps -n 0"), @"invalid value '0' for --last <N>: must be 1 or more / outlast ps --help");
        insta::assert_snapshot!(said("outlast ps -n -1"), @"invalid value '-1' for --last <N>: must be 1 or more / outlast ps --help");
        insta::assert_snapshot!(said("outlast run --delay 0s true"), @"invalid value '0s' for --delay <DURATION>: a delay is more than 0; without it, the run starts now / outlast run --help");
        insta::assert_snapshot!(said("outlast run --delay -5m true"), @"invalid value '-5m' for --delay <DURATION>: must be more than 0 / outlast run --help");
        insta::assert_snapshot!(said("outlast raise x --max-turns -1"), @"invalid value '-1' for --max-turns <N|+N>: must be more than 0 / outlast raise --help");
        insta::assert_snapshot!(said("outlast run --tries 3 true"), @"--tries needs --parent <RUN> and --key <KEY> / outlast run --help");
        insta::assert_snapshot!(said("outlast ps -5"), @"unknown option '-5' / outlast ps --help");
    }

    #[test]
    fn a_verb_of_another_tool_is_suggested_by_meaning_and_not_by_letters() {
        insta::assert_snapshot!(said("outlast history"), @"unknown command 'history' / did you mean: outlast events @last");
        insta::assert_snapshot!(said("outlast upgrade"), @"unknown command 'upgrade' / install the new version first, then: outlast daemon restart");
        insta::assert_snapshot!(said("outlast prune"), @"unknown command 'prune' / did you mean: outlast gc");
        insta::assert_snapshot!(said("outlast frobnicate"), @"unknown command 'frobnicate' / outlast --help");
        insta::assert_snapshot!(said("outlast completions tcsh"), @"invalid value 'tcsh' for <SHELL>: use bash, elvish, fish, powershell, zsh / outlast completions --help");
    }
}
