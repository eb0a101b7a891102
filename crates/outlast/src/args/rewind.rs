//! What the verbs take that go back to a turn, start again from one, or hand the work over.

use std::ffi::OsString;

use clap::Args;

use crate::duration;
use crate::money;

/// Put the workspace of a run back to the end of a turn
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # as turn 3 left it
  outlast restore nightly --at 3
  # as it was before the first turn
  outlast restore nightly --at 0

The run must rest (paused, waiting or blocked) or have ended, and its
workspace must be its own: a run that works in place is refused. The files
are saved as a snapshot first, and its id is printed. Ignored files
stay. Turns are not undone: the next turn works on the older files, in a new
conversation, and its request says so.")]
pub(crate) struct Restore {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// The turn; 0 is before the first
    #[arg(long, value_name = "TURN")]
    pub(crate) at: u32,
    /// Print JSON: what was written and removed, and the snapshot of what was found
    #[arg(long)]
    pub(crate) json: bool,
}

/// Start another run from the end of a turn
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast fork nightly --at 3
  # the same point with another agent, task or limit
  outlast fork nightly --at 3 --agent codex
  outlast fork nightly --at 3 --task 'Use the standard parser'
  outlast fork nightly --at 3 --set max-turns=5 --set model=small
  # and then
  outlast compare nightly @last

The fork has the journal up to that turn, a copy of that turn's files in a
workspace of its own, and limits of its own; what was spent before is not
charged again. The other run is not changed, and may go on. Calls that were
made after that turn may be made again.
Keys of --set: max-turns, max-tokens, max-cost, turn-timeout, run-timeout,
stall, model, effort.")]
pub(crate) struct Fork {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// Keep the turns up to this one; 0 keeps none
    #[arg(long, value_name = "TURN")]
    pub(crate) at: u32,
    /// Name the fork
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Continue with another agent
    #[arg(long, value_name = "KIND")]
    pub(crate) agent: Option<String>,
    /// Continue with another task
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// Continue with another setting
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    pub(crate) set: Vec<Setting>,
    /// Set an environment variable on top of the current environment
    #[arg(short, long, value_name = "K=V", value_parser = clap::builder::OsStringValueParser::new())]
    pub(crate) env: Vec<OsString>,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One key of `--set`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Setting {
    MaxTurns(u32),
    MaxTokens(u64),
    MaxCost(u64),
    TurnTimeout(u64),
    RunTimeout(u64),
    Stall(u64),
    Model(String),
    Effort(String),
}

fn parse_setting(text: &str) -> Result<Setting, String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err("write KEY=VALUE, such as max-turns=5".to_owned());
    };
    let count = || {
        let wrong = || format!("{key} is a number above 0");
        value.parse::<u64>().ok().filter(|count| *count > 0).ok_or_else(wrong)
    };
    let time = || duration::parse_limit(value).map(duration::as_ms);
    Ok(match key.replace('_', "-").as_str() {
        "max-turns" => {
            let turns = u32::try_from(count()?).map_err(|_| format!("{key} is too large"))?;
            Setting::MaxTurns(turns)
        }
        "max-tokens" => Setting::MaxTokens(count()?),
        "max-cost" => Setting::MaxCost(money::parse_limit(value)?.0),
        "turn-timeout" => Setting::TurnTimeout(time()?),
        "run-timeout" => Setting::RunTimeout(time()?),
        "stall" => Setting::Stall(time()?),
        "model" => Setting::Model(value.to_owned()),
        "effort" => Setting::Effort(value.to_owned()),
        _ => {
            return Err(format!(
                "{key} is no key: one of max-turns, max-tokens, max-cost, turn-timeout, \
                 run-timeout, stall, model, effort"
            ));
        }
    })
}

/// Compare runs side by side: outcome, turns, spend, time, changes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast compare nightly @last
  outlast compare --json try-1 try-2 try-3")]
pub(crate) struct Compare {
    #[arg(help = super::RUNS, required = true, num_args = 2..)]
    pub(crate) runs: Vec<String>,
    /// Print JSON: a list with an object for each run
    #[arg(long)]
    pub(crate) json: bool,
}

/// Merge what a run has committed into a branch, without a checkout
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # into the branch that the repository has checked out: prints the command
  outlast merge nightly
  outlast merge nightly --into develop
  # with what is not committed, as one commit of the last snapshot
  outlast merge nightly --into develop --with-uncommitted

For a run with a worktree. A branch that is checked out anywhere is never
moved: the command to type is printed. Conflicts are listed, change nothing,
and give exit code 1. A second merge changes nothing.")]
pub(crate) struct Merge {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// The branch; default: the one that the repository has checked out
    #[arg(long, value_name = "BRANCH")]
    pub(crate) into: Option<String>,
    /// Also merge uncommitted changes, as one commit made from the last snapshot
    #[arg(long)]
    pub(crate) with_uncommitted: bool,
    /// Say what would happen, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a pull request of what a run has committed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # print the commands to type
  outlast pr nightly
  # push, and start gh or glab if it is installed
  outlast pr nightly --push

For a run with a worktree. The push goes to the remote that the repository
had before the first turn, with none of the repository's settings or hooks:
an agent may have changed those.")]
pub(crate) struct Pr {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// Push the branch, then run the forge's own command if there is one
    #[arg(long)]
    pub(crate) push: bool,
    /// Make it a draft
    #[arg(long)]
    pub(crate) draft: bool,
    /// Print the parts of the pull request as JSON
    #[arg(long, conflicts_with = "push")]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_key_and_a_value() {
        assert_eq!(parse_setting("max-turns=5"), Ok(Setting::MaxTurns(5)));
        assert_eq!(parse_setting("max_cost=0.5"), Ok(Setting::MaxCost(500_000)));
        assert_eq!(parse_setting("run-timeout=2h"), Ok(Setting::RunTimeout(7_200_000)));
        assert_eq!(parse_setting("model=a=b"), Ok(Setting::Model("a=b".to_owned())));
        for wrong in ["", "max-turns", "max-turns=0", "max-turns=x", "turns=3"] {
            assert!(parse_setting(wrong).is_err(), "{wrong}");
        }
    }
}
