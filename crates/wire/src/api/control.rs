//! What is said to a run while it goes on.

use serde::{Deserialize, Serialize};

use crate::shim::EnvVar;

/// `POST /v1/runs/{run}/stop`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StopRun {
    /// Kill at once instead of asking first.
    #[serde(default)]
    pub now: bool,
    /// Chosen by the client: the same id is the same order. Made by the daemon when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// With all of its children, and with theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tree: bool,
}

/// `POST /v1/runs/{run}/pause` and `POST /v1/runs/{run}/resume`; the body may be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OrderRun {
    /// Chosen by the client: the same id is the same order. Made by the daemon when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The number of the last event that the giver has seen. A resume releases no pause and no block that
    /// came later; a pause is refused after a resume that came later. Without it the order is for the run as
    /// the daemon finds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// With all of its children, and with theirs. A resume takes their pauses back; what is blocked stays blocked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tree: bool,
}

/// `POST /v1/runs/{run}/raise`: more room for a run that goes on or was exhausted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default)]
pub struct RaiseRun {
    /// Chosen by the client: the same id is the same order. Made by the daemon when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<More>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<More>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd_micros: Option<More>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_timeout_ms: Option<More>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_timeout_ms: Option<More>,
    /// The environment that an exhausted run goes on with: its own was removed when it ended. A run that goes on keeps
    /// the one it has.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env: Vec<EnvVar>,
    /// What of it was set with `--env`.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env_set: Vec<EnvVar>,
}

/// A limit to come: `{"to": 30}`, or `{"by": 10}` more than it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum More {
    To(u64),
    By(u64),
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
    /// Whether the turn that runs has it, or the next one gets it; absent for a command that is not driven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaches: Option<Reaches>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Reaches {
    /// The agent that is at work has taken it.
    ThisTurn,
    /// It is kept. The agent that is at work can take it after the step it is at, or else the next turn gets it.
    NextStep,
    /// It is kept until a turn begins.
    NextTurn,
}

/// `POST /v1/runs/{run}/answer`: releases a run that is blocked on a person.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AnswerRun {
    /// Chosen by the client: the same id is the same answer. Made by the daemon when absent.
    #[serde(default)]
    pub id: Option<String>,
    /// The `asks.seq` of the run: the question that this answers. Any other is refused. Without it the answer
    /// is for the question that the daemon finds open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
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
