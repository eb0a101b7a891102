//! The runs as they change, for screens that show all of them.

use serde::{Deserialize, Serialize};

use super::RunRow;

/// The data of one event of `GET /v1/watch`. The list comes first, then what changes in it; a client that
/// lost its daemon asks again and gets the whole list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "news", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum WatchNews {
    /// Who answers. Comes first, and once.
    Hello { pid: u32, version: String, started_at: String },
    /// A run as it is now. Of several changes in a short time only the last is told.
    Row { run: Box<RunRow> },
    /// Every row of the list has come; `truncated` if there are more ended runs than it holds.
    Listed { truncated: bool },
    /// The run was removed.
    Gone { run: String },
    /// For readers: something that they do not know yet.
    #[serde(other)]
    Other,
}
