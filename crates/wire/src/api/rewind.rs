//! Going back to a turn, starting again from one, and handing the work over.

use serde::{Deserialize, Serialize};

use super::{AskedDriving, AskedLimits};
use crate::shim::EnvVar;

/// Puts the workspace back to the end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RestoreRun {
    /// Chosen by the client: the same id is the same order.
    #[serde(default)]
    pub id: Option<String>,
    /// The turn whose end the workspace goes back to; 0 is before the first.
    pub turn: u32,
}

/// A workspace that was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RestoredView {
    pub run: String,
    /// The turn that it is as.
    pub turn: u32,
    /// The snapshot that it is as.
    pub to: String,
    /// The snapshot that has what was found.
    pub wreck: String,
    pub written: u64,
    pub removed: u64,
    /// What was left alone: ignored, or in no snapshot.
    #[serde(default)]
    pub kept: Vec<String>,
}

/// Makes another run from the end of a turn.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForkRun {
    /// The new run's: the same id is the same run.
    #[serde(default)]
    pub id: Option<String>,
    /// The last turn that it has of the other run; 0 is none.
    pub turn: u32,
    #[serde(default)]
    pub name: Option<String>,
    /// Another agent from here on.
    #[serde(default)]
    pub agent: Option<String>,
    /// Another task from here on.
    #[serde(default)]
    pub task: Option<String>,
    /// Limits that are not those of the other run.
    #[serde(default)]
    pub limits: AskedLimits,
    #[serde(default)]
    pub driving: AskedDriving,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env: Vec<EnvVar>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env_set: Vec<EnvVar>,
}

/// Where a fork comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ForkedFrom {
    pub run: String,
    pub turn: u32,
    /// The number of the last event that it has of that run's journal.
    pub seq: u64,
    /// `forked`: the agent goes on with a copy of that run's conversation. `fresh`: it begins a new one.
    pub session: String,
    /// Why it begins a new one.
    #[serde(default)]
    pub why_fresh: Option<String>,
    /// What was spent before, by that run.
    pub tokens: u64,
    pub cost_usd: f64,
}

/// Merges what a run has committed into a branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MergeRun {
    /// The branch; absent is the one that the repository has checked out.
    #[serde(default)]
    pub into: Option<String>,
    /// Also what is not committed, as one commit of the last snapshot.
    #[serde(default)]
    pub with_uncommitted: bool,
    /// Only say what would happen.
    #[serde(default)]
    pub dry_run: bool,
}

/// What became of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MergedView {
    pub run: String,
    pub branch: String,
    pub into: String,
    /// `merged`, `fast_forward`, `already_merged`; `checked_out`: the branch was not moved, and `command` does it;
    /// `would_merge`: asked to only say so.
    pub outcome: String,
    /// What is merged.
    pub commit: String,
    /// What the branch is at then.
    #[serde(default)]
    pub result: Option<String>,
    /// What a person types where the branch is checked out.
    #[serde(default)]
    pub command: Option<String>,
}

/// What a pull request of a run is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PullRequestView {
    pub run: String,
    pub repository: String,
    pub branch: String,
    pub commit: String,
    /// The branch that it is to be merged into, if that is known.
    #[serde(default)]
    pub base: Option<String>,
    /// The remote as it was before the first turn.
    #[serde(default)]
    pub remote: Option<String>,
    pub title: String,
    pub body: String,
    /// Files that are not committed, and so not part of it.
    pub uncommitted: u64,
    /// A git directory without settings of the repository, and its objects, for the push.
    pub git_dir: String,
    pub objects: String,
}
