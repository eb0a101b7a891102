//! The groups in which `outlast --help` lists the verbs.
//!
//! Each verb is named here once, also verbs that are still to come; a test compares the table with the verbs.

use clap::Command;

pub(crate) const GROUPS: &[(&str, &[&str])] = &[
    ("Start", &["run", "rerun", "fork", "schedule", "trigger"]),
    (
        "Look",
        &[
            "report", "ps", "top", "web", "show", "logs", "events", "tree", "diff", "compare",
            "path",
        ],
    ),
    (
        "Steer",
        &[
            "attach", "wait", "send", "answer", "pause", "resume", "raise", "stop", "restore",
            "exec", "merge", "pr",
        ],
    ),
    (
        "Set up",
        &["init", "check", "import", "agents", "config", "sink", "budgets", "queue", "notify"],
    ),
    ("Tidy", &["rm", "gc", "recover"]),
    ("Daemon", &["daemon", "doctor"]),
    ("From within a run", &["call", "mcp", "usage"]),
    ("Help", &["help", "completions", "man", "version"]),
];

/// The help of the program, with its verbs in groups. The verbs must have been put together already.
pub(super) fn template(command: &Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let titled = |title: &str| format!("{}{title}:{}\n", header.render(), header.render_reset());
    let mut page = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (title, verbs) in GROUPS {
        let there: Vec<&Command> =
            verbs.iter().filter_map(|verb| command.find_subcommand(verb)).collect();
        if there.is_empty() {
            continue;
        }
        page.push_str(&titled(title));
        for verb in there {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let (name, on, off) = (verb.get_name(), literal.render(), literal.render_reset());
            page.push_str(&format!("  {on}{name:<12}{off} {about}\n"));
        }
        page.push('\n');
    }
    page + &titled("Options") + "{options}{after-help}"
}

#[cfg(test)]
mod tests {
    use super::super::whole;
    use super::*;

    #[test]
    fn every_verb_is_in_one_group() {
        for verb in whole().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let groups = GROUPS.iter().filter(|(_, verbs)| verbs.contains(&verb.get_name()));
            assert_eq!(groups.count(), 1, "{}: name it in groups.rs", verb.get_name());
        }
    }
}
