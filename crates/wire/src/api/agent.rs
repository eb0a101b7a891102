//! What an agent that Outlast drives is at, as clients see it while an attempt lives.

use serde::{Deserialize, Serialize};

use super::Usage;

/// Of a row: which agent, and what it is at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentRow {
    pub kind: String,
    #[serde(flatten)]
    pub activity: Activity,
}

/// What the live attempt of a driven agent is at, by its own events. What is not known is null. Texts are one line
/// each, cut, and without anything that a terminal obeys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Activity {
    pub model: Option<String>,
    /// The tool that runs now: of several the one that was started last.
    pub tool: Option<ToolNow>,
    /// How many tools run now.
    pub tools: u32,
    /// How much of the agent's work goes on beside the turn.
    pub background: u32,
    pub context: Option<ContextNow>,
    /// What the turn has used so far, earlier attempts at it included. It is not known whole if an attempt did not say
    /// all of it yet.
    pub turn_usage: Option<Usage>,
    /// The agent tries something again by itself.
    pub retrying: Option<RetryNow>,
    /// A limit of the provider that has not passed, by the provider's word.
    pub limit: Option<LimitNow>,
    /// The question that is open.
    pub asks: Option<QuestionNow>,
    /// Why the events cannot be read, or why no more of them are written. Then no tool is known.
    pub unreadable: Option<String>,
    /// So many bytes of the events are not in this: lines that are damaged or too long, or more of them than are read
    /// at once.
    pub unread_bytes: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolNow {
    pub name: String,
    /// What it is used on, in a few words.
    #[serde(default)]
    pub about: String,
    pub since: String,
}

/// In tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ContextNow {
    pub used: u64,
    #[serde(default)]
    pub window: Option<u64>,
    /// From 0 to 1, where the window is known.
    #[serde(default)]
    pub fill: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RetryNow {
    pub attempt: u32,
    #[serde(default)]
    pub most: Option<u32>,
    pub why: String,
    pub since: String,
    /// When it tries again, if the agent has said that.
    #[serde(default)]
    pub until: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitNow {
    pub why: String,
    pub until: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QuestionNow {
    /// The tool that it wants to use; `None` for a question of the model.
    #[serde(default)]
    pub tool: Option<String>,
    pub text: String,
    pub since: String,
}

/// What a driven agent did in one attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentAttempt {
    /// The lines of `agent.jsonl`, in order. Where `omitted` is not 0, the first and the last of them.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub events: Vec<serde_json::Value>,
    /// How many of `events` come before what is omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_after: Option<usize>,
    /// So many bytes in the middle are not in `events`.
    #[serde(skip_serializing_if = "is_none")]
    pub omitted_bytes: u64,
    /// Lines that are no events, or that have no end.
    #[serde(skip_serializing_if = "is_zero")]
    pub damaged_lines: u32,
    /// How the turn ended, by the driver's word; absent if the driver was killed, or lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub end: Option<serde_json::Value>,
    /// What of this cannot be read, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn is_none(bytes: &u64) -> bool {
    *bytes == 0
}
