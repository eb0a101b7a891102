//! Whether a daemon lives, by its lock: the kernel frees it on any death.

use std::fs::{File, TryLockError};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    Held,
    Free,
}

/// Looks at a lock by taking a share of it for an instant. What cannot be opened is held by nobody.
pub(crate) fn probe(path: &Path) -> Lock {
    let Ok(file) = File::open(path) else { return Lock::Free };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Lock::Held,
        Ok(()) | Err(TryLockError::Error(_)) => Lock::Free,
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
        let file = File::create(&path).expect("a file");
        file.lock().expect("a lock");
        assert_eq!(probe(&path), Lock::Held);
        drop(file);
        assert_eq!(probe(&path), Lock::Free);
    }
}
