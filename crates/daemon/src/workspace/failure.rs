//! Why a workspace could not be made or removed.

use std::io;
use std::path::{Path, PathBuf};

use super::place::Escape;
use super::remove::WhyNot;
use crate::world::git::GitError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the workspace {0}")]
    Escape(#[from] Escape),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("the workspace is kept: {0}")]
    Kept(#[from] WhyNot),
    #[error("the run has a workspace without a {0}")]
    Undescribed(&'static str),
    #[error("there is no directory {}", .dir.display())]
    Gone { dir: PathBuf },
    #[error("{} is no git repository that can be used: {said}", .repository.display())]
    NotARepository { repository: PathBuf, said: String },
    #[error("{} has no commit to check out", .repository.display())]
    NoCommit { repository: PathBuf },
    #[error("{} is there already, and is not a worktree of {}", .dir.display(), .repository.display())]
    Occupied { dir: PathBuf, repository: PathBuf },
    #[error("the checkout in {} did not come to its end", .dir.display())]
    HalfMade { dir: PathBuf },
    #[error("{doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl Failure {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Escape(escape) => Some(escape.hint()),
            Self::Git(error) => error.hint(),
            Self::Kept(why) => why.hint(),
            Self::Gone { .. } => Some("make it, or name another with --dir"),
            Self::NotARepository { .. } => {
                Some("start the run in a repository, or use --workspace dir")
            }
            Self::NoCommit { .. } => Some("make a first commit"),
            Self::Occupied { .. } => Some("move it away, or name another workspace root"),
            Self::Undescribed(_) | Self::HalfMade { .. } | Self::Io { .. } => None,
        }
    }

    /// True if the same may succeed later without anybody having done anything about it.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Git(error) => !matches!(error, GitError::Missing),
            Self::Io { .. } => true,
            Self::Escape(_)
            | Self::Kept(_)
            | Self::Undescribed(_)
            | Self::Gone { .. }
            | Self::NotARepository { .. }
            | Self::NoCommit { .. }
            | Self::Occupied { .. }
            | Self::HalfMade { .. } => false,
        }
    }
}
