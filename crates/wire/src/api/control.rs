//! What is said to a run while it goes on.

use serde::{Deserialize, Serialize};

/// `POST /v1/runs/{run}/stop`
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StopRun {
    /// Kill at once instead of asking first.
    #[serde(default)]
    pub now: bool,
}

/// `POST /v1/runs/{run}/messages`: for the next turn; a run that rests for a message wakes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SendMessage {
    /// Chosen by the client, so that asking again after a lost answer sends no second message; made by
    /// the daemon when absent.
    #[serde(default)]
    pub id: Option<String>,
    pub text: String,
    /// The run that it comes from, if it comes from one.
    #[serde(default)]
    pub from: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Sent {
    /// The message's id.
    pub message: String,
    /// True if it was there already.
    #[serde(default)]
    pub existed: bool,
}

/// `POST /v1/runs/{run}/answer`: releases a run that is blocked on a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AnswerRun {
    /// Chosen by the client, so that an answer that was given twice counts once.
    #[serde(default)]
    pub id: Option<String>,
    pub answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Answer {
    Approve,
    Deny,
    Text(String),
}
