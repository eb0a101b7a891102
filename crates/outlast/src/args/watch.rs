//! What the verbs take that stay with runs: `attach`, `wait`, `top`.

use std::time::Duration;

use clap::Args;

use crate::duration;

/// Come back to a run: what it has written, then what it writes
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast attach k3m
  outlast attach nightly || echo it did not complete

Ctrl-\\ leaves the run going. A run with a terminal gets your keys and window size.
Exit codes are those of outlast run.")]
pub(crate) struct Attach {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
}

/// Wait until runs have ended
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast wait k3m && deploy
  outlast wait --timeout 1h build test     both
  outlast wait --any build test            whichever is first

Exits with the code of the first run in this order that did not complete, 0 if all did, and 124 if
the time was over before.")]
pub(crate) struct Wait {
    /// Each by its id, the first 3 or more characters of it, or its name
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Give up after this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) timeout: Option<Duration>,
    /// Return when the first of them has ended
    #[arg(long)]
    pub(crate) any: bool,
    /// Print each run as JSON when it has ended, one a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Watch all runs live on one screen, and act on them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast top                     ? shows its keys, q leaves
  NO_COLOR=1 outlast top          without colours
  ssh -t build outlast top        from elsewhere

Runs that need a person come first. Leaving it ends nothing. Without a terminal, outlast ps lists
the same.")]
pub(crate) struct Top {
    /// Begin without the runs that have ended
    #[arg(long)]
    pub(crate) open: bool,
}
