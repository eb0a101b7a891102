//! Whether a daemon lives, by its lock: the kernel frees it on any death.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    Held,
    Free,
}

/// Looks at a lock by taking a share of it for an instant. One that is not there is held by nobody; one that
/// may not be opened is somebody else's.
pub(crate) fn probe(path: &Path) -> Lock {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Lock::Held,
        Err(_) => return Lock::Free,
    };
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Lock::Held,
        Ok(()) | Err(TryLockError::Error(_)) => Lock::Free,
    }
}

/// Who says to hold the daemon's lock; `None` while nobody has said so.
pub(crate) fn holder(path: &Path) -> Option<u32> {
    let bytes = std::fs::read(path).ok()?;
    let holder: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
    holder["pid"].as_u64()?.try_into().ok()
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
