//! The command line: every verb, its arguments and its help, one file for each group of verbs.

mod agents;
mod control;
mod daemon;
mod list;
mod loop_file;
mod program;
mod run;
mod sink;
mod spend;
mod trigger;
mod watch;

pub(crate) use agents::{Agents, AgentsCommand, TestAgent};
pub(crate) use control::{Answer, Gc, Pause, Recover, Resume, Rm, Send, Stop};
pub(crate) use daemon::{
    Daemon, DaemonCommand, DaemonInstall, DaemonLogs, DaemonRun, DaemonStatus, DaemonUninstall,
    Doctor, LogLevel,
};
pub(crate) use list::{Events, Logs, Ps, Show, Sort, Stream, Tree};
pub(crate) use loop_file::{Check, Import, ImportFrom, Schema};
pub(crate) use program::{Completions, Man, Version};
pub(crate) use run::Run;
pub(crate) use sink::{Sink, SinkCommand};
pub(crate) use spend::{Budgets, Usage};
pub(crate) use trigger::{
    Missed, Overlap, Schedule, ScheduleAdd, ScheduleCommand, ScheduleNext, Source, Trigger,
    TriggerAdd, TriggerCommand, TriggerName, TriggerNow, When,
};
pub(crate) use watch::{Attach, Top, Wait};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::output::errors::Errors;

/// Run agent loops that outlast the terminal, the daemon and the machine's uptime
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 100, subcommand_required = true)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
#[command(after_help = "\
Examples:
  outlast run -d -- make -j8      start a run and get its id
  outlast run -f WORKFLOW.md      start the loop that a file describes, and watch it
  outlast ps                      what is going on
  outlast top                     the same, live
  outlast attach k3m              come back to it by the first letters of its id
  outlast wait k3m && deploy      go on when it has completed

A run is named by its id, the first 3 or more characters of it, or its name.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Command {
    Run(Box<Run>),
    Ps(Ps),
    Top(Top),
    Show(Show),
    Tree(Tree),
    Logs(Logs),
    Attach(Attach),
    Wait(Wait),
    Stop(Stop),
    Send(Send),
    Answer(Answer),
    Pause(Pause),
    Resume(Resume),
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
    Check(Check),
    Import(Import),
    Daemon(Daemon),
    Doctor(Doctor),
    Completions(Completions),
    Man(Man),
    Version(Version),
}

impl Command {
    /// Who reads this command's errors.
    pub(crate) fn errors(&self) -> Errors {
        let json = match self {
            // A watched run's standard output is its own.
            Self::Run(run) => run.json && run.detach,
            Self::Ps(ps) => ps.json,
            Self::Show(show) => show.json,
            Self::Tree(tree) => tree.json,
            Self::Wait(wait) => wait.json,
            Self::Stop(stop) => stop.json,
            Self::Send(send) => send.json,
            Self::Answer(answer) => answer.json,
            Self::Pause(pause) => pause.json,
            Self::Resume(resume) => resume.json,
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
            Self::Top(_) => false,
            Self::Logs(_) | Self::Attach(_) | Self::Completions(_) | Self::Man(_) => false,
        };
        if json { Errors::Json } else { Errors::ForPeople }
    }
}

/// Only the verb that is typed is put together, which is a third of a short command's time. Whatever is not a
/// good command line, a wish for help among it, is read again with all of them.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    Cli::try_parse().or_else(|_| Cli::from_arg_matches(&whole().try_get_matches()?))
}

/// The command line with every verb put together, for those who look at it.
pub(crate) fn whole() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written key=value".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        whole().debug_assert();
    }

    #[test]
    fn every_verb_has_examples() {
        for verb in whole().get_subcommands() {
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
    fn an_answer_is_one_of_three() {
        let answer = |args: &[&str]| {
            Cli::try_parse_from([&["outlast", "answer", "k3m"], args].concat()).is_ok()
        };
        for good in [&["--approve"][..], &["--deny"], &["use the other one"], &["-"]] {
            assert!(answer(good), "{good:?}");
        }
        for bad in [&[][..], &["--approve", "--deny"], &["--approve", "yes"]] {
            assert!(!answer(bad), "{bad:?}");
        }
    }

    #[test]
    fn ceilings_of_nothing_are_refused() {
        for option in ["--max-turns", "--max-tokens", "--max-cost"] {
            let run = |value| Cli::try_parse_from(["outlast", "run", option, value, "--", "true"]);
            assert!(run("0").is_err(), "{option} 0");
            assert!(run("3").is_ok(), "{option} 3");
        }
    }

    #[test]
    fn a_bad_duration_says_what_to_write() {
        let error = Cli::try_parse_from(["outlast", "run", "--stall", "5x", "--", "true"]);
        let text = error.expect_err("not a duration").to_string();
        assert!(text.contains("write 90s, 5m, 2h, 1h30m or 500ms"), "{text}");
    }
}
