//! What the verbs take that change a run: `stop`, `send`, `answer`, `pause`, `resume`, `rm`, `gc`.

use std::time::Duration;

use clap::Args;

use super::Pick;
use crate::duration;

/// Stop runs and every process that they started
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # ask the processes to end; kill what is left after a while
  outlast stop nightly
  # kill at once; outlast kill nightly is the same
  outlast stop --now nightly
  # every run with a label
  outlast stop --label repo=web

Returns when every process of the run is gone. Also stops the processes
that a run left behind when it ended. Its children keep running, unless
--tree or the run's own policy (run --children stop) says otherwise.")]
pub(crate) struct Stop {
    #[arg(required_unless_present_any = ["all", "state", "label"], value_name = "RUN", help = super::RUNS)]
    pub(crate) runs: Vec<String>,
    /// Stop every run, or every run with the label or state
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) pick: Pick,
    /// Kill at once; do not ask the processes to end first
    #[arg(long)]
    pub(crate) now: bool,
    /// Stop its children too, and theirs
    #[arg(long)]
    pub(crate) tree: bool,
    /// Print each run as JSON when it has stopped, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Send a message to the agent of a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast send nightly 'the tests are in tests/suite'
  # the message is what another command prints
  git diff | outlast send nightly -

The agent reads the message in this turn if it can (claude, codex, opencode
and pi can), else in the next turn. Wakes a run that waits for a message, a
timer or its children. Returns once the message is safe on disk. A run that
is blocked on a question needs outlast answer instead. A plain command
reads no messages.")]
pub(crate) struct Send {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// The message; - reads it from standard input
    pub(crate) text: String,
    /// An id for the message: sending the same id twice sends one message
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answer a blocked run's question, and let it continue
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("answer").required(true))]
#[command(override_usage = "outlast answer [OPTIONS] <RUN> <--approve|--deny|TEXT>")]
#[command(after_help = "\
Examples:
  outlast answer nightly 'use the staging database'
  outlast answer nightly --approve
  outlast answer nightly --deny

outlast show RUN prints the question.")]
pub(crate) struct Answer {
    #[arg(help = super::RUN)]
    pub(crate) run: String,
    /// Allow what the agent asks for
    #[arg(long, group = "answer")]
    pub(crate) approve: bool,
    /// Refuse what the agent asks for
    #[arg(long, group = "answer")]
    pub(crate) deny: bool,
    /// The answer in words; - reads it from standard input
    #[arg(group = "answer")]
    pub(crate) text: Option<String>,
    /// Answer only this question (asks.seq in show --json); default: the open one
    #[arg(long, value_name = "N")]
    pub(crate) seq: Option<u64>,
    /// Print the run as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Pause loops after their current turn
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast pause nightly
  # every run with a label
  outlast pause $(outlast ps --label repo=web --json | jq -r '.[].id')
  # everything, and every run that is started from now on
  outlast pause --all
  # do not wait for the current turns to end
  outlast pause --all --now

outlast resume continues them. A pause with --all lasts through restarts and
reboots, until outlast resume --all.")]
pub(crate) struct Pause {
    #[arg(required_unless_present = "all", value_name = "RUN", help = super::RUNS)]
    pub(crate) runs: Vec<String>,
    /// Pause every run, new ones too, until outlast resume --all
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,
    /// With --all: end the current turns now and retry them after the pause
    #[arg(long)]
    pub(crate) now: bool,
    /// Pause its children too, and theirs
    #[arg(long, conflicts_with = "all")]
    pub(crate) tree: bool,
    /// Print each run as JSON, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Continue runs that are paused, blocked, or ended by a budget
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast resume nightly
  # undo outlast pause --all, and nothing else
  outlast resume --all

A run that asks a question needs outlast answer instead. A run that was
exhausted by a shared budget continues once the budget has room; it gets
your environment. For its own limits, see outlast raise.")]
pub(crate) struct Resume {
    #[arg(required_unless_present_any = ["all", "state", "label"], value_name = "RUN", help = super::RUNS)]
    pub(crate) runs: Vec<String>,
    /// Undo outlast pause --all
    #[arg(long, conflicts_with_all = ["runs", "state", "label"])]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) pick: Pick,
    /// Resume only if it was paused or blocked at or before this event (seq in show --json)
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub(crate) seq: Option<u64>,
    /// Undo the pauses of its children too, and of theirs
    #[arg(long, conflicts_with = "all")]
    pub(crate) tree: bool,
    /// Print each run as JSON, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove ended runs and their output
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast rm nightly
  # every run that failed
  outlast rm --state failed
  # stop it first
  outlast rm --force nightly")]
pub(crate) struct Rm {
    #[arg(required_unless_present_any = ["all", "state", "label"], value_name = "RUN", help = super::RUNS)]
    pub(crate) runs: Vec<String>,
    /// Remove every run that has ended, or every one with the label or state
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) pick: Pick,
    /// Stop runs that have not ended first
    #[arg(long)]
    pub(crate) force: bool,
    /// Keep the run's workspace
    #[arg(long)]
    pub(crate) keep_workspace: bool,
    /// Print errors as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove runs that ended long ago: 7 days, or 30 if they failed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # only print what would be removed
  outlast gc --dry-run
  outlast gc
  # everything that ended more than 12 hours ago
  outlast gc --older-than 12h

Runs that completed or were stopped are kept for 7 days, others for 30.
Workspaces are kept as long as workspace.retain says, and while they hold
uncommitted work. The daemon removes old runs by itself once a day, but no
workspaces; gc.auto = false in config.toml turns that off.")]
pub(crate) struct Gc {
    /// Remove what ended longer ago than this, instead of the usual times
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_with_unit)]
    pub(crate) older_than: Option<Duration>,
    /// Only print what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Rebuild runs that are on disk but not in the journal
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # only print what can be rebuilt, and what is missing
  outlast recover --dry-run
  # every run on disk that is not in the journal
  outlast recover
  # one run, by the first characters of its id
  outlast recover k3m

For a journal that was lost, moved or restored from a backup. A run whose
processes are alive is adopted; one that would continue is paused until
outlast resume.")]
pub(crate) struct Recover {
    /// Runs, each by its id or the id's first 3 or more characters; default: all
    #[arg(value_name = "ID")]
    pub(crate) runs: Vec<String>,
    /// Only print what would be rebuilt
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
