//! The command line: every verb, its arguments and its help.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::duration::{self, Since};
use crate::output::errors::Errors;

/// Run agent loops that outlast the terminal, the daemon and the machine's uptime
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 100, subcommand_required = true)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  outlast run -d -- make -j8      start a run and get its id
  outlast ps                      what is going on
  outlast attach k3m              come back to it by the first letters of its id
  outlast wait k3m && deploy      go on when it has completed

A run is named by its id, the first 3 or more characters of it, or its name.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Ps(Ps),
    Show(Show),
    Logs(Logs),
    Attach(Attach),
    Wait(Wait),
    Stop(Stop),
    Events(Events),
    Rm(Rm),
    Gc(Gc),
    Daemon(Daemon),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
    Version(Version),
}

/// Start a run, and watch it unless -d is given
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast run -- ./long-job.sh                      start and watch; ctrl-\\ leaves it running
  outlast run -d --name nightly -- make check       start, print the id, return
  outlast run -d --key build-42 -- make             asking again with the same key makes no second run
  outlast run --retry 3 --backoff 30s -- ./flaky    try up to 4 times
  outlast run -t -- htop                            with a terminal of its own

The command gets this environment and directory, as under nohup.
Exit codes when watching: 0 completed, 1 failed, 2 refused, 3 blocked, 4 exhausted, 5 stopped,
6 outcome unknown, 7 daemon unreachable, 130 detached.")]
pub(crate) struct Run {
    /// Print the run's id and return once the run is safe on disk
    #[arg(short, long)]
    pub(crate) detach: bool,
    /// A name for the run
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Make at most one run for this key, however often this is called
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// Give the command a terminal
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// Set an environment variable on top of the current environment
    #[arg(long, value_name = "K=V", value_parser = clap::builder::OsStringValueParser::new())]
    pub(crate) env: Vec<OsString>,
    /// Run in this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// End an attempt that takes longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) turn_timeout: Option<Duration>,
    /// End an attempt that is silent for longer than this
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) stall: Option<Duration>,
    /// End the run when it has taken longer than this, whatever it is doing
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_limit)]
    pub(crate) run_timeout: Option<Duration>,
    /// Try a failed attempt again up to this many times
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,
    /// The delay before the first retry; it doubles up to 5 minutes
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(crate) backoff: Option<Duration>,
    /// The run that this one belongs to
    #[arg(long, value_name = "RUN")]
    pub(crate) parent: Option<String>,
    /// A label to find the run by
    #[arg(long, value_name = "K=V", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// What the run is for, in words
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
    /// With -d, print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// List runs, the newest first
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast ps                       runs that have not ended
  outlast ps -a                    all of them
  outlast ps --state failed        those that failed
  outlast ps --label repo=web      those with a label
  outlast ps -a --json | jq '.[].id'")]
pub(crate) struct Ps {
    /// Also show runs that have ended
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only runs in this state
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<State>,
    /// Only runs with this label; may be given more than once
    #[arg(long, value_name = "K=V", value_parser = parse_label)]
    pub(crate) label: Vec<(String, String)>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show all that is known about a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast show k3m
  outlast show nightly --json | jq .exit")]
pub(crate) struct Show {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print what a run has written, byte for byte
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast logs k3m                          all of it
  outlast logs -f --tail 20 k3m             the last 20 lines and what comes
  outlast logs k3m --since 10m              of the last 10 minutes
  outlast logs k3m --stream stderr 2>err    only standard error
  outlast logs k3m --attempt 2              of the second attempt")]
pub(crate) struct Logs {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Go on with what comes, until the run ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only this turn
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u32>,
    /// Only this attempt
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Only this stream
    #[arg(long)]
    pub(crate) stream: Option<Stream>,
    /// Only what came after a time (RFC 3339), or in the last such while (10m)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub(crate) since: Option<Since>,
    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<u64>,
    /// Begin each line with the time it came at
    #[arg(long)]
    pub(crate) timestamps: bool,
}

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

/// Print what has happened to a run
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast events k3m
  outlast events -f --json k3m | jq -c 'select(.kind == \"StateChanged\")'
  outlast events k3m --after 12")]
pub(crate) struct Events {
    /// Its id, the first 3 or more characters of it, or its name
    pub(crate) run: String,
    /// Go on with what happens, until the run ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only what came after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub(crate) after: u64,
    /// Print one JSON object a line
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

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast completions bash > ~/.local/share/bash-completion/completions/outlast
  outlast completions zsh > ~/.zfunc/_outlast
  outlast completions fish > ~/.config/fish/completions/outlast.fish")]
pub(crate) struct Completions {
    /// The shell to make it for
    pub(crate) shell: Shell,
}

/// Print the manual page, or write all pages to a directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast man | man -l -
  outlast man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Where to write the pages
    pub(crate) dir: Option<PathBuf>,
}

/// Print the version
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast version\n  outlast version --json")]
pub(crate) struct Version {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    Queued,
    Preparing,
    Running,
    Waiting,
    Verifying,
    Blocked,
    Finishing,
    Completed,
    Failed,
    Stopped,
    Exhausted,
}

impl State {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Verifying => "verifying",
            Self::Blocked => "blocked",
            Self::Finishing => "finishing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Exhausted => "exhausted",
        }
    }

    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Stopped | Self::Exhausted)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl Command {
    /// Who reads this command's errors.
    pub(crate) fn errors(&self) -> Errors {
        let json = match self {
            // A watched run's standard output is its own.
            Self::Run(run) => run.json && run.detach,
            Self::Ps(ps) => ps.json,
            Self::Show(show) => show.json,
            Self::Wait(wait) => wait.json,
            Self::Stop(stop) => stop.json,
            Self::Events(events) => events.json,
            Self::Rm(rm) => rm.json,
            Self::Gc(gc) => gc.json,
            Self::Daemon(daemon) => daemon.command.json(),
            Self::Doctor(doctor) => doctor.json,
            Self::Version(version) => version.json,
            Self::Logs(_) | Self::Attach(_) | Self::Completions(_) | Self::Man(_) => false,
        };
        if json { Errors::Json } else { Errors::ForPeople }
    }
}

impl DaemonCommand {
    fn json(&self) -> bool {
        match self {
            Self::Start { json } | Self::Status { json } | Self::Stop { json } => *json,
            Self::Run(_) | Self::Logs { .. } => false,
        }
    }
}

pub(crate) fn parse() -> Result<Cli, clap::Error> {
    Cli::try_parse()
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written key=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_examples() {
        for verb in Cli::command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:") || verb.has_subcommands(), "{}", verb.get_name());
        }
    }

    #[test]
    fn a_command_keeps_its_own_options() {
        let cli =
            Cli::try_parse_from(["outlast", "run", "-d", "--", "sh", "-c", "exit 1", "--json"]);
        let Command::Run(run) = cli.expect("a good command line").command else { panic!("run") };
        assert_eq!(run.command, ["sh", "-c", "exit 1", "--json"]);
        assert!(!run.json);
    }

    #[test]
    fn a_bad_duration_says_what_to_write() {
        let error = Cli::try_parse_from(["outlast", "run", "--stall", "5x", "--", "true"]);
        let text = error.expect_err("not a duration").to_string();
        assert!(text.contains("write 90s, 5m, 2h, 1h30m or 500ms"), "{text}");
    }
}
