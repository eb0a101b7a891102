//! The small words that events are made of.

use serde::{Deserialize, Serialize};

use crate::ToolCost;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// Ask, wait, then kill.
    Gracefully,
    /// Kill.
    Now,
}

/// What the agent said of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Continue,
    Done,
    Blocked,
    Failed,
}

/// What the turn was worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    MeaningfulCompletion,
    NoOpSuccess,
    EscalationBlocker,
}

impl TurnStatus {
    pub fn word(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Done => "done",
            Self::Blocked => "blocked",
            Self::Failed => "failed",
        }
    }
}

/// What a person said to a run that waits for their word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approve,
    Deny,
    /// Text, which is a message of its own.
    Reply,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedTool {
    pub name: String,
    pub cost: ToolCost,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnavailableTool {
    pub name: String,
    pub reason_code: String,
}

/// A call that the host does not make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    /// Its place among the turn's calls, from 0.
    pub call: u32,
    pub reason_code: String,
    pub why: String,
}
