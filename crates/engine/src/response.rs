//! What an agent answers at the end of a turn. How it is written down is the agents' business; this is
//! what it means.

use serde::{Deserialize, Serialize};

use crate::{Impediment, NeverStarted, Time, TurnStatus};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    pub status: TurnStatus,
    pub summary: String,
    /// Takes the task's place, for the turns that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_task: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Before the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
}

/// A tool of the host that the agent wants called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub name: String,
    /// JSON, as the agent wrote it.
    pub input: String,
    /// Names the call: one that completed is never made again under its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What a turn has used up; `None` where the agent did not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cached_tokens: Option<u64>,
    pub cost_usd_micros: Option<u64>,
}

/// What the agent wants to wait for. A message ends any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    Until(Time),
    /// Until the agent's provider lets it go on. A message does not end this one.
    RateLimit(Time),
    Children,
    Message,
}

/// How an attempt answered, as its daemon found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// There is no response.
    None,
    Given(Box<Response>),
    /// There is one, and it cannot be used.
    Bad {
        why: String,
    },
    /// The attempt was a driver, and its agent's program could not be started: nothing of the agent ran.
    NoProgram {
        code: NeverStarted,
        why: String,
    },
    /// Something kept the agent from its turn.
    Impeded {
        by: Impediment,
        until: Option<Time>,
        why: String,
        /// The agent's own name of the question that it ended with.
        question: Option<String>,
    },
}
