//! What `waiter.lock` says: which process the waiter of this home is. The daemon finds the waiter by it.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::lock::{self, Lock};
use crate::process::{self, Who};

/// Makes this process the only waiter and writes into the lock which process that is. `None` if there is another
/// waiter, or the lock cannot be taken. The process is the waiter while the file is open.
pub fn announce(path: &Path) -> Option<File> {
    let mut lock = lock::try_take(path).ok()??;
    let pid = std::process::id();
    if let Some(start) = process::start_of(pid)
        && let Ok(text) = serde_json::to_vec(&Who { pid, start })
    {
        // A daemon that cannot read which process holds the lock cannot end this waiter; the marker of a stop still does.
        let _unwritten = lock.set_len(0).and_then(|()| lock.write_all(&text));
    }
    Some(lock)
}

/// The waiter that holds the lock. A process that wrote its name and is gone holds nothing.
pub fn holder(path: &Path) -> Option<Who> {
    match lock::probe(path) {
        Lock::Held => serde_json::from_slice(&crate::regular::read(path).ok()?).ok(),
        Lock::Free => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_waiter_and_its_lock_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("waiter.lock");
        assert_eq!(holder(&path), None);
        let first = announce(&path).expect("the lock is free");
        assert!(announce(&path).is_none());
        assert_eq!(holder(&path).map(|who| who.pid), Some(std::process::id()));
        drop(first);
        assert_eq!(holder(&path), None, "the text is still there, and nothing holds the lock");
        assert!(announce(&path).is_some());
    }
}
