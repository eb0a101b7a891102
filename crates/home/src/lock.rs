//! Lock files: the kernel frees a lock on any death of its holder, so a held lock is proof of life.
//!
//! A lock file is never unlinked: another process could lock the old file while a third locks the new one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use outlast_wire::again;

use crate::regular;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    Held,
    Free,
}

/// Looks at a lock by taking a share of it for an instant. A lock file that does not exist is free; a lock file that
/// may not be opened is held by another user's process.
pub fn probe(path: &Path) -> Lock {
    let file = match open_to_look(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Lock::Held,
        Err(_) => return Lock::Free,
    };
    match again::try_lock_shared(&file) {
        Err(TryLockError::WouldBlock) => Lock::Held,
        Ok(()) | Err(TryLockError::Error(_)) => Lock::Free,
    }
}

/// Opens the lock file as it is. A pipe in its place does not make the caller wait.
pub fn open_to_look(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(waits_for_none()).open(path)
}

fn waits_for_none() -> i32 {
    i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0)
}

/// Opens the lock file 0600, and makes it first if it does not exist. Takes no lock. What is no file is no lock.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    regular::open_with(&mut options, path)
}

/// Takes the lock; `None` if another process holds it.
pub fn try_take(path: &Path) -> io::Result<Option<File>> {
    taken(open(path)?)
}

/// The same of a lock that has no text: what is in its place serves as well.
pub fn try_take_as_it_is(path: &Path) -> io::Result<Option<File>> {
    match open(path) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => taken(open_to_look(path)?),
        opened => taken(opened?),
    }
}

fn taken(file: File) -> io::Result<Option<File>> {
    match again::try_lock(&file) {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_until_its_holder_is_gone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        assert_eq!(probe(&path), Lock::Free);
        let held = try_take(&path).expect("it can be made").expect("it is free");
        assert_eq!(probe(&path), Lock::Held);
        assert!(try_take(&path).expect("it can be opened").is_none());
        drop(held);
        assert_eq!(probe(&path), Lock::Free);
    }
}
