//! A run and all that belong to it, as clients see them.

use serde::{Deserialize, Serialize};

use super::RunRow;

/// `GET /v1/runs/{run}/tree`: a row as lists have it, and those of its children, the oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunTree {
    #[serde(flatten)]
    pub run: RunRow,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub children: Vec<Self>,
}
