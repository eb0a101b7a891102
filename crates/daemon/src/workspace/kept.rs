//! Why a workspace is kept although its time has come.

use super::place::Escape;
use crate::world::git::GitError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum WhyNot {
    #[error("it was there before the run")]
    WasThere,
    #[error(transparent)]
    Escape(#[from] Escape),
    #[error("it has changes that are not committed: {summary}")]
    Dirty { summary: String },
    #[error("it is locked{}", because(.reason))]
    Locked { reason: String },
    #[error("it has commits that are on no branch")]
    Stranded,
    #[error("it has submodules, whose commits may be nowhere else")]
    Submodules,
    #[error("it cannot be told what is in it: {0}")]
    Unknown(String),
}

impl WhyNot {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::WasThere => None,
            Self::Escape(escape) => Some(escape.hint()),
            Self::Dirty { .. } => {
                Some("commit them, or throw them away with git worktree remove --force")
            }
            Self::Locked { .. } => Some("unlock it with git worktree unlock"),
            Self::Stranded => Some("in the workspace, put a branch on them:\ngit branch NAME"),
            Self::Submodules => {
                Some("look into them, then remove it with git worktree remove --force")
            }
            Self::Unknown(_) => Some("look into it, then remove it by hand"),
        }
    }
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(": {reason}") }
}

/// If git cannot say what is in the workspace, the workspace is kept.
impl From<GitError> for WhyNot {
    fn from(error: GitError) -> Self {
        Self::Unknown(error.to_string())
    }
}
