//! What executes a turn: an argv out, and its answer in. Pure parsing, one file per kind.
//!
//! `adapter` speaks the protocols of agents, one file each. `kinds` is the table of all kinds, `response` reads what an agent answered, `tools` says why a tool call is
//! refused, and `tool_input` whether its input fits the tool's schema. Nothing here opens a file or starts a process.

pub mod adapter;
pub mod exec;
pub mod file;
mod kinds;
mod quote;
pub mod response;
pub mod tool_input;
pub mod tools;

pub use kinds::{AnswersBy, KINDS, Kind, kind};

use outlast_engine::Agent;

/// How an attempt of some kind is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub argv: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("unknown agent kind {kind}")]
    UnknownKind { kind: String },
    #[error("there is no command to run")]
    NoCommand,
    #[error("the command holds a zero byte")]
    ZeroByte,
}

/// True if an attempt of this kind that left no response has not answered, however it exited.
pub fn must_answer(name: &str) -> bool {
    let answers_by = kind(name).and_then(|kind| kind.answers_by);
    matches!(answers_by, Some(AnswersBy::ResponseFile | AnswersBy::Driver))
}

/// Refuses an agent that could not be started, whatever it is asked.
pub fn check(agent: &Agent) -> Result<(), Error> {
    match adapter::driven(&agent.kind) {
        Some(driven) if agent.command.is_empty() && !driven.needs_command => Ok(()),
        Some(_) => exec::plan(agent).map(|_| ()),
        None => plan(agent).map(|_| ()),
    }
}

/// The plan for one attempt of an agent that is a command itself; a driven one is started by its driver.
pub fn plan(agent: &Agent) -> Result<Plan, Error> {
    match kind(&agent.kind).and_then(|kind| kind.answers_by) {
        Some(AnswersBy::ExitStatus | AnswersBy::ResponseFile) => exec::plan(agent),
        Some(AnswersBy::Driver) | None => Err(Error::UnknownKind { kind: agent.kind.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_runnable_has_a_plan_and_no_other() {
        for kind in &KINDS {
            let agent = Agent { kind: kind.name.to_owned(), command: vec!["true".to_owned()] };
            let planned = plan(&agent).map(|plan| plan.argv);
            let unknown = Err(Error::UnknownKind { kind: agent.kind });
            // What a driven agent is started with, its driver knows.
            let is_planned = kind.is_runnable() && kind.answers_by != Some(AnswersBy::Driver);
            let expected = if is_planned { Ok(agent.command) } else { unknown };
            assert_eq!(planned, expected, "{}", kind.name);
        }
    }

    #[test]
    fn an_exit_status_answers_for_exec_only() {
        assert!(!must_answer("exec") && must_answer("file"));
    }
}
