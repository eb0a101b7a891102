//! What executes a turn: argv out, and its answer in. Pure parsing, one file a kind; words of vendors
//! occur here and nowhere else in the core.
//!
//! `response` reads what an agent answered, `tools` says which tools it may call, and `tool_input` whether
//! it called one rightly. Nothing here opens a file or starts a process.

pub mod exec;
pub mod file;
mod quote;
pub mod response;
pub mod tool_input;
pub mod tools;

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

/// The kinds that can be run.
pub fn kinds() -> &'static [&'static str] {
    &[exec::KIND, file::KIND]
}

/// True if an attempt of this kind that left no response has not answered, however it exited.
pub fn must_answer(kind: &str) -> bool {
    kind == file::KIND
}

/// The plan for one attempt of `agent`.
pub fn plan(agent: &Agent) -> Result<Plan, Error> {
    match agent.kind.as_str() {
        exec::KIND | file::KIND => exec::plan(agent),
        other => Err(Error::UnknownKind { kind: other.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_that_is_named_has_a_plan() {
        for kind in kinds() {
            let agent = Agent { kind: (*kind).to_owned(), command: vec!["true".to_owned()] };
            assert_eq!(plan(&agent), Ok(Plan { argv: vec!["true".to_owned()] }), "{kind}");
        }
    }

    #[test]
    fn an_exit_status_answers_for_exec_only() {
        let silent: Vec<_> = kinds().iter().filter(|kind| !must_answer(kind)).collect();
        assert_eq!(silent, [&"exec"]);
    }
}
