//! What Tab offers after `outlast …`: verbs, options, words of an option, and what the daemon knows by name.
//!
//! Decides from the command line alone; `commands/complete.rs` asks the daemon, and the scripts here ask that.
//! Names of arguments say what stands there: `RUN`, `SINK`, `NAME` of a trigger, `DIR`, `FILE`.

use clap::{Arg, Command};

pub(crate) const BASH: &str = include_str!("outlast.bash");
pub(crate) const ZSH: &str = include_str!("outlast.zsh");
pub(crate) const FISH: &str = include_str!("outlast.fish");

/// What may stand where the cursor is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// These words, each with what it means.
    Words(Vec<(String, String)>),
    /// What the daemon knows by name.
    Objects(Objects),
    Files,
    Directories,
    /// Another program's command line, from this word after `outlast` on.
    Command(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objects {
    LiveRuns,
    AllRuns,
    Sinks,
    Schedules,
    Triggers,
    /// The queues that runs were started in.
    Queues,
    /// `KEY=VALUE`, as runs have them.
    Labels,
    /// Kinds of agents: built in, or of config.toml.
    Agents,
}

/// The offer for the last of `words`, which follow `outlast` and may be empty or half typed.
pub(crate) fn offer(program: &Command, words: &[String]) -> Offer {
    let (current, before) = match words.split_last() {
        Some((current, before)) => (current.as_str(), before),
        None => ("", words),
    };
    let mut at = Place { program, path: Vec::new(), command: program, positional: 0, open: None };
    for (index, word) in before.iter().enumerate() {
        if let Some(first) = at.take(word, index) {
            return Offer::Command(first);
        }
    }
    at.offer(current, before.len())
}

/// How far the words before the cursor lead.
struct Place<'c> {
    program: &'c Command,
    path: Vec<&'c str>,
    command: &'c Command,
    /// So many arguments without a dash have come.
    positional: usize,
    /// The option whose value comes next.
    open: Option<&'c Arg>,
}

impl<'c> Place<'c> {
    /// Goes on by one word. Answers with the place of a command's first word once one has begun.
    fn take(&mut self, word: &str, index: usize) -> Option<usize> {
        if self.open.is_some() {
            // Shells split `--label=x` into three words.
            self.open = self.open.filter(|_| word == "=");
        } else if word == "--" {
            return self.positionals().any(is_command).then_some(index + 1);
        } else if word.len() > 1 && word.starts_with('-') {
            self.open = self.option_of(word).filter(|_| !word.contains('='));
        } else if let Some(verb) = self.verb(word) {
            self.path.push(verb.get_name());
            self.command = verb;
        } else {
            let is_command = self.positional_arg().is_some_and(is_command);
            self.positional += 1;
            return is_command.then_some(index);
        }
        None
    }

    fn offer(&self, current: &str, index: usize) -> Offer {
        if let Some(option) = self.open {
            return self.values(option, index);
        }
        if let (Some(option), Some((name, _))) = (self.option_of(current), current.split_once('='))
        {
            return match self.values(option, index) {
                Offer::Words(words) => Offer::Words(
                    words.into_iter().map(|(w, about)| (format!("{name}={w}"), about)).collect(),
                ),
                other => other,
            };
        }
        if current.starts_with('-') {
            return Offer::Words(self.options());
        }
        if self.command.has_subcommands() {
            return Offer::Words(verbs(self.command));
        }
        self.positional_arg().map_or(Offer::Words(Vec::new()), |arg| self.values(arg, index))
    }

    fn verb(&self, word: &str) -> Option<&'c Command> {
        if let Some(verb) = self.command.find_subcommand(word) {
            return Some(verb);
        }
        let typed = vec!["outlast".into(), word.into()];
        let meant = crate::args::aliases::expand(typed).into_iter().nth(1)?;
        self.program.find_subcommand(meant).filter(|_| self.path.is_empty())
    }

    fn positionals(&self) -> impl Iterator<Item = &'c Arg> {
        self.command.get_positionals().filter(|arg| !arg.is_hide_set())
    }

    /// The argument without a dash that comes next; one that takes many stays the next.
    fn positional_arg(&self) -> Option<&'c Arg> {
        let takes_many =
            |arg: &&Arg| arg.get_num_args().is_some_and(|count| count.max_values() > 1);
        self.positionals()
            .filter(|arg| !arg.is_last_set())
            .nth(self.positional)
            .or_else(|| self.positionals().last().filter(takes_many))
    }

    /// The option that a word is or ends with, if it takes a value.
    fn option_of(&self, word: &str) -> Option<&'c Arg> {
        let takes_value = |arg: &&Arg| arg.get_action().takes_values();
        if let Some(long) = word.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or_default();
            let is_it = |arg: &&Arg| {
                let aliases = arg.get_visible_aliases().unwrap_or_default();
                arg.get_long() == Some(name) || aliases.contains(&name)
            };
            return self.command.get_opts().find(is_it).filter(takes_value);
        }
        let short = word.strip_prefix('-')?.chars().last()?;
        self.command.get_opts().find(|arg| arg.get_short() == Some(short)).filter(takes_value)
    }

    fn options(&self) -> Vec<(String, String)> {
        let shown = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        let about = |arg: &Arg| first_line(arg.get_help().map(ToString::to_string));
        let long = |arg: &Arg| arg.get_long().map(|long| format!("--{long}"));
        let short = |arg: &Arg| arg.get_short().map(|short| format!("-{short}"));
        let all = shown.flat_map(|arg| {
            [long(arg), short(arg)].into_iter().flatten().map(move |name| (name, about(arg)))
        });
        all.collect()
    }

    fn values(&self, arg: &Arg, index: usize) -> Offer {
        if is_command(arg) {
            return Offer::Command(index);
        }
        let words = arg.get_possible_values();
        if !words.is_empty() {
            let about = |value: &clap::builder::PossibleValue| {
                first_line(value.get_help().map(ToString::to_string))
            };
            let words = words.iter().filter(|value| !value.is_hide_set());
            return Offer::Words(
                words.map(|value| (value.get_name().to_owned(), about(value))).collect(),
            );
        }
        let name =
            arg.get_value_names().and_then(|names| names.first()).map(clap::builder::Str::as_str);
        match (name.unwrap_or_default(), self.path.as_slice()) {
            ("RUN", path) => Offer::Objects(runs_for(path)),
            ("SINK", _) => Offer::Objects(Objects::Sinks),
            ("NAME[:N]", _) => Offer::Objects(Objects::Queues),
            ("KIND", _) => Offer::Objects(Objects::Agents),
            ("K=V", ["run"] | ["schedule" | "trigger", "add"])
                if arg.get_long() != Some("label") =>
            {
                Offer::Words(Vec::new())
            }
            ("K=V", _) if arg.get_long() == Some("label") => Offer::Objects(Objects::Labels),
            ("NAME", ["schedule" | "trigger", "add"]) => Offer::Words(Vec::new()),
            ("NAME", ["schedule", ..]) => Offer::Objects(Objects::Schedules),
            ("NAME", ["trigger", ..]) | ("NAME", ["ps"]) => Offer::Objects(Objects::Triggers),
            ("VERB", _) => Offer::Words(verbs(self.program)),
            ("DIR", _) => Offer::Directories,
            (file, _) if file.contains("FILE") || file.ends_with(".md") => Offer::Files,
            _ => Offer::Words(Vec::new()),
        }
    }
}

fn is_command(arg: &Arg) -> bool {
    arg.is_trailing_var_arg_set() || arg.is_last_set()
}

/// What ends, wakes or watches a run is for live ones.
fn runs_for(path: &[&str]) -> Objects {
    match path {
        ["stop" | "attach" | "wait" | "send" | "answer" | "pause" | "resume" | "usage" | "run"] => {
            Objects::LiveRuns
        }
        _ => Objects::AllRuns,
    }
}

fn verbs(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let about = |verb: &Command| first_line(verb.get_about().map(ToString::to_string));
    shown.map(|verb| (verb.get_name().to_owned(), about(verb))).collect()
}

fn first_line(text: Option<String>) -> String {
    text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::whole;

    fn at(line: &str) -> Offer {
        let words: Vec<String> = line.split(' ').skip(1).map(str::to_owned).collect();
        offer(&whole(), &words)
    }

    fn words(line: &str) -> Vec<String> {
        match at(line) {
            Offer::Words(words) => words.into_iter().map(|(word, _)| word).collect(),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_may_stand_at_the_cursor() {
        assert!(words("outlast ").contains(&"run".to_owned()));
        assert_eq!(words("outlast sink "), ["ls", "test", "enable"]);
        assert!(words("outlast ps --").contains(&"--state".to_owned()));
        assert!(words("outlast ps --state ").contains(&"failed".to_owned()));
        assert!(words("outlast ps --state=f").contains(&"--state=failed".to_owned()));
        assert!(words("outlast ps --state = ").contains(&"failed".to_owned()));
        assert!(words("outlast help ").contains(&"schedule".to_owned()));
        assert_eq!(at("outlast logs "), Offer::Objects(Objects::AllRuns));
        assert_eq!(at("outlast logs -f ni"), Offer::Objects(Objects::AllRuns));
        assert_eq!(at("outlast logs -n 5 ni"), Offer::Objects(Objects::AllRuns));
        assert_eq!(at("outlast log "), Offer::Objects(Objects::AllRuns), "another name of logs");
        assert_eq!(at("outlast stop a b "), Offer::Objects(Objects::LiveRuns));
        assert_eq!(at("outlast run --parent "), Offer::Objects(Objects::LiveRuns));
        assert_eq!(at("outlast run --notify "), Offer::Objects(Objects::Sinks));
        assert_eq!(at("outlast sink test "), Offer::Objects(Objects::Sinks));
        assert_eq!(at("outlast schedule next "), Offer::Objects(Objects::Schedules));
        assert_eq!(at("outlast trigger rm "), Offer::Objects(Objects::Triggers));
        assert_eq!(at("outlast ps --trigger "), Offer::Objects(Objects::Triggers));
        assert_eq!(at("outlast run --queue "), Offer::Objects(Objects::Queues));
        assert_eq!(at("outlast ps --label "), Offer::Objects(Objects::Labels));
        assert_eq!(at("outlast stop --label "), Offer::Objects(Objects::Labels));
        assert_eq!(at("outlast run --agent "), Offer::Objects(Objects::Agents));
        assert_eq!(at("outlast agents test "), Offer::Objects(Objects::Agents));
        assert_eq!(words("outlast run --env "), Vec::<String>::new());
        assert_eq!(words("outlast trigger add "), Vec::<String>::new());
        assert_eq!(at("outlast run -f "), Offer::Files);
        assert_eq!(at("outlast check "), Offer::Files);
        assert_eq!(at("outlast run --cwd "), Offer::Directories);
    }

    #[test]
    fn a_command_of_another_program_is_left_to_its_own_completion() {
        assert_eq!(at("outlast run "), Offer::Command(1));
        assert_eq!(at("outlast run -d make ch"), Offer::Command(2));
        assert_eq!(at("outlast run -- make --"), Offer::Command(2));
        assert_eq!(at("outlast schedule add n --every 5m -- ma"), Offer::Command(6));
    }
}
