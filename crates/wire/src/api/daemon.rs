//! The daemon itself, what it removes, and what it finds wrong.

use serde::{Deserialize, Serialize};

/// `GET /v1/daemon`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DaemonStatus {
    pub running: bool,
    pub pid: Option<u32>,
    pub version: Option<String>,
    pub epoch: Option<u64>,
    pub started_at: Option<String>,
    pub home: String,
    pub socket: String,
    pub runs: Option<RunCounts>,
    /// Since when everything is paused, while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunCounts {
    pub live: u64,
    pub resting: u64,
    pub ended: u64,
}

/// `POST /v1/gc`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GcReport {
    pub dry_run: bool,
    pub removed: Vec<GcItem>,
    pub skipped: Vec<GcItem>,
    pub freed_bytes: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GcItem {
    pub run: String,
    pub why: String,
    pub bytes: u64,
    /// True for what is kept although its time has come: a person has to look.
    #[serde(default)]
    pub overdue: bool,
}

/// `GET /v1/doctor`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DoctorReport {
    /// True if nothing needs a person.
    pub healthy: bool,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// `ok`, `warning` or `problem`.
    pub level: Level,
    /// What was looked at: `database`, `journal`, `run`, `disk`, …
    pub subject: String,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Level {
    Ok,
    Warning,
    Problem,
}
