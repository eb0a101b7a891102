//! A new journal: complete and durable before it gets its name, or not there at all.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::file::{beside, corrupt, create_private, directory, has_log, remove_if_there};
use super::inspect::check_directory;
use super::schema;
use crate::Error;

/// Makes an empty journal at `path`, complete and durable before it gets its name.
pub(super) fn if_missing(path: &Path) -> Result<(), Error> {
    let error = |error: io::Error| Error::from_io(path, &error);
    if fs::exists(path).map_err(error)? {
        return Ok(());
    }
    // The disk that the link leads to may come back.
    if fs::symlink_metadata(path).is_ok() {
        return Err(corrupt(path, "it is a link to a file that is not there"));
    }
    // A log without its database is what is left of a journal, not the absence of one.
    if has_log(path)? {
        return Err(corrupt(path, "it is missing, and its write-ahead log is still there"));
    }
    check_directory(path)?;
    let new = beside(path, ".new");
    for leftover in
        [new.clone(), beside(&new, "-wal"), beside(&new, "-shm"), beside(&new, "-journal")]
    {
        remove_if_there(&leftover)?;
    }
    create_private(&new).map_err(error)?;
    schema::fill_new(&new)?;
    File::open(&new).and_then(|file| file.sync_all()).map_err(error)?;
    fs::rename(&new, path).map_err(error)?;
    File::open(directory(path)).and_then(|directory| directory.sync_all()).map_err(error)
}
