//! What the daemon and `outlast __snapshot` say to each other, as files of one step: orders, and what was made of them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `outlast __snapshot DIR` carries out the orders in DIR.
pub const SNAPSHOT_VERB: &str = "__snapshot";
/// In the step's directory: the daemon's orders.
pub const ORDERS_FILE: &str = "snapshot.json";
/// In the step's directory: what was made of them, written whole.
pub const MADE_FILE: &str = "made.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    pub run: String,
    /// The git directory of our own: below the run's directory.
    pub git_dir: PathBuf,
    /// The workspace.
    pub dir: PathBuf,
    pub store: Where,
    /// Larger files are left out.
    pub max_file: u64,
    /// What snapshots of this run may still add, in bytes of files.
    pub bytes_left: u64,
    /// Patterns as in `.gitignore`.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Directories of Outlast itself: a workspace that holds one of them has no snapshots.
    #[serde(default)]
    pub state: Vec<PathBuf>,
    /// The last snapshot that the journal has.
    #[serde(default)]
    pub last: Option<Last>,
    /// The tree that changes are counted from, if it is not that of the last.
    #[serde(default)]
    pub since: Option<String>,
    /// The time of the commit, in seconds; the same whenever the snapshot is made.
    pub date_s: u64,
    pub message: String,
    pub todo: Todo,
}

/// Where objects go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Where {
    /// Into the repository around the workspace; into a store of the run's own if there is none.
    Repository,
    Own,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    pub commit: String,
    pub tree: String,
    #[serde(default)]
    pub head: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Todo {
    Take,
    /// The workspace goes back to this commit; what it holds now is in a snapshot already.
    Restore {
        to: String,
        /// (a worktree of our own) Where HEAD goes back to.
        head: Option<Head>,
    },
    /// The tree of the workspace as it is, written into a directory that is removed afterwards.
    Look {
        objects: PathBuf,
    },
}

/// Where a checkout stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub commit: String,
    /// In full, `refs/heads/…`; `None` is detached.
    #[serde(default)]
    pub branch: Option<String>,
}

/// What became of the orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Made {
    Taken(Box<Taken>),
    Restored(Restored),
    Looked { tree: String },
    Failed { code: String, why: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    pub commit: String,
    pub tree: String,
    /// The commit that the workspace's own checkout stood at.
    #[serde(default)]
    pub head: Option<String>,
    #[serde(default)]
    pub branch: Option<String>,
    /// True if the tree is that of the snapshot before.
    pub is_same: bool,
    /// Against the snapshot before; 0 for the first.
    pub files: u64,
    pub added: u64,
    pub deleted: u64,
    /// Bytes of the files that were read.
    pub bytes: u64,
    #[serde(default)]
    pub left_out: LeftOut,
    pub store: Where,
}

/// What is not in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub files: u64,
    pub bytes: u64,
    /// The first of them, each with the reason.
    #[serde(default)]
    pub names: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    pub written: u64,
    pub removed: u64,
    /// Paths that were left alone because a rule ignores them, or because they are in no snapshot.
    #[serde(default)]
    pub kept: Vec<String>,
}

/// What the first snapshot found: read by all later ones, so that nothing is asked of files that an agent can write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What trees are relative to.
    pub top: PathBuf,
    /// The workspace below it: empty, or a path that ends in `/`.
    pub prefix: String,
    /// `sha1` or `sha256`.
    pub format: String,
    #[serde(default)]
    pub repository: Option<Repository>,
    /// Where the repository is pushed to, before an agent could say otherwise.
    #[serde(default)]
    pub remote: Option<String>,
}

/// The repository that objects go into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The checkout's own directory: its HEAD and index.
    pub admin: PathBuf,
    pub common: PathBuf,
}
