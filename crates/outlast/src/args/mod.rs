//! The command line: every verb, its arguments and its help, one file for each group of verbs.

mod again;
mod agents;
pub(crate) mod aliases;
mod call;
mod config;
mod control;
mod daemon;
pub(crate) mod groups;
mod init;
mod list;
mod loop_file;
mod mcp;
mod pick;
mod program;
mod report;
mod rewind;
mod run;
mod sink;
mod spend;
mod start;
pub(crate) mod suggest;
mod trigger;
mod watch;
mod web;

#[cfg(test)]
mod hints;
#[cfg(test)]
mod tests;

pub(crate) use again::{Exec, More, Path, Raise, Rerun};
pub(crate) use agents::{Agents, AgentsCommand, TestAgent};
pub(crate) use call::{Call, Class, Resolve};
pub(crate) use config::{Config, ConfigCommand};
pub(crate) use control::{Answer, Gc, Pause, Recover, Resume, Rm, Send, Stop};
pub(crate) use daemon::{
    Daemon, DaemonCommand, DaemonInstall, DaemonLogs, DaemonRun, DaemonStatus, DaemonUninstall,
    Doctor, LogLevel,
};
pub(crate) use init::Init;
pub(crate) use list::{Diff, Events, Logs, Ps, Show, Sort, Stream, Tree};
pub(crate) use loop_file::{Check, Import, ImportFrom, Schema};
pub(crate) use mcp::Mcp;
pub(crate) use pick::Pick;
pub(crate) use program::{Completions, Help, Man, Version};
pub(crate) use report::Report;
pub(crate) use rewind::{Compare, Fork, Merge, Pr, Restore, Setting};
pub(crate) use run::Run;
pub(crate) use sink::{Sink, SinkCommand};
pub(crate) use spend::{Budgets, Usage};
pub(crate) use start::{RunNow, Start};
pub(crate) use trigger::{
    Missed, Overlap, Schedule, ScheduleAdd, ScheduleCommand, ScheduleNext, Source, Trigger,
    TriggerAdd, TriggerCommand, TriggerName, TriggerNames, TriggerNow, When,
};
pub(crate) use watch::{Attach, Tail, Top, Wait};
pub(crate) use web::{Web, WebCommand};

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::output::errors::Errors;

/// Run agent loops that outlast the terminal, the daemon and the machine's uptime
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 80, subcommand_required = true)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  # start a command, get its id, and leave it alone
  outlast run -d --name nightly make -j8
  # start the loop that a file describes, and watch it
  outlast run -f WORKFLOW.md
  # what is running, and what needs you
  outlast ps
  # watch a run again, or wait for its end
  outlast attach nightly
  outlast wait nightly && ./deploy.sh

RUN is a run's name, its id, or the first 3 or more characters of its id;
@last is the newest run. outlast help VERB says more about a verb.
Other names: ls and list for ps, inspect for show, log for logs, kill for
stop --now, status for ps or show.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Run(Box<RunNow>),
    Ps(Ps),
    Top(Top),
    Web(Web),
    Report(Report),
    Show(Show),
    Tree(Tree),
    Diff(Diff),
    Logs(Logs),
    Attach(Attach),
    Wait(Wait),
    Stop(Stop),
    Send(Send),
    Answer(Answer),
    Pause(Pause),
    Resume(Resume),
    Raise(Raise),
    Rerun(Rerun),
    Restore(Restore),
    Fork(Box<Fork>),
    Compare(Compare),
    Merge(Merge),
    Pr(Pr),
    Exec(Exec),
    Path(Path),
    Call(Call),
    Mcp(Mcp),
    Usage(Usage),
    Budgets(Budgets),
    Events(Events),
    Rm(Rm),
    Gc(Gc),
    Recover(Recover),
    Sink(Sink),
    Schedule(Schedule),
    Trigger(Trigger),
    Agents(Agents),
    Init(Init),
    Config(Config),
    Check(Check),
    Import(Import),
    Daemon(Daemon),
    Doctor(Doctor),
    Help(Help),
    Completions(Completions),
    Man(Man),
    Version(Version),
}

impl Command {
    /// Who reads this command's errors.
    pub(crate) fn errors(&self) -> Errors {
        let json = match self {
            // A watched run's standard output is its own.
            Self::Run(now) => now.run.json && now.run.detach,
            Self::Ps(ps) => ps.json,
            Self::Web(web) => web.json(),
            Self::Report(report) => report.json,
            Self::Config(config) => config.command.json(),
            Self::Init(_) => false,
            Self::Show(show) => show.json,
            Self::Tree(tree) => tree.json,
            Self::Diff(diff) => diff.json,
            Self::Wait(wait) => wait.json,
            Self::Stop(stop) => stop.json,
            Self::Send(send) => send.json,
            Self::Answer(answer) => answer.json,
            Self::Pause(pause) => pause.json,
            Self::Resume(resume) => resume.json,
            Self::Raise(raise) => raise.json,
            Self::Rerun(rerun) => rerun.json && rerun.detach,
            Self::Restore(restore) => restore.json,
            Self::Fork(fork) => fork.json,
            Self::Compare(compare) => compare.json,
            Self::Merge(merge) => merge.json,
            Self::Pr(pr) => pr.json,
            Self::Exec(_) | Self::Path(_) => false,
            // The standard output of a call is its own.
            Self::Call(call) => call.json,
            Self::Usage(usage) => usage.json,
            Self::Budgets(budgets) => budgets.json,
            Self::Agents(agents) => agents.json,
            Self::Check(check) => check.json,
            Self::Import(import) => import.json,
            Self::Events(events) => events.json,
            Self::Rm(rm) => rm.json,
            Self::Gc(gc) => gc.json,
            Self::Recover(recover) => recover.json,
            Self::Sink(sink) => sink.command.json(),
            Self::Schedule(schedule) => schedule.command.json(),
            Self::Trigger(trigger) => trigger.command.json(),
            Self::Daemon(daemon) => daemon.command.json(),
            Self::Doctor(doctor) => doctor.json,
            Self::Version(version) => version.json,
            Self::Top(_) | Self::Mcp(_) | Self::Help(_) => false,
            Self::Logs(_) | Self::Attach(_) | Self::Completions(_) | Self::Man(_) => false,
        };
        if json { Errors::Json } else { Errors::ForPeople }
    }
}

impl Command {
    /// The arguments that name runs.
    pub(crate) fn runs(&mut self) -> Vec<&mut String> {
        match self {
            Self::Run(now) => {
                let before = now.start.after.iter_mut().chain(&mut now.start.after_any);
                before.chain(&mut now.run.parent).collect()
            }
            Self::Raise(raise) => vec![&mut raise.run],
            Self::Rerun(rerun) => vec![&mut rerun.run],
            Self::Restore(restore) => vec![&mut restore.run],
            Self::Fork(fork) => vec![&mut fork.run],
            Self::Compare(compare) => compare.runs.iter_mut().collect(),
            Self::Merge(merge) => vec![&mut merge.run],
            Self::Pr(pr) => vec![&mut pr.run],
            Self::Exec(exec) => vec![&mut exec.run],
            Self::Path(path) => vec![&mut path.run],
            Self::Show(show) => vec![&mut show.run],
            Self::Tree(tree) => vec![&mut tree.run],
            Self::Diff(diff) => vec![&mut diff.run],
            Self::Logs(logs) => vec![&mut logs.run],
            Self::Attach(attach) => vec![&mut attach.run],
            Self::Events(events) => events.run.iter_mut().collect(),
            Self::Send(send) => vec![&mut send.run],
            Self::Answer(answer) => vec![&mut answer.run],
            Self::Wait(wait) => wait.runs.iter_mut().collect(),
            Self::Stop(stop) => stop.runs.iter_mut().collect(),
            Self::Pause(pause) => pause.runs.iter_mut().collect(),
            Self::Resume(resume) => resume.runs.iter_mut().collect(),
            Self::Rm(rm) => rm.runs.iter_mut().collect(),
            Self::Call(call) => call.run.iter_mut().collect(),
            Self::Usage(usage) => usage.run.iter_mut().collect(),
            Self::Ps(_) | Self::Top(_) | Self::Budgets(_) | Self::Gc(_) | Self::Recover(_) => {
                Vec::new()
            }
            Self::Sink(_) | Self::Schedule(_) | Self::Trigger(_) | Self::Agents(_) => Vec::new(),
            Self::Check(_) | Self::Import(_) | Self::Daemon(_) | Self::Doctor(_) => Vec::new(),
            Self::Report(_) | Self::Web(_) | Self::Init(_) | Self::Config(_) => Vec::new(),
            Self::Mcp(_) => Vec::new(),
            Self::Help(_) | Self::Completions(_) | Self::Man(_) | Self::Version(_) => Vec::new(),
        }
    }
}

/// The only live run, or the newest if none is live: for verbs that read and name no run.
const ONLY: &str = "@only";

/// What the help says of an argument that names a run.
const RUN: &str = "The run: its name, its id or the start of its id, or @last";
const RUN_OR_ONLY: &str = "The run: its name, its id or the start of its id, or @last; default: the only live run, or else the newest";
const RUNS: &str = "Runs, each by its name, its id or the start of its id, or @last";

/// Only the verb that is typed is put together, which is a third of a short command's time. Whatever is not a
/// good command line, a wish for help among it, is read again with all of them.
pub(crate) fn read(typed: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(typed)
        .or_else(|_| Cli::from_arg_matches(&whole().try_get_matches_from(typed)?))
}

/// The command line with every verb put together, for those who look at it.
pub(crate) fn whole() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    let template = groups::template(&command);
    to_be_read(command).help_template(template)
}

/// As the help and the errors want it. `--max-turns -1` is a wrong number and not an unknown option; it is refused in
/// any case. `-h` and `--help` print the same.
fn to_be_read(command: clap::Command) -> clap::Command {
    let is_number = |arg: &clap::Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        names
            .iter()
            .any(|name| ["N", "NUMBER", "LINES", "SEQ", "USD", "DURATION"].contains(&name.as_str()))
    };
    let change = |arg: clap::Arg| match arg.get_id().as_str() {
        "help" => arg.action(clap::ArgAction::HelpShort).help("Print help"),
        _ if is_number(&arg) => arg.allow_negative_numbers(true),
        _ => arg,
    };
    command.mut_args(change).mut_subcommands(to_be_read)
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written key=value".to_owned()),
    }
}
