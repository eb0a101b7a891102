//! One turn of a run, as it can be looked into afterwards.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{TurnSnapshot, Usage};
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
    /// What the turn changed in the workspace; `None` without a snapshot of it.
    #[serde(default)]
    pub snapshot: Option<TurnSnapshot>,
}

/// `GET /v1/runs/{run}/turns`: a turn as lists have it, the newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnRow {
    pub turn: u32,
    pub attempts: Vec<AttemptRow>,
    pub errands: Vec<ErrandRow>,
    /// When it was committed, and as what; see [`CommittedView`].
    pub committed_at: Option<String>,
    pub status: Option<String>,
    pub outcome: Option<String>,
    /// Cut.
    pub summary: Option<String>,
    /// What it changed in the workspace; `None` without a snapshot of it.
    pub changed: Option<ChangedView>,
}

/// An attempt, without what it was told and what it answered.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AttemptRow {
    pub attempt: u32,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    /// `exited`, `signaled`, `stalled`, …; `None` while it goes on.
    pub outcome: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Exit>))]
    pub exit: Option<Exit>,
    /// When daemons took it over that had not started it.
    pub adopted_at: Vec<String>,
    /// When its shim was found dead while its command lived.
    pub orphaned_at: Option<String>,
    pub usage: Option<Usage>,
    /// How long its output is by now, with what was not kept of it.
    pub output_bytes: u64,
    /// The bytes of its output that were not kept.
    pub output_gap: Option<GapView>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GapView {
    pub from: u64,
    pub to: u64,
}

/// A hook, a check or a tool call, without its output.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrandRow {
    pub number: u32,
    /// `hook before_run`, `check done 2/3`, `tool fetch`.
    pub purpose: String,
    pub started_at: String,
    pub ended_at: Option<String>,
    pub outcome: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChangedView {
    pub files: u64,
    pub added: u64,
    pub deleted: u64,
}

/// `GET /v1/runs/{run}/output/search`: where a text is in the output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutputFound {
    pub matches: Vec<OutputMatch>,
    /// How many bytes were looked through.
    pub searched: u64,
    /// Where to go on; absent if all of the output was looked through.
    pub next: Option<OutputPlace>,
}

/// A byte of the output of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutputPlace {
    pub turn: u32,
    pub attempt: u32,
    pub offset: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OutputMatch {
    #[serde(flatten)]
    pub place: OutputPlace,
    /// The line that it is in, as far as it was at hand; what is not UTF-8 is replaced.
    pub line: String,
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
    #[serde(default)]
    pub output_gone: bool,
    #[serde(default)]
    pub usage: Option<Usage>,
    /// What an agent that is driven did in it.
    #[serde(default)]
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
