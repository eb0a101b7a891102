//! What the verbs take that go on with a run, repeat it, or look into its directory: `raise`, `rerun`, `exec`, `path`.

use std::ffi::OsString;

use clap::Args;

use crate::duration;
use crate::money;

/// Raise the limits of a run; an exhausted one resumes
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("limit").required(true).multiple(true))]
#[command(override_usage = "outlast raise <RUN> <--max-turns|--max-cost|…> [OPTIONS]")]
#[command(after_help = "\
Examples:
  # ten turns more than it had
  outlast raise nightly --max-turns +10
  # to 10 dollars in all, and two hours more
  outlast raise nightly --max-cost 10 --run-timeout +2h

A live or blocked run has the new limit at once. An exhausted run resumes
with its conversation, messages and workspace; what it has used still
counts. Its environment was removed when it ended, so it gets yours, and
--env. No limit goes above [ceilings] in config.toml.")]
pub(crate) struct Raise {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// To this many turns, or +N more
    #[arg(long, value_name = "N|+N", value_parser = parse_count, group = "limit")]
    pub(crate) max_turns: Option<More>,
    /// To this many tokens, or +N more
    #[arg(long, value_name = "N|+N", value_parser = parse_count, group = "limit")]
    pub(crate) max_tokens: Option<More>,
    /// To this many dollars, or +USD more
    #[arg(long, value_name = "USD|+USD", value_parser = parse_money, group = "limit")]
    pub(crate) max_cost: Option<More>,
    /// To this long for the whole run, or + that much more
    #[arg(long, value_name = "DURATION", value_parser = parse_time, group = "limit")]
    pub(crate) run_timeout: Option<More>,
    /// To this long for one attempt, or + that much more; from the next attempt on
    #[arg(long, value_name = "DURATION", value_parser = parse_time, group = "limit")]
    pub(crate) turn_timeout: Option<More>,
    /// Set an environment variable for an exhausted run that resumes
    #[arg(short, long, value_name = "K=V", value_parser = clap::builder::OsStringValueParser::new())]
    pub(crate) env: Vec<OsString>,
    /// Print the run as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A limit, or how much is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum More {
    To(u64),
    By(u64),
}

fn parse_more<E>(text: &str, parse: impl Fn(&str) -> Result<u64, E>) -> Result<More, E> {
    match text.strip_prefix('+') {
        Some(more) => parse(more).map(More::By),
        None => parse(text).map(More::To),
    }
}

fn parse_count(text: &str) -> Result<More, String> {
    parse_more(text, |text| match text.parse::<u64>() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err("write a number such as 30, or +10 for ten more".to_owned()),
    })
}

fn parse_money(text: &str) -> Result<More, String> {
    parse_more(text, |text| money::parse_limit(text).map(|micros| micros.0))
}

fn parse_time(text: &str) -> Result<More, String> {
    parse_more(text, |text| duration::parse_limit(text).map(duration::as_ms))
}

/// Start the same run again
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast rerun nightly
  # change the task or the command in $EDITOR first
  outlast rerun --edit nightly
  # with the loop file as it is now
  outlast rerun --fresh-file nightly

Same command, directory, limits, labels and loop file (as it was then).
The environment is yours of now, and --env: that of the first run was
removed when it ended. The new run has the label rerun=ID.")]
pub(crate) struct Rerun {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// Edit the task or the command in $EDITOR first
    #[arg(long)]
    pub(crate) edit: bool,
    /// Read the loop file anew, and take the limits from it
    #[arg(long)]
    pub(crate) fresh_file: bool,
    /// Print the new run's id and return
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// Set an environment variable on top of the current environment
    #[arg(short, long, value_name = "K=V", value_parser = clap::builder::OsStringValueParser::new())]
    pub(crate) env: Vec<OsString>,
    /// With -d, print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a command in the workspace of a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast exec nightly -- git log --oneline -5
  outlast exec nightly -- bash

The command runs in this terminal, with your environment and
OUTLAST_WORKSPACE. Its exit code is passed on. It is no part of the run.")]
pub(crate) struct Exec {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// Print the workspace directory of a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cd \"$(outlast path nightly)\"
  git -C \"$(outlast path nightly)\" diff")]
pub(crate) struct Path {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_so_much_more() {
        assert_eq!(parse_count("30"), Ok(More::To(30)));
        assert_eq!(parse_count("+10"), Ok(More::By(10)));
        assert_eq!(parse_money("+0.5"), Ok(More::By(500_000)));
        assert_eq!(parse_time("+2h"), Ok(More::By(7_200_000)));
        for wrong in ["", "+", "0", "+0", "-1", "ten"] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
    }
}
