//! What `daemon` and its verbs take, and `doctor`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::duration::{self, Since};
use crate::service::Manager;

/// Start, stop and look at the daemon
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast daemon status
  outlast daemon restart
  # start it at each login, and at boot with --linger
  outlast daemon install --linger

The first command that needs the daemon starts it, unless the environment
has OUTLAST_NO_AUTOSTART=1. Processes of runs keep running while the daemon
is stopped; loops take no further turn, no schedule fires and no notice is
sent until it is back.")]
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
    /// Stop the daemon; the processes of runs keep running
    #[command(after_help = "Examples:\n  outlast daemon stop")]
    Stop {
        /// Print errors as JSON
        #[arg(long)]
        json: bool,
    },
    /// Replace the daemon by this version of the program; runs keep running
    #[command(after_help = "\
Examples:
  outlast daemon restart

After an upgrade. The new daemon proves that it can read the journal and the
config before the old one leaves; if it cannot, the old one stays and the
exit code is not 0. Starts a daemon if there is none. A service is restarted
by its service manager.")]
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
  # follow warnings and errors
  outlast daemon logs -f --level warn
  # the last hour, one JSON object per line
  outlast daemon logs --since 1h --json")]
pub(crate) struct DaemonLogs {
    /// Keep printing as new lines come
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// Only this level and above
    #[arg(long)]
    pub(crate) level: Option<LogLevel>,
    /// Only lines since a time (22:00, yesterday, 2026-11-15), or of the last while (10m)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub(crate) since: Option<Since>,
    /// Only the last lines
    #[arg(short = 'n', long, value_name = "LINES")]
    pub(crate) tail: Option<usize>,
}

/// The level of a line of the log, the most severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Run the daemon in the foreground
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # as a service manager or a container does
  outlast daemon run")]
pub(crate) struct DaemonRun {
    /// For service managers: replace a background daemon; wait while any other serves
    #[arg(long, conflicts_with = "detached")]
    pub(crate) wait: bool,
    /// Leave the terminal, and say on standard output when ready
    #[arg(long, hide = true)]
    pub(crate) detached: bool,
    /// Take the place of a daemon in the background, once it is certain that this one can read the journal
    #[arg(long, hide = true, requires = "detached")]
    pub(crate) replace: bool,
}

/// Print whether the daemon runs; never starts it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast daemon status
  outlast daemon status --json | jq .runs.live

Exit codes: 0 the daemon runs, 7 it does not.")]
pub(crate) struct DaemonStatus {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Another service manager than this system's, for tests
    #[arg(long, hide = true)]
    pub(crate) manager: Option<Manager>,
}

/// Have systemd or launchd start the daemon now and at each login
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast daemon install
  # also at boot before you log in, and after you log out
  outlast daemon install --linger
  # the page as well
  outlast daemon install --web
  # only print the service file
  outlast daemon install --print

Installing twice changes nothing. If the installation fails, the reason and
what to do instead are printed, and the exit code is 1. A daemon in the
background hands over to the service; runs keep running.")]
pub(crate) struct DaemonInstall {
    /// Only print what would be done
    #[arg(long, conflicts_with_all = ["print", "linger", "strict"])]
    pub(crate) dry_run: bool,
    /// Only print the file that would be written
    #[arg(long, conflicts_with_all = ["linger", "strict", "json"])]
    pub(crate) print: bool,
    /// Also run while you are logged out, from boot on (loginctl enable-linger)
    #[arg(long)]
    pub(crate) linger: bool,
    /// Also serve the page, as a second service (systemd); outlast web url prints a link
    #[arg(long)]
    pub(crate) web: bool,
    /// Exit with 1 unless the service is installed and runs: what it always does
    #[arg(long, hide = true)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Another service manager than this system's, for tests
    #[arg(long, hide = true)]
    pub(crate) manager: Option<Manager>,
}

/// Remove the service; runs keep running
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast daemon uninstall

If no service is installed, this prints so and exits with 0.")]
pub(crate) struct DaemonUninstall {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Another service manager than this system's, for tests
    #[arg(long, hide = true)]
    pub(crate) manager: Option<Manager>,
}

/// Check this installation, and list what needs attention
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast doctor
  outlast doctor --json | jq '.findings[] | select(.level != \"ok\")'
  # write a file for a bug report, with nothing private in it
  outlast doctor --bundle report.tar.gz

Exit codes: 0 nothing needs a person, 1 something does. Works without the
daemon, too.")]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a bundle for a bug report: no tasks, output, arguments, names, secrets
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
