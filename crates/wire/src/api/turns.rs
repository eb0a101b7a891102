//! One turn of a run, as it can be looked into afterwards.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Usage;
use crate::shim::Exit;

/// `GET /v1/runs/{run}/turns/{turn}`: what was asked, what was answered, and what the host did about it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnView {
    pub run: String,
    pub turn: u32,
    #[serde(default)]
    pub committed: Option<CommittedView>,
    #[serde(default)]
    pub attempts: Vec<AttemptView>,
    /// Hooks, checks and tool calls that belong to the turn.
    #[serde(default)]
    pub errands: Vec<ErrandView>,
    #[serde(default)]
    pub tools: Option<ToolsView>,
}

/// What the turn was committed as.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommittedView {
    pub attempt: u32,
    pub at: String,
    /// `continue`, `done`, `blocked` or `failed`.
    pub status: String,
    /// `meaningful_completion`, `no_op_success` or `escalation_blocker`.
    pub outcome: String,
    #[serde(default)]
    pub summary: Option<String>,
    #[serde(default)]
    pub next_task: Option<String>,
    #[serde(default)]
    pub tool_calls: Vec<Value>,
    #[serde(default)]
    pub usage: Option<Usage>,
    /// `None` if the daemon could not tell.
    #[serde(default)]
    pub workspace_changed: Option<bool>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttemptView {
    pub attempt: u32,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub ended_at: Option<String>,
    /// `exited`, `signaled`, `stalled`, …; `None` while it lives.
    #[serde(default)]
    pub outcome: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Exit>))]
    pub exit: Option<Exit>,
    #[serde(default)]
    pub output_bytes: u64,
    /// What it was told about the attempts before it.
    #[serde(default)]
    pub note: Option<Value>,
    #[serde(default)]
    pub prompt: Option<String>,
    #[serde(default)]
    pub request: Option<Value>,
    /// As JSON if it is that, otherwise as a string of what was written.
    #[serde(default)]
    pub response: Option<Value>,
    #[serde(default)]
    pub output_tail: String,
    /// It printed something, or may have, and its log is no longer on disk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_gone: bool,
    #[serde(default)]
    pub usage: Option<Usage>,
    /// What an agent that is driven did in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<super::AgentAttempt>,
}

/// A command of the host: a hook, a check or a tool call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrandView {
    pub number: u32,
    /// `hook before_run`, `check done 2/3`, `tool fetch`.
    pub purpose: String,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub ended_at: Option<String>,
    #[serde(default)]
    pub outcome: Option<String>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Exit>))]
    pub exit: Option<Exit>,
    #[serde(default)]
    pub output_tail: String,
}

/// Which tools the agent was offered, and which of its calls were turned down.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolsView {
    #[serde(default)]
    pub model_class: String,
    #[serde(default)]
    pub allowed: Vec<String>,
    #[serde(default)]
    pub unavailable: Vec<UnavailableTool>,
    #[serde(default)]
    pub refused: Vec<RefusedCall>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnavailableTool {
    pub name: String,
    pub reason_code: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefusedCall {
    pub call: u32,
    pub name: String,
    pub reason_code: String,
    pub why: String,
}
