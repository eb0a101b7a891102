//! Other names of verbs, which users of docker, pueue, systemctl and git type: `ls`, `kill`, `inspect`, …
//!
//! They are replaced before the arguments are read, so that help and errors name the verb itself.

use std::ffi::OsString;

/// What is typed, and what it stands for.
pub(crate) const ALIASES: &[(&str, &[&str])] = &[
    ("ls", &["ps"]),
    ("list", &["ps"]),
    ("inspect", &["show"]),
    ("log", &["logs"]),
    // As `docker kill`: at once.
    ("kill", &["stop", "--now"]),
];

/// The arguments with the verb's own name. `status` lists runs, and shows the run that it names.
pub(crate) fn expand(mut args: Vec<OsString>) -> Vec<OsString> {
    let Some(typed) = args.get(1).and_then(|typed| typed.to_str()) else { return args };
    let first = args.iter().skip(2).find(|arg| *arg != "--json");
    let names_a_run = first.is_some_and(|arg| !arg.as_encoded_bytes().starts_with(b"-"));
    let meant: &[&str] = match typed {
        "status" if names_a_run => &["show"],
        "status" => &["ps"],
        _ => match ALIASES.iter().find(|(alias, _)| *alias == typed) {
            Some((_, meant)) => meant,
            None => return args,
        },
    };
    args.splice(1..2, meant.iter().map(OsString::from));
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(line: &str) -> String {
        let args = expand(line.split_whitespace().map(OsString::from).collect());
        args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn other_names_stand_for_the_verb() {
        assert_eq!(expanded("outlast ls -a"), "outlast ps -a");
        assert_eq!(expanded("outlast kill nightly"), "outlast stop --now nightly");
        assert_eq!(expanded("outlast status --json"), "outlast ps --json");
        assert_eq!(expanded("outlast status --state failed"), "outlast ps --state failed");
        assert_eq!(expanded("outlast status --json nightly"), "outlast show --json nightly");
        assert_eq!(expanded("outlast run ls"), "outlast run ls");
        assert_eq!(expanded("outlast"), "outlast");
    }
}
