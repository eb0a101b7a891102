//! Why a snapshot was not made. Each has a stable code, which the journal keeps.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("there is no git on this machine")]
    NoGit,
    #[error("git {what}: {said}")]
    Git { what: String, said: String },
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("{0}")]
    TooBig(String),
    #[error("the repository at {} belongs to another user", .0.display())]
    Foreign(PathBuf),
    /// A place that never has snapshots.
    #[error("{0}")]
    Never(&'static str),
    /// What is there is another directory, or none.
    #[error("{} is a symlink or no directory any more", .0.display())]
    Moved(PathBuf),
    #[error("process {pid} works with {}", .path.display())]
    Busy { pid: u32, path: PathBuf },
    #[error("the snapshot {0} is not there any more")]
    Gone(String),
    /// Objects vanished while they were written.
    #[error("objects of the snapshot vanished while it was made")]
    Pruned,
    #[error("{0}")]
    Unreadable(String),
}

impl Failure {
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoGit => "no_git",
            Self::TooBig(_) => "too_big",
            Self::Foreign(_) => "foreign",
            Self::Never(_) => "never",
            Self::Moved(_) => "moved",
            Self::Busy { .. } => "busy",
            Self::Gone(_) | Self::Pruned => "gone",
            Self::Git { said, .. } if said.contains("No space left") => "disk_full",
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => "disk_full",
            Self::Git { .. } | Self::Io { .. } | Self::Unreadable(_) => "io",
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
