//! Notices as sinks and clients see them.

use serde::{Deserialize, Serialize};

use outlast_words::{Exit, ReasonCode, StateName, Word};

/// What every sink is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Notice {
    /// `run/attempt/event`: the same however often it is told, so that who is told can tell it is the same.
    pub id: String,
    /// `run.completed`, `run.failed`, `run.stopped`, `run.exhausted`, `run.blocked`, `run.warning`,
    /// `run.matched`, `run.heartbeat` or `run.emitted`.
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: String,
    pub data: NoticeData,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoticeData {
    pub run: String,
    pub name: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word<StateName>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub reason_code: Option<Word<ReasonCode>>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Exit>))]
    pub exit: Option<Exit>,
    pub summary: Option<String>,
    pub turn: u32,
    /// The last lines of output.
    pub output_tail: String,
}

/// Many notices, told as one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoticeBatch {
    pub id: String,
    /// `run.batch`.
    #[serde(rename = "type")]
    pub kind: String,
    pub timestamp: String,
    pub data: BatchData,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BatchData {
    pub count: u32,
    /// A line for each of the first few.
    pub summary: String,
    /// The id of every notice that is told with this.
    pub ids: Vec<String>,
}

/// A sink, and how telling it goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinkRow {
    /// Its name in the config, or its address without what may be secret in it.
    pub name: String,
    /// `None` for a name that is no longer in the config.
    pub kind: Option<String>,
    pub level: Option<String>,
    pub pending: u64,
    pub delivered: u64,
    pub given_up: u64,
    /// When the oldest that waits was written.
    pub oldest_pending_at: Option<String>,
    pub failing_since: Option<String>,
    pub next_try_at: Option<String>,
    pub problem: Option<String>,
    /// Nothing is told to it since then.
    pub disabled_at: Option<String>,
}

/// Asks for a sink by its name or address.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedSink {
    pub sink: String,
}

/// What became of a test notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SinkTested {
    pub sink: String,
    pub kind: String,
    pub delivered: bool,
    /// The id that it was told under.
    pub id: String,
    /// What the sink said, or what went wrong.
    pub detail: String,
}
