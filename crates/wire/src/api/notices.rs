//! Notices as sinks and clients see them.

use serde::{Deserialize, Serialize};

use outlast_words::{Exit, ReasonCode, StateName, Word};

use super::Usage;

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
    /// What the run has spent until then; `known` is false if some of it was not reported. Absent, as all that
    /// follows, from notices of before there was this.
    #[serde(default)]
    pub usage: Option<Usage>,
    /// From the run's first start until then.
    #[serde(default)]
    pub duration_ms: Option<u64>,
    /// The machine that the run is on.
    #[serde(default)]
    pub host: Option<String>,
    /// What a person is asked, while the run waits for an answer.
    #[serde(default)]
    pub question: Option<String>,
    /// The directory that the run was started in. A command of `--notify cmd:COMMAND` runs there.
    #[serde(default)]
    pub dir: Option<String>,
    /// The question that is open, for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<NoticeAsks>,
    /// Only for a sink with `actions`: each reader of the notice can press them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<NoticeLinks>,
}

/// A question as a notice names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoticeAsks {
    /// The number of the event that asks: what an answer names.
    pub seq: u64,
    /// `approval`, `permission`, `question` or `block`.
    pub kind: String,
}

/// Where a person answers from a notice. An address shows what it would do; a POST to it does it, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoticeLinks {
    /// Absent for a question that no yes and no answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<String>,
    /// The run's page, for which a browser needs a session.
    pub open: String,
}

/// What the link of a notice is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LinkView {
    pub run: String,
    pub name: Option<String>,
    /// `approve` or `deny`.
    pub decision: String,
    /// What is asked, while it is open.
    pub question: Option<String>,
    /// Why the link does nothing more: who answered, and what.
    pub over: Option<String>,
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

impl SinkRow {
    /// True of a sink that a run named by its address, and config.toml does not know.
    pub fn is_address(&self) -> bool {
        self.name == "desktop" || self.name.contains(':')
    }
}

/// Asks for a sink by its name or address.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NamedSink {
    pub sink: String,
    /// Where a command that is tested by its address runs; the root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
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
