//! Errors of the command line itself: what clap rejects becomes one line and a hint.
//!
//! Decides nothing about a good command line; `args` reads those.

use std::process::ExitCode;

use clap::error::ErrorKind;
use outlast_client::problem::Problem;

use crate::output::errors::{self, Errors};

/// Prints help, or what is wrong with the arguments.
pub(crate) fn explain(usage: &clap::Error) -> ExitCode {
    let is_help = !usage.use_stderr();
    let asks_for_json =
        std::env::args_os().take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if is_help || usage.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // Without standard output there is no reader to tell.
        drop(usage.print());
    } else {
        let errors = if asks_for_json { Errors::Json } else { Errors::ForPeople };
        errors::report(&as_problem(usage), errors);
    }
    ExitCode::from(if is_help { 0 } else { outlast_client::problem::REFUSED })
}

/// What is wrong, with the names of what is missing on the same line, and where to read on.
fn as_problem(usage: &clap::Error) -> Problem {
    let text = usage.to_string();
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let named: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    let message = match named.as_slice() {
        [] => first.to_owned(),
        named => format!("{first} {}", named.join(" ")),
    };
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).map(str::to_owned);
    let verb = text.lines().find_map(|line| line.strip_prefix("Usage: ")).map(verb_of);
    let hint =
        tip.unwrap_or_else(|| format!("see {} --help", verb.unwrap_or("outlast".to_owned())));
    Problem::refusal("usage", message).hint(hint)
}

/// `outlast daemon run` of `outlast daemon run [OPTIONS] …`
fn verb_of(usage: &str) -> String {
    let is_word = |word: &&str| word.starts_with(|first: char| first.is_ascii_lowercase());
    usage.split_whitespace().take_while(is_word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn what_is_wrong_is_one_line_and_a_hint() {
        let said = |args: &[&str]| {
            let usage = Cli::try_parse_from(args).expect_err("a bad command line");
            let Problem::Told { info, .. } = as_problem(&usage) else { panic!("it is told") };
            format!("{} / {}", info.message, info.hint.unwrap_or_default())
        };
        insta::assert_snapshot!(said(&["outlast", "wait"]), @"the following required arguments were not provided: <RUN>... / see outlast wait --help");
        insta::assert_snapshot!(said(&["outlast", "shwo", "x"]), @"unrecognized subcommand 'shwo' / a similar subcommand exists: 'show'");
        insta::assert_snapshot!(said(&["outlast", "ps", "--nope"]), @"unexpected argument '--nope' found / see outlast ps --help");
    }
}
