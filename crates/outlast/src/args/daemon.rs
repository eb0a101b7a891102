//! What `daemon` and its verbs take, and `doctor`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::duration::{self, Since};
use crate::service::Manager;

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
    Status(DaemonStatus),
    /// Stop the daemon; runs go on without it
    #[command(after_help = "Examples:\n  outlast daemon stop")]
    Stop {
        /// Print errors as JSON
        #[arg(long)]
        json: bool,
    },
    /// Have this program take over from the daemon, as after an upgrade; runs and waiting commands go on
    #[command(after_help = "\
Examples:
  outlast daemon restart

The new daemon shows that it can read the journal and the config before the old one leaves; if it cannot, the
old one stays and the exit code is not 0. Starts a daemon if there is none. A service is restarted by its
service manager.")]
    Restart {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Install(DaemonInstall),
    Uninstall(DaemonUninstall),
    Logs(DaemonLogs),
}

/// Print the daemon's log
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast daemon logs --tail 50
  outlast daemon logs -f --level warn       what goes wrong, as it does
  outlast daemon logs --since 1h --json     one object a line")]
pub(crate) struct DaemonLogs {
    /// Go on with what comes
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Only what is at least so bad
    #[arg(long)]
    pub(crate) level: Option<LogLevel>,
    /// Only what came after a time (RFC 3339), or in the last such while (10m)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub(crate) since: Option<Since>,
    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<usize>,
}

/// How bad a line of the log is, from what matters most on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Be the daemon, in the foreground
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast daemon run    as a service manager or a container would"
)]
pub(crate) struct DaemonRun {
    /// Wait while another daemon runs, and take the place of one in the background; for service managers
    #[arg(long, conflicts_with = "detached")]
    pub(crate) wait: bool,
    /// Leave the terminal, and say on standard output when ready
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Take the place of a daemon in the background, once it is certain that this one can read the journal
    #[arg(long, hide = true, requires = "detached")]
    pub(crate) replace: bool,
}

/// Say whether the daemon runs, and as what; never starts it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast daemon status
  outlast daemon status --json | jq .runs.live

Exits with 7 if it does not run.")]
pub(crate) struct DaemonStatus {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Another service manager than this system's, for tests
    #[arg(long, hide = true)]
    pub(crate) manager: Option<Manager>,
}

/// Have systemd or launchd start the daemon by itself, now and at each log-in
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast daemon install
  outlast daemon install --linger     also before you log in, and after you have logged out
  outlast daemon install --print      what would be written

Doing it again changes nothing. If it does not work, that is said, with what to do instead, and the
exit code is still 0; --strict makes it 1. A daemon in the background hands over to the
service's; runs go on meanwhile.")]
pub(crate) struct DaemonInstall {
    /// Print what would be done, and do nothing
    #[arg(long, conflicts_with_all = ["print", "linger", "strict"])]
    pub(crate) dry_run: bool,
    /// Print the file that would be written, and do nothing
    #[arg(long, conflicts_with_all = ["linger", "strict", "json"])]
    pub(crate) print: bool,
    /// Have it outlive your last log-out and start with the machine (systemd: loginctl enable-linger)
    #[arg(long)]
    pub(crate) linger: bool,
    /// Exit with 1 unless it is installed and was seen to run
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Another service manager than this system's, for tests
    #[arg(long, hide = true)]
    pub(crate) manager: Option<Manager>,
}

/// Remove the service; runs go on
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast daemon uninstall\n\nIf nothing is installed, that is said and is fine."
)]
pub(crate) struct DaemonUninstall {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Another service manager than this system's, for tests
    #[arg(long, hide = true)]
    pub(crate) manager: Option<Manager>,
}

/// Check this Outlast and say what needs attention
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast doctor
  outlast doctor --json | jq '.findings[] | select(.level != \"ok\")'
  outlast doctor --bundle report.tar.gz     what a person who helps you needs, and nothing private

Exits with 0 if nothing needs a person, 1 otherwise. Works without the daemon too.")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a bundle for a person who helps you: no tasks, output, arguments, names or secrets
    #[arg(long, value_name = "FILE.tar.gz")]
    pub(crate) bundle: Option<PathBuf>,
    /// Put the names of runs into the bundle
    #[arg(long, requires = "bundle")]
    pub(crate) with_names: bool,
}

impl DaemonCommand {
    pub(super) fn json(&self) -> bool {
        match self {
            Self::Start { json } | Self::Stop { json } | Self::Restart { json } => *json,
            Self::Status(status) => status.json,
            Self::Install(install) => install.json,
            Self::Uninstall(uninstall) => uninstall.json,
            Self::Logs(logs) => logs.json,
            Self::Run(_) => false,
        }
    }
}
