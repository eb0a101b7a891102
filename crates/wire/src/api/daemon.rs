//! The daemon itself, what it removes, and what it finds wrong.

use serde::{Deserialize, Serialize};

use super::ByView;

/// `GET /v1/daemon`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DaemonStatus {
    pub running: bool,
    pub pid: Option<u32>,
    pub version: Option<String>,
    /// Tells builds of one version apart.
    #[serde(default)]
    pub build: Option<String>,
    pub epoch: Option<u64>,
    pub started_at: Option<String>,
    pub home: String,
    pub socket: String,
    pub runs: Option<RunCounts>,
    /// Set while the daemon starts nothing by itself.
    #[serde(default)]
    pub holding: Option<Holding>,
    /// Since when everything is paused, while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<String>,
    /// Who paused everything, as far as the daemon could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<ByView>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalView>,
    /// How it was started.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// What the service manager makes of it, as the client finds it; a daemon does not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceStatus>,
    /// The operator's file, as the client finds it; a daemon does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigStatus>,
}

/// The operator's settings as a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ConfigStatus {
    pub path: String,
    /// Without a file, defaults hold.
    pub exists: bool,
    pub valid: bool,
}

/// The journal that the daemon serves, and what it has forgotten of the runs on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct JournalView {
    pub id: String,
    /// How it differs from the one that was served here before, until `outlast recover` has seen to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Runs that have a directory and are not in the journal.
    #[serde(default)]
    pub not_in_journal: Vec<String>,
}

/// Daemons have died too fast: what was found is adopted, and nothing of it is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Holding {
    pub until: String,
    pub why: String,
    /// Runs that would go on.
    pub runs: usize,
}

/// How a daemon was started, which says for whom it makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Mode {
    /// By a service manager.
    Service,
    /// By a client or a shim that needed one; makes room for a service manager's.
    Background,
    /// In a person's terminal or container, where that person ends it.
    Foreground,
}

/// `daemon status`, `daemon install`, `daemon uninstall`: the service that starts the daemon by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ServiceStatus {
    /// `systemd` or `launchd`; none where there is neither.
    pub manager: Option<String>,
    /// Its file is there, the manager has read it, and starts it by itself. Asked, not assumed.
    pub installed: bool,
    pub enabled: Option<bool>,
    pub active: Option<bool>,
    /// The manager's own word: `active (running)`.
    pub state: Option<String>,
    /// Of its main process, while there is one.
    pub pid: Option<u32>,
    /// The file that describes it to the manager.
    pub unit: Option<String>,
    /// Whether it starts with the machine and outlives the last log-out; of systemd only.
    pub linger: Option<bool>,
    /// Of the manager.
    pub version: Option<String>,
    /// Why it is not what it should be.
    pub problem: Option<String>,
    /// What a person could do about it.
    pub hints: Vec<String>,
    /// What was done: files by name, tools by their command line.
    #[serde(default)]
    pub done: Vec<String>,
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
    /// What the run is called, if it has a name.
    #[serde(default)]
    pub name: Option<String>,
    pub why: String,
    pub bytes: u64,
    /// True for what is kept although its time has come: a person has to look.
    #[serde(default)]
    pub overdue: bool,
}

/// `POST /v1/recover`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverRuns {
    /// None of them means every run that the journal has forgotten or stands behind.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Say what would be rebuilt, and write nothing.
    #[serde(default)]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverReport {
    pub dry_run: bool,
    pub runs: Vec<RecoverItem>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoverItem {
    pub run: String,
    /// `recovered`, `would_recover`, `recovered_before`, or `kept`: it could not be rebuilt and is left as it is.
    pub result: String,
    /// True if its last attempt is alive, or may be.
    pub alive: bool,
    pub turns_committed: u32,
    /// Attempts whose directories are there.
    pub attempts: u32,
    /// What its directory does not prove.
    pub missing: Vec<String>,
    /// Why it was kept.
    pub why: Option<String>,
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
