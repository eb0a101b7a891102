//! Notices as sinks and clients see them.

use serde::{Deserialize, Serialize};

use crate::shim::Exit;

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
    pub state: String,
    pub reason_code: Option<String>,
    pub exit: Option<Exit>,
    pub summary: Option<String>,
    pub turn: u32,
    /// The last lines of output.
    pub output_tail: String,
}
