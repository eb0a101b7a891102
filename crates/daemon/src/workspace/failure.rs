//! Why a workspace could not be made or removed.

use std::io;
use std::path::{Path, PathBuf};

use outlast_wire::codes::Code;

use super::kept::WhyNot;
use super::place::Escape;
use crate::world::git::GitError;
use crate::world::host;

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

    /// The code under which this is shown, if it is for want of something that the host will have again. `near`
    /// is where the workspace is or will be: git does not say in a number that the disk is full.
    pub(crate) fn of_host(&self, near: &Path) -> Option<Code> {
        match self {
            Self::Io { source, .. } | Self::Git(GitError::Io(source)) => host::failure(source),
            Self::Git(GitError::Refused { .. }) => {
                host::has_no_room(near).then_some(Code::DiskFull)
            }
            _ => None,
        }
    }

    /// True if the same may succeed later although no person has done anything about it.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Git(error) => !matches!(error, GitError::Missing),
            Self::Io { source, .. } => may_pass(source),
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

/// A disk may get room again; what is in the way stays there.
fn may_pass(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, InvalidInput, NotADirectory, PermissionDenied,
        ReadOnlyFilesystem,
    };
    !matches!(
        error.kind(),
        AlreadyExists
            | InvalidFilename
            | InvalidInput
            | NotADirectory
            | PermissionDenied
            | ReadOnlyFilesystem
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_way_is_not_waited_for() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("file");
        std::fs::File::create(&file).expect("the directory is ours");
        for path in [file.clone(), file.join("below")] {
            let error = std::fs::create_dir(&path).expect_err("a file is in the way");
            let failure = Failure::io("making", &path)(error);
            assert!(!failure.may_pass(), "{failure}");
        }
        let full = Failure::io("making", &file)(io::ErrorKind::StorageFull.into());
        assert!(full.may_pass());
    }
}
