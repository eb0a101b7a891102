//! What a user may have meant by a verb that there is not: by its meaning in other tools, else by its letters.

use clap::Command;

/// Words of other tools, and what does that here. The first line whose verb there is counts.
pub(crate) const MEANINGS: &[(&[&str], &[&str])] = &[
    (&["history", "journal", "audit"], &["outlast events @last", "outlast ps -a"]),
    (&["prune", "clean", "cleanup", "purge"], &["outlast gc"]),
    (&["remove", "delete", "del", "forget"], &["outlast rm RUN"]),
    (&["cancel", "abort", "terminate", "end", "interrupt"], &["outlast stop RUN"]),
    (&["restart", "redo", "repeat", "again"], &["outlast rerun RUN", "outlast resume RUN"]),
    (&["rerun"], &["outlast run COMMAND"]),
    (&["retry"], &["outlast rerun RUN", "outlast resume RUN"]),
    (&["continue", "unpause", "start-again"], &["outlast resume RUN"]),
    (
        &["start", "launch", "spawn", "submit", "enqueue", "add", "new", "create", "exec"],
        &["outlast run COMMAND"],
    ),
    (&["jobs", "tasks", "runs", "queue", "show-all"], &["outlast ps"]),
    (&["output", "tail", "cat", "stdout", "follow"], &["outlast logs -f @last"]),
    (&["watch", "monitor", "dashboard", "ui", "tui"], &["outlast top"]),
    (&["view", "info", "describe", "details"], &["outlast show @last"]),
    (&["reattach", "fg", "join", "connect"], &["outlast attach @last"]),
    (&["suspend", "hold", "freeze"], &["outlast pause RUN"]),
    (&["message", "msg", "tell", "say", "input"], &["outlast send RUN TEXT"]),
    (&["reply", "respond"], &["outlast answer RUN TEXT"]),
    (&["approve", "allow", "yes"], &["outlast answer RUN --approve"]),
    (&["deny", "refuse", "no"], &["outlast answer RUN --deny"]),
    (&["cron", "timer", "at", "every"], &["outlast schedule ls"]),
    (&["hook", "hooks", "webhook", "webhooks", "poll"], &["outlast trigger ls"]),
    (&["notify", "notifications", "notices", "sinks", "alert"], &["outlast sink ls"]),
    (&["cost", "costs", "spend", "budget", "money"], &["outlast budgets"]),
    (&["limit", "limits", "extend"], &["outlast raise RUN --max-turns +10", "outlast show @last"]),
    (&["validate", "lint", "verify", "test"], &["outlast check"]),
    (&["settings", "configure", "env"], &["outlast config path", "outlast check --explain"]),
    (&["summary", "overview", "night", "today"], &["outlast report", "outlast ps -a"]),
    (&["upgrade", "update", "reload"], &["outlast daemon restart"]),
    (&["shutdown", "quit"], &["outlast daemon stop"]),
    (&["serve", "server", "service", "install"], &["outlast daemon install"]),
    (&["diagnose", "health", "debug"], &["outlast doctor"]),
    (&["completion", "autocomplete"], &["outlast completions bash"]),
    (&["children", "family"], &["outlast tree @last"]),
    (&["convert", "migrate"], &["outlast import symphony FILE"]),
    (&["rename", "name", "mv"], &["outlast run --name NAME COMMAND"]),
];

/// The command lines that a word of another tool may stand for.
pub(crate) fn by_meaning(program: &Command, word: &str) -> Option<&'static str> {
    let (_, lines) = MEANINGS.iter().find(|(words, _)| words.contains(&word))?;
    lines.iter().copied().find(|line| {
        let verb = line.split_whitespace().nth(1).unwrap_or_default();
        program.find_subcommand(verb).is_some()
    })
}

/// The option of a verb that an option of another tool stands for, or whose name ends or begins with this word.
pub(crate) fn option(command: &Command, word: &str) -> Option<String> {
    let word = word.trim_start_matches('-').split('=').next().filter(|word| word.len() > 2)?;
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let longs: Vec<&str> = shown.filter_map(clap::Arg::get_long).collect();
    let near = |long: &&&str| distance(long, word) <= 2.min(word.chars().count() / 3);
    let part = |long: &&&str| {
        let parts: Vec<&str> = long.split('-').collect();
        parts.contains(&word) || long.replace('-', "") == word
    };
    let found = longs.iter().find(part).or_else(|| longs.iter().find(near))?;
    Some(format!("--{found}"))
}

/// The verb that is spelt almost like this word.
pub(crate) fn by_letters<'c>(command: &'c Command, word: &str) -> Option<&'c str> {
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    let near = verbs.map(|verb| (distance(verb.get_name(), word), verb.get_name())).min()?;
    (near.0 <= 2.min(word.chars().count() / 2)).then_some(near.1)
}

/// How many letters have to be put in, taken out, changed or swapped with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            if i == 0 || j == 0 {
                table[i][j] = i + j;
                continue;
            }
            let changed = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            table[i][j] = changed.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                table[i][j] = table[i][j].min(table[i - 2][j - 2] + 1);
            }
        }
    }
    table[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::{aliases, read, whole};
    use super::*;

    #[test]
    fn a_word_of_another_tool_finds_the_verb_that_does_it() {
        let program = whole();
        let meant = |word| by_meaning(&program, word);
        assert_eq!(meant("history"), Some("outlast events @last"));
        assert_eq!(meant("prune"), Some("outlast gc"));
        assert_eq!(meant("weather"), None);
    }

    #[test]
    fn every_suggestion_works_and_shadows_no_verb() {
        let program = whole();
        for (words, lines) in MEANINGS {
            let line =
                by_meaning(&program, words[0]).unwrap_or_else(|| panic!("{lines:?}: none works"));
            let typed: Vec<_> = line.split_whitespace().map(std::ffi::OsString::from).collect();
            assert!(read(&typed).is_ok(), "{line}");
            for word in *words {
                let is_alias = aliases::ALIASES.iter().any(|(alias, _)| alias == word);
                assert!(!is_alias, "{word} is another name already");
            }
        }
    }

    #[test]
    fn a_slip_of_the_finger_finds_the_verb_and_a_stranger_finds_none() {
        let program = whole();
        assert_eq!(by_letters(&program, "shwo"), Some("show"));
        assert_eq!(by_letters(&program, "stpo"), Some("stop"));
        assert_eq!(by_letters(&program, "histroy"), None);
        assert_eq!(by_letters(&program, "x"), None);
    }

    #[test]
    fn half_of_an_option_finds_it() {
        let program = whole();
        let run = program.find_subcommand("run").expect("a verb");
        assert_eq!(option(run, "--turns").as_deref(), Some("--max-turns"));
        assert_eq!(option(run, "--cost=5").as_deref(), Some("--max-cost"));
        assert_eq!(option(run, "--detatch").as_deref(), Some("--detach"));
        assert_eq!(option(run, "--weather"), None);
    }
}
