//! What an agent inside a run says and is told through its MCP server, besides calls and children.

use serde::{Deserialize, Serialize};

use super::CallClass;

/// The label of a run that is a background process of its parent.
pub const PROCESS_LABEL: &str = "outlast.process";
/// The process ends with its parent.
pub const PROCESS_BOUND: &str = "bound";
/// The process goes on when its parent has ended.
pub const PROCESS_KEPT: &str = "kept";

/// `POST /v1/runs/{run}/notes`: only the live attempt of the run may, by its token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TakeNote {
    /// Chosen by the client, so that asking again after a lost answer takes no second note.
    #[serde(default)]
    pub id: Option<String>,
    pub kind: NoteKind,
    #[serde(default)]
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum NoteKind {
    /// For the next attempt and the next turn.
    Note,
    /// How far the attempt is.
    Checkpoint,
    /// The agent was shown the tools of the run's MCP server.
    ToolsListed,
}

/// `GET /v1/runs/{run}/tools`: a tool that the loop file declares, for the live attempt of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ToolView {
    pub name: String,
    pub command: Vec<String>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
    pub input_schema: Option<serde_json::Value>,
    pub class: CallClass,
    pub timeout_ms: u64,
}
