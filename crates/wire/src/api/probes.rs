//! What probes are answered.

use serde::{Deserialize, Serialize};

/// `GET /healthz`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alive {
    /// `ok`
    pub status: String,
}

/// `GET /readyz`: 200 if nothing is in the way, 503 otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Ready {
    /// `ready` or `not_ready`
    pub status: String,
    pub reasons: Vec<Unready>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Unready {
    /// `loading`, `leaving`, `disk_full`, `journal_unwritable`, …
    pub code: String,
    pub message: String,
}
