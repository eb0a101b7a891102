//! Why a store does not do what it was asked to.
//!
//! Errors can be cloned, because one failed commit answers a whole group of appends.

use std::io;
use std::path::{Path, PathBuf};

use outlast_engine::RunId;
use rusqlite::ErrorCode;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("run {run} is at event {found}, not at {expected}")]
    Conflict { run: RunId, expected: u64, found: u64 },
    #[error("a newer daemon has taken over: this one has epoch {held}, the store is at {current}")]
    StaleEpoch { held: u64, current: u64 },
    #[error("key {key:?} belongs to run {by}")]
    KeyTaken { key: String, by: RunId },
    #[error("name {name:?} is in use by run {by}, which has not ended")]
    NameTaken { name: String, by: RunId },
    #[error("there is no run {run}")]
    UnknownRun { run: RunId },
    #[error("run {run} is still open")]
    StillOpen { run: RunId },
    #[error("there is a trigger {name:?} already")]
    TriggerTaken { name: String },
    #[error("there is no trigger {name:?}")]
    UnknownTrigger { name: String },
    #[error("notices of an earlier run {run} are remembered, so its id cannot be used again yet")]
    IdInUse { run: RunId },
    /// The database refuses what this order writes, and would again. Nothing of it was written.
    #[error("the journal does not take this: {0}")]
    Rejected(String),
    #[error("{} is locked by another process", .0.display())]
    Locked(PathBuf),
    #[error("no room left to write to: {0}")]
    Full(String),
    #[error("{} may not be written to", .0.display())]
    ReadOnly(PathBuf),
    #[error("{} has schema {found}, and this version knows up to {known}", .path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{} is not a sound journal: {what}", .path.display())]
    Corrupt { path: PathBuf, what: String },
    #[error("run {run} cannot be read: {what}")]
    UnreadableRun { run: RunId, what: String },
    #[error("the journal could not be read or written: {0}")]
    Io(String),
    /// The file at the path is not the one that is open. What is open is saved first, and this is tried again.
    #[error("{} {what}, and what this daemon has open cannot be saved yet: {why}", .path.display())]
    Unsaved { path: PathBuf, what: String, why: String },
    /// The same, and this store will never write again: what was open is saved elsewhere, or cannot be.
    #[error("{} {what}", .path.display())]
    Gone { path: PathBuf, what: String },
    #[error("the journal is closed")]
    Closed,
}

impl Error {
    /// True if the same request may succeed later as it is.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Io(_) | Self::Locked(_) | Self::Unsaved { .. })
    }

    /// True if a rule was broken, so that certainly nothing was written.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Conflict { .. }
            | Self::StaleEpoch { .. }
            | Self::KeyTaken { .. }
            | Self::NameTaken { .. }
            | Self::UnknownRun { .. }
            | Self::StillOpen { .. }
            | Self::TriggerTaken { .. }
            | Self::UnknownTrigger { .. }
            | Self::IdInUse { .. } => true,
            Self::Rejected(_)
            | Self::Locked(_)
            | Self::Full(_)
            | Self::ReadOnly(_)
            | Self::Newer { .. }
            | Self::Corrupt { .. }
            | Self::UnreadableRun { .. }
            | Self::Io(_)
            | Self::Unsaved { .. }
            | Self::Gone { .. }
            | Self::Closed => false,
        }
    }

    pub(crate) fn from_io(path: &Path, error: &io::Error) -> Self {
        let text = format!("{}: {error}", path.display());
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(text),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly(path.to_owned())
            }
            _ => Self::Io(text),
        }
    }

    pub(crate) fn from_sql(path: &Path, error: &rusqlite::Error) -> Self {
        let text = format!("{}: {error}", path.display());
        let Some(code) = error.sqlite_error() else { return Self::Io(text) };
        match code.code {
            ErrorCode::DiskFull => Self::Full(text),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked(path.to_owned()),
            ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig => {
                Self::Rejected(text)
            }
            // SQLite says only that the shared index would not grow, which is how a full disk looks there.
            _ if code.extended_code == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => Self::Full(text),
            ErrorCode::ReadOnly => Self::ReadOnly(path.to_owned()),
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                Self::Corrupt { path: path.to_owned(), what: error.to_string() }
            }
            _ => Self::Io(text),
        }
    }
}
