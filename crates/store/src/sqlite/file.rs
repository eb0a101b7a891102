//! The journal's files by name, and what is done to one file at a time.
//!
//! Knows nothing of what is in a database. `inspect` and `schema` look into it.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::Error;

/// A write-ahead log of this length is a header and nothing else.
const EMPTY_WAL: u64 = 32;

pub(super) fn corrupt(path: &Path, what: &str) -> Error {
    Error::Corrupt { path: path.to_owned(), what: what.to_owned() }
}

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// True if there is a write-ahead log with something in it.
pub(super) fn has_log(path: &Path) -> Result<bool, Error> {
    let log = beside(path, "-wal");
    match fs::metadata(&log) {
        Ok(metadata) => Ok(metadata.len() > EMPTY_WAL),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::from_io(&log, &error)),
    }
}

pub(super) fn length(path: &Path) -> Result<u64, Error> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| Error::from_io(path, &error))
}

/// SQLite gives its log and its index the mode of the database, so this one decides for all three.
pub(super) fn create_private(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

pub(super) fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::from_io(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}
