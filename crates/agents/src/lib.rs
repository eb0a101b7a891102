//! What executes a turn: argv out, and later lines in. Pure parsing, one file a kind; words of vendors
//! occur here and nowhere else in the core.

pub mod exec;

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

/// The plan for one attempt of `agent`.
pub fn plan(agent: &Agent) -> Result<Plan, Error> {
    match agent.kind.as_str() {
        exec::KIND => exec::plan(agent),
        other => Err(Error::UnknownKind { kind: other.to_owned() }),
    }
}
