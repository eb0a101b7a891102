//! What `daemon` and its verbs take, and `doctor`.

use clap::{Args, Subcommand};

/// Start, stop and look at the daemon
#[derive(Debug, Args)]
#[command(after_help = "\
The first command that needs the daemon starts it; OUTLAST_NO_AUTOSTART=1 forbids that.
Runs go on while it is stopped.")]
pub(crate) struct Daemon {
    #[command(subcommand)]
    pub(crate) command: DaemonCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    Run(DaemonRun),
    /// Start the daemon in the background
    #[command(after_help = "Examples:\n  outlast daemon start")]
    Start {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say whether the daemon runs; never starts it
    #[command(
        after_help = "Examples:\n  outlast daemon status\n  outlast daemon status --json | jq .runs.live\n\nExits with 7 if it does not run."
    )]
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop the daemon; runs go on without it
    #[command(after_help = "Examples:\n  outlast daemon stop")]
    Stop {
        /// Print errors as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the daemon's log
    #[command(after_help = "Examples:\n  outlast daemon logs --tail 50\n  outlast daemon logs -f")]
    Logs {
        /// Go on with what comes
        #[arg(short, long)]
        follow: bool,
        /// Only the last lines
        #[arg(long, value_name = "LINES")]
        tail: Option<usize>,
    },
}

/// Be the daemon, in the foreground
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast daemon run    as a service manager or a container would"
)]
pub(crate) struct DaemonRun {
    /// Wait while another daemon runs, instead of leaving; for service managers
    #[arg(long, conflicts_with = "detached")]
    pub(crate) wait: bool,
    /// Leave the terminal, and say on standard output when ready
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
}

/// Check this Outlast and say what needs attention
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast doctor
  outlast doctor --json | jq '.findings[] | select(.level != \"ok\")'

Exits with 0 if nothing needs a person, 1 otherwise. Works without the daemon too.")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl DaemonCommand {
    pub(super) fn json(&self) -> bool {
        match self {
            Self::Start { json } | Self::Status { json } | Self::Stop { json } => *json,
            Self::Run(_) | Self::Logs { .. } => false,
        }
    }
}
