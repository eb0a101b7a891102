//! What the verbs take that change a run: `stop`, `send`, `answer`, `pause`, `resume`, `rm`, `gc`.

use clap::Args;

/// End runs and everything they started
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast stop k3m          ask first, kill what is left
  outlast stop --now k3m    kill at once

Returns when every process of the run is proven gone. Also ends what a run left behind.")]
pub(crate) struct Stop {
    /// Each by its id, the first 3 or more characters of it, or its name
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Kill at once instead of asking first
    #[arg(long)]
    pub(crate) now: bool,
    /// Print each run as JSON when it has stopped, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Send a run a message: for the turn that runs if its agent can take it, else for the next
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast send k3m 'the tests are in tests/suite'
  git diff | outlast send k3m -

Wakes a run that waits for a message, a timer or its children. Returns once the message is safe on disk, and says
whether the agent at work has taken it: claude, codex, opencode and pi take messages within a turn.")]
pub(crate) struct Send {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// The message; - reads it from standard input
    pub(crate) text: String,
    /// Send it under this id: the same id again is the same message
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Answer a run that is blocked on a person
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("answer").required(true))]
#[command(override_usage = "outlast answer [OPTIONS] <RUN> <--approve|--deny|TEXT>")]
#[command(after_help = "\
Examples:
  outlast answer k3m --approve
  outlast answer k3m --deny
  outlast answer k3m 'use the staging database'

outlast show RUN says what it asks.")]
pub(crate) struct Answer {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Let it do what it asks for
    #[arg(long, group = "answer")]
    pub(crate) approve: bool,
    /// Do not let it
    #[arg(long, group = "answer")]
    pub(crate) deny: bool,
    /// The answer in words; - reads it from standard input
    #[arg(group = "answer")]
    pub(crate) text: Option<String>,
    /// Answer only the question with this number (asks.seq of show --json); default: the one that is open
    #[arg(long, value_name = "N")]
    pub(crate) seq: Option<u64>,
    /// Print the run as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let runs rest after the turn they are at
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast pause k3m
  outlast pause $(outlast ps --label repo=web --json | jq -r '.[].id')
  outlast pause --all          everything, also what is started from now on
  outlast pause --all --now    do not wait for the turns that loops are at

outlast resume lets them go on. What is paused with --all stays so through restarts and reboots.")]
pub(crate) struct Pause {
    /// Each by its id, the first 3 or more characters of it, or its name
    #[arg(required_unless_present = "all", value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Every run, new ones too, until outlast resume --all
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,
    /// With --all: end the turns that loops are at, to be tried again afterwards
    #[arg(long, requires = "all")]
    pub(crate) now: bool,
    /// Print each run as JSON, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Let runs go on that are paused or blocked
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast resume k3m
  outlast resume --all      what outlast pause --all has paused, and nothing else

A run that asks for a decision needs outlast answer instead.")]
pub(crate) struct Resume {
    /// Each by its id, the first 3 or more characters of it, or its name
    #[arg(required_unless_present = "all", value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Take back outlast pause --all
    #[arg(long, conflicts_with = "runs")]
    pub(crate) all: bool,
    /// Release nothing that came after this event (seq of show --json); default: what is there now
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub(crate) seq: Option<u64>,
    /// Print each run as JSON, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove runs that have ended, with their output
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast rm k3m
  outlast rm $(outlast ps --state failed --json | jq -r '.[].id')")]
pub(crate) struct Rm {
    /// Each by its id, the first 3 or more characters of it, or its name
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Leave the workspace where it is
    #[arg(long)]
    pub(crate) keep_workspace: bool,
    /// Print errors as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove what the retention rules no longer keep
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast gc --dry-run    only say what would go
  outlast gc")]
pub(crate) struct Gc {
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Rebuild runs that the journal has forgotten, from their directories
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast recover --dry-run    only say what can be rebuilt, and what is missing
  outlast recover              every run on disk that is not in the journal
  outlast recover k3m

For a journal that was lost, moved away or restored from a backup. A run that is alive is adopted; one
that would go on rests until outlast resume.")]
pub(crate) struct Recover {
    /// Each by its id or the first 3 or more characters of it; without any, all of them
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Only say what would be rebuilt
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
