//! What the verbs take that stay with runs: `attach`, `wait`, `top`.

use std::time::Duration;

use clap::Args;

use crate::duration;

/// Watch a run: its output so far, then live
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast attach nightly
  outlast attach nightly || echo it did not complete
  # with all that it has printed so far
  outlast attach nightly --tail all

Ctrl-\\ leaves the run running. A run that has a terminal (outlast run -t)
gets your keys and the size of your window.

Exit codes: as outlast run.")]
pub(crate) struct Attach {
    #[arg(help = super::RUN_OR_ONLY, default_value = super::ONLY, hide_default_value = true)]
    pub(crate) run: String,
    /// Lines of earlier output: a number, or all; one screen on a terminal
    #[arg(short = 'n', long, value_name = "LINES", value_parser = parse_tail)]
    pub(crate) tail: Option<Tail>,
}

/// How much of the output that is there already is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    All,
    Lines(u64),
}

fn parse_tail(text: &str) -> Result<Tail, String> {
    match text {
        "all" => Ok(Tail::All),
        other => other.parse().map(Tail::Lines).map_err(|_| "write a number, or all".to_owned()),
    }
}

/// Wait until runs have ended, and exit as they did
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast wait nightly && ./deploy.sh
  # until both have ended, for an hour at most
  outlast wait --timeout 1h build test
  # until the first of them has ended
  outlast wait --any build test

Exit codes: 0 all completed, 124 timed out; else that of the first run, in
the order given, that did not complete: as outlast run.")]
pub(crate) struct Wait {
    #[arg(value_name = "RUN", help = super::RUN_OR_ONLY)]
    #[arg(default_value = super::ONLY, hide_default_value = true)]
    pub(crate) runs: Vec<String>,
    /// Give up after this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Return when the first one has ended
    #[arg(long)]
    pub(crate) any: bool,
    /// Wait for its children too, and for theirs
    #[arg(long, conflicts_with = "any")]
    pub(crate) tree: bool,
    /// Print each run as JSON when it has ended, one per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Watch all runs live on one screen, and steer them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # ? lists the keys, q quits
  outlast top
  # without colours
  NO_COLOR=1 outlast top
  # on another machine
  ssh -t build outlast top

Runs that need a person come first. Quitting stops no run. Without a
terminal, use outlast ps.")]
pub(crate) struct Top {
    /// Start without the runs that have ended
    #[arg(long)]
    pub(crate) open: bool,
}
