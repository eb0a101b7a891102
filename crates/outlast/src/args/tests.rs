//! The command line as a whole: what parses, and what the help pages look like.

use super::*;

#[test]
fn the_command_line_is_sound() {
    whole().debug_assert();
}

#[test]
fn every_verb_has_examples() {
    for verb in whole().get_subcommands() {
        let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains("Examples:") || verb.has_subcommands(), "{}", verb.get_name());
    }
}

#[test]
fn a_command_keeps_its_own_options() {
    let cli = Cli::try_parse_from(["outlast", "run", "-d", "--", "sh", "-c", "exit 1", "--json"]);
    let Command::Run(now) = cli.expect("a good command line").command else { panic!("run") };
    let run = &now.run;
    assert_eq!(run.command, ["sh", "-c", "exit 1", "--json"]);
    assert!(!run.json);
}

#[test]
fn an_answer_is_one_of_three() {
    let answer =
        |args: &[&str]| Cli::try_parse_from([&["outlast", "answer", "k3m"], args].concat()).is_ok();
    for good in [&["--approve"][..], &["--deny"], &["use the other one"], &["-"]] {
        assert!(answer(good), "{good:?}");
    }
    for bad in [&[][..], &["--approve", "--deny"], &["--approve", "yes"]] {
        assert!(!answer(bad), "{bad:?}");
    }
}

#[test]
fn ceilings_of_nothing_are_refused() {
    for option in ["--max-turns", "--max-tokens", "--max-cost"] {
        let run = |value| Cli::try_parse_from(["outlast", "run", option, value, "--", "true"]);
        assert!(run("0").is_err(), "{option} 0");
        assert!(run("3").is_ok(), "{option} 3");
    }
}

#[test]
fn a_bad_duration_says_what_to_write() {
    let error = Cli::try_parse_from(["outlast", "run", "--stall", "5x", "--", "true"]);
    let text = error.expect_err("not a duration").to_string();
    assert!(text.contains("write 90s, 5m, 2h, 1h30m or 500ms"), "{text}");
}

#[test]
fn a_command_needs_no_dashes_before_it() {
    let run = |line: &str| {
        let typed: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        match read(&typed).map(|cli| cli.command) {
            Ok(Command::Run(now)) => Some((now.run.detach, now.run.command)),
            Ok(other) => panic!("{other:?}"),
            Err(_) => None,
        }
    };
    let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
    assert_eq!(run("outlast run ls -l"), Some((false, words(&["ls", "-l"]))));
    assert_eq!(run("outlast run -d make -j8 -d"), Some((true, words(&["make", "-j8", "-d"]))));
    assert_eq!(run("outlast run -- ls -- x"), Some((false, words(&["ls", "--", "x"]))));
    assert_eq!(run("outlast run sh -- x"), Some((false, words(&["sh", "--", "x"]))));
    assert_eq!(run("outlast run --nope ls"), None, "an unknown option stays an error");
}

#[test]
fn a_schedule_without_a_name_does_not_take_the_commands_first_word_for_it() {
    let add = |args: &[&str]| {
        Cli::try_parse_from([&["outlast", "schedule", "add", "--every", "5m"], args].concat())
    };
    assert!(add(&["--", "make", "check"]).is_err());
    assert!(add(&["nightly", "--", "make", "check"]).is_ok());
}

/// Every command with its path: `outlast`, `outlast run`, `outlast daemon install`, …
fn each_command(mut visit: impl FnMut(&str, &clap::Command)) {
    fn walk(path: &str, at: &clap::Command, visit: &mut dyn FnMut(&str, &clap::Command)) {
        visit(path, at);
        for verb in at.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            walk(&format!("{path} {}", verb.get_name()), verb, visit);
        }
    }
    walk("outlast", &whole(), &mut visit);
}

#[test]
fn no_text_that_is_wrapped_by_hand_is_wrapped_again() {
    each_command(|path, command| {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in text.lines() {
            assert!(line.chars().count() <= 76, "{path}: over 76 columns: {line}");
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let is_listed = path.split(' ').count() == 2;
        assert!(
            !is_listed || about.chars().count() <= 65,
            "{path}: over 65 columns, for the list: {about}"
        );
    });
}

#[test]
fn every_example_is_a_command_line_that_works() {
    let mut count = 0;
    each_command(|path, command| {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = text.lines().skip_while(|line| *line != "Examples:").skip(1);
        let lines: Vec<&str> = examples.take_while(|line| line.starts_with("  ")).collect();
        let script = lines.join("\n").replace("\\\n", " ");
        for line in script.lines().filter(|line| !line.trim_start().starts_with('#')) {
            for words in commands_in(line) {
                if let Err(error) = read(&aliases::expand(words)) {
                    panic!("{path}: {line}\n{error}");
                }
                count += 1;
            }
        }
    });
    assert!(count > 60, "only {count} examples were found");
}

/// Each `outlast …` of a line of shell, without what it is piped into.
pub(super) fn commands_in(line: &str) -> Vec<Vec<OsString>> {
    if let Some((before, rest)) = line.split_once("$(")
        && let Some((inner, after)) = rest.rsplit_once(')')
    {
        let outer = commands_in(&format!("{before}word{after}"));
        return outer.into_iter().chain(commands_in(inner)).collect();
    }
    let mut found: Vec<Vec<OsString>> = Vec::new();
    let mut is_open = false;
    for word in shell_split(line) {
        match word.as_deref() {
            None => is_open = false,
            Some("outlast") if !is_open => {
                found.push(vec!["outlast".into()]);
                is_open = true;
            }
            Some(word) if is_open => found.last_mut().expect("one is open").push(word.into()),
            Some(_) => {}
        }
    }
    found
}

/// The words of a line of shell; `None` for what ends a command: `|`, `&&`, `;`, `>`, brackets.
fn shell_split(line: &str) -> Vec<Option<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take().map(Some)),
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '#' | '`') => {
                // `2>` is one thing.
                words.extend(word.take().filter(|word| word != "2").map(Some));
                words.push(None);
            }
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.map(Some));
    words
}
