//! What the driver of a live attempt and the daemon say to each other while the turn goes on.

use serde::{Deserialize, Serialize};

/// `POST /v1/runs/{run}/turn`: where the driver of a live attempt is. It says everything each time, so saying it again
/// is harmless. The answer comes when there is news for the driver, or after a while without.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AtTurn {
    pub turn: u32,
    pub attempt: u32,
    /// What the agent asks a person, and has not been answered.
    #[serde(default)]
    pub questions: Vec<AgentAsks>,
    /// The messages that the agent has taken in this attempt, by their numbers.
    #[serde(default)]
    pub taken: Vec<u64>,
    /// Messages that the driver knows and that the agent has not taken so far.
    #[serde(default)]
    pub left: Vec<u64>,
    /// True if the driver leaves, and waits for nothing.
    #[serde(default)]
    pub is_last: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentAsks {
    /// The agent's own name of the question.
    pub id: String,
    /// The tool that it wants to use; absent for a question of the model.
    #[serde(default)]
    pub tool: Option<String>,
    /// What it would do, or what it asks.
    pub text: String,
}

/// What is news for the driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnNews {
    /// Answers to the questions that the driver named.
    #[serde(default)]
    pub answers: Vec<TurnAnswer>,
    /// Messages that came since the turn began and that the driver did not name.
    #[serde(default)]
    pub messages: Vec<TurnMessage>,
    /// True if this attempt is not alive by the journal: there is nothing to wait for.
    #[serde(default)]
    pub over: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnAnswer {
    /// The agent's own name of the question.
    pub question: String,
    pub answer: super::Answer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnMessage {
    /// The number of the event that brought it.
    pub seq: u64,
    /// What the sender says of itself.
    pub from: String,
    pub text: String,
}
