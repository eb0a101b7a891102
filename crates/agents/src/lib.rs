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
mod silence;
pub mod tool_input;
pub mod tools;

pub use kinds::{AnswersBy, KINDS, Kind, kind};

use adapter::{Capabilities, Declared};
use outlast_engine::{Agent, Driving, RunSpec};

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

/// True if a driver speaks to this agent.
pub fn is_driven(agent: &Agent, driving: &Driving) -> bool {
    driving.declared.is_some() || adapter::driven(&agent.kind).is_some()
}

/// The operator's table of the run's agent, as it was when the run was made; `None` if its kind is built in.
pub fn declared(driving: &Driving) -> Result<Option<Declared>, serde_json::Error> {
    driving.declared.as_deref().map(serde_json::from_str).transpose()
}

/// What the run's agent can do, if it is driven.
pub fn capabilities(spec: &RunSpec) -> Option<Capabilities> {
    match declared(&spec.driving) {
        Ok(Some(table)) => Some(table.capabilities()),
        Ok(None) => adapter::driven(&spec.agent.kind).map(|built_in| built_in.capabilities),
        // A table that cannot be read fails the attempt, which says so.
        Err(_) => None,
    }
}

/// True if the run's agent can go on with a copy of a conversation that ends with an earlier turn.
pub fn can_fork(spec: &RunSpec) -> bool {
    let kind = match declared(&spec.driving) {
        Ok(Some(table)) => table.like,
        Ok(None) => Some(spec.agent.kind.clone()),
        Err(_) => None,
    };
    let agent = kind.and_then(|kind| adapter::driven(&kind));
    agent.is_some_and(|agent| !matches!(agent.forks, adapter::Forks::No))
}

/// How a person logs the run's agent in again, if that is known.
pub fn login(spec: &RunSpec) -> Option<String> {
    let of_table = |table: Declared| table.login().map(str::to_owned);
    match declared(&spec.driving) {
        Ok(Some(table)) => of_table(table),
        Ok(None) => adapter::driven(&spec.agent.kind).map(|kind| kind.login.to_owned()),
        // Such a run is not started, and needs no login.
        Err(_) => None,
    }
}

/// True if an attempt of this run that left no response has not answered, however it exited.
pub fn must_answer(spec: &RunSpec) -> bool {
    let answers_by = kind(&spec.agent.kind).and_then(|kind| kind.answers_by);
    is_driven(&spec.agent, &spec.driving) || answers_by == Some(AnswersBy::ResponseFile)
}

/// Refuses an agent that could not be started, whatever it is asked.
pub fn check(agent: &Agent, driving: &Driving) -> Result<(), Error> {
    let built_in = adapter::driven(&agent.kind);
    let needs_command = driving.declared.is_none() && built_in.is_some_and(|it| it.needs_command);
    match is_driven(agent, driving) {
        true if agent.command.is_empty() && !needs_command => Ok(()),
        true => exec::plan(agent).map(|_| ()),
        false => plan(agent).map(|_| ()),
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
        let of = |kind: &str| {
            RunSpec::command(Agent { kind: kind.to_owned(), command: Vec::new() }, String::new())
        };
        assert!(!must_answer(&of("exec")) && must_answer(&of("file")) && must_answer(&of("pi")));
        let mut declared = of("exec");
        declared.driving.declared = Some("{}".to_owned());
        assert!(must_answer(&declared), "its table counts, whatever its name is");
    }

    #[test]
    fn how_to_log_in_is_the_tables_word_or_that_of_the_agent_it_is_like() {
        let mut spec =
            RunSpec::command(Agent { kind: "pi".to_owned(), command: Vec::new() }, String::new());
        let of_pi = login(&spec).expect("it is built in");
        let mut by_table = |json: &str| {
            spec.driving.declared = Some(json.to_owned());
            login(&spec)
        };
        assert_eq!(by_table(r#"{"like":"pi"}"#), Some(of_pi));
        assert_eq!(by_table(r#"{"like":"pi","login":"x login"}"#).as_deref(), Some("x login"));
        assert_eq!(by_table(r#"{"command":["x"]}"#), None);
        assert_eq!(by_table("{"), None);
    }

    #[test]
    fn an_agent_with_a_table_needs_no_command_and_takes_no_zero_byte() {
        let agent = |command: &[&str]| Agent {
            kind: "mine".to_owned(),
            command: command.iter().map(|&word| word.to_owned()).collect(),
        };
        let table = Driving { declared: Some("{}".to_owned()), ..Driving::default() };
        assert_eq!(check(&agent(&[]), &table), Ok(()));
        assert_eq!(check(&agent(&["a\0"]), &table), Err(Error::ZeroByte));
        let unknown = Err(Error::UnknownKind { kind: "mine".to_owned() });
        assert_eq!(check(&agent(&["a"]), &Driving::default()), unknown);
    }
}
