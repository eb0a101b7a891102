//! What `call` takes: a step of a script that is made once, whatever ends in between.

use std::ffi::OsString;

use clap::{Args, ValueEnum};

/// Run a command once per key, however often the turn is tried
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # in a script that `outlast run` started: each step is made once
  outlast call --key fetch --class idempotent -- curl -O example.org/data
  outlast call --key pay -- ./pay.sh 100
  # the calls of a run, and what became of each
  outlast call --run nightly --list
  # a person has looked: the effect is there, or the call may be made again
  outlast call --run nightly --key pay --resolve made

The result is stored. A second call under the same key does not run the
command: it prints the stored output and exits with the stored code. Other
arguments under the same key are refused. If it is not known how a call
ended, a call of class unsafe is refused until the attempt has ended and a
person resolves it; the other classes are made again. A key belongs to its
turn; one that begins with $OUTLAST_RUN_ID/ belongs to the whole run.")]
#[command(
    override_usage = "outlast call --key KEY [OPTIONS] -- COMMAND...\n       outlast call [--run RUN] --list\n       outlast call --run RUN --key KEY --resolve <made|again>"
)]
pub(crate) struct Call {
    /// The name of the step within its turn
    #[arg(long, value_name = "KEY", required_unless_present = "list")]
    pub(crate) key: Option<String>,
    /// Whether it may be made twice
    #[arg(long, value_enum, default_value = "unsafe")]
    pub(crate) class: Class,
    /// Make it again if it ended with another status than 0
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// List the calls of the run
    #[arg(long, conflicts_with_all = ["key", "resolve", "command", "retry_failed"])]
    pub(crate) list: bool,
    /// Say what became of a call whose end was not observed
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with = "command")]
    pub(crate) resolve: Option<Resolve>,
    /// The run; default: OUTLAST_RUN_ID. Commands are run only for the run that they are in
    #[arg(long, value_name = "RUN", conflicts_with = "command")]
    pub(crate) run: Option<String>,
    /// Print errors, the list and what was resolved as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["list", "resolve"])]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Class {
    /// It changes nothing
    Read,
    /// The second time finds the work of the first
    Idempotent,
    /// Its receiver knows the key, which is in OUTLAST_CALL_KEY
    Keyed,
    /// It does harm
    Unsafe,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Resolve {
    /// Its effect is there
    Made,
    /// It may be made again
    Again,
}
