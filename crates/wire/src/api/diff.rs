//! What turns changed in the workspace: snapshots, and the difference of two of them.

use serde::{Deserialize, Serialize};

/// `GET /v1/runs/{run}/diff`: what is different between two points of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DiffView {
    pub run: String,
    /// `turn 2`, `before the first turn` or `now`.
    pub from: String,
    pub to: String,
    /// The commits of the two snapshots; the tree of the workspace for `now`.
    pub from_id: String,
    pub to_id: String,
    pub added: u64,
    pub deleted: u64,
    pub files: Vec<DiffFile>,
    /// True if there are more files than these.
    #[serde(default)]
    pub files_cut: bool,
    /// A unified diff, if it was asked for.
    #[serde(default)]
    pub patch: Option<String>,
    /// True if the diff is longer than this.
    #[serde(default)]
    pub patch_cut: bool,
    /// The run's last turn, if all of the run was asked for and the turns after `to` have no snapshot.
    #[serde(default)]
    pub unshown_until: Option<u32>,
}

/// One file that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DiffFile {
    pub path: String,
    /// What it was called before it was renamed.
    #[serde(default)]
    pub was: Option<String>,
    /// `added`, `deleted`, `modified`, `renamed` or `type_changed`.
    pub change: String,
    /// Lines; `None` for a file that is not text.
    #[serde(default)]
    pub added: Option<u64>,
    #[serde(default)]
    pub deleted: Option<u64>,
}

/// A run's snapshots, as `show` has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SnapshotsView {
    /// The last turn that has one; 0 is before the first.
    #[serde(default)]
    pub turn: Option<u32>,
    #[serde(default)]
    pub commit: Option<String>,
    /// Over all turns, counted turn by turn.
    pub files: u64,
    pub added: u64,
    pub deleted: u64,
    /// Where the workspace's own checkout stood at the last of them.
    #[serde(default)]
    pub branch: Option<String>,
    #[serde(default)]
    pub head: Option<String>,
    /// How many files the last of them leaves out.
    #[serde(default)]
    pub left_out: u64,
    /// Why the last one that was tried failed, as a code and in words.
    #[serde(default)]
    pub failed_code: Option<String>,
    #[serde(default)]
    pub failed: Option<String>,
}

/// What a turn changed in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnSnapshot {
    pub commit: String,
    pub files: u64,
    pub added: u64,
    pub deleted: u64,
    /// The first of the files that are in the workspace and not in the snapshot, each with the reason.
    #[serde(default)]
    pub left_out: Vec<String>,
}
