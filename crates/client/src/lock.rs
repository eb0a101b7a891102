//! Whether a daemon lives, by the daemon's lock: the kernel frees the lock on any death of the daemon.
//!
//! While the lock is held, the lock's file says which process the daemon is and where the daemon listens.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use outlast_home::holder::Holder;
use outlast_home::layout::Layout;
use outlast_wire::again;

use crate::process;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    Held,
    Free,
}

/// Looks at a lock by taking a share of it for an instant. A lock file that is not there is free; a lock file that
/// may not be opened is held by another user's daemon.
pub fn probe(path: &Path) -> Lock {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Lock::Held,
        Err(_) => return Lock::Free,
    };
    match again::try_lock_shared(&file) {
        Err(TryLockError::WouldBlock) => Lock::Held,
        Ok(()) | Err(TryLockError::Error(_)) => Lock::Free,
    }
}

/// The daemon that holds the lock; `None` if no daemon does, or the daemon has not written its name yet.
pub fn holder(path: &Path) -> Option<Holder> {
    // The words are read first: a daemon that takes the lock in between has not written them.
    let holder = last_holder(path)?;
    (probe(path) == Lock::Held).then_some(holder)
}

/// The daemon that held the lock last, and may hold it still.
pub fn last_holder(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Where the daemon listens: the held lock names the socket, whatever this environment says. `None` if no daemon
/// lives, or the daemon does not listen yet. Another path would lead to another Outlast's daemon.
pub fn socket(layout: &Layout) -> Option<PathBuf> {
    door(layout).filter(Door::is_its_holders).map(|door| door.socket)
}

/// The same, from words that may be those of a daemon that is gone.
pub(crate) fn door(layout: &Layout) -> Option<Door> {
    let holder = holder(&layout.daemon_lock())?;
    let (pid, start) = (holder.pid, holder.start);
    match (holder.socket(), start) {
        (Some(socket), start) => Some(Door { socket: socket.to_owned(), pid, start }),
        (None, Some(_)) => None,
        // A daemon of an earlier version listens where its environment said, which is likely to be this one.
        (None, None) => Some(Door { socket: layout.socket(), pid, start }),
    }
}

/// A socket, and the daemon that named the socket in the lock.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) socket: PathBuf,
    pub(crate) pid: u32,
    pub(crate) start: Option<u64>,
}

impl Door {
    /// False if a daemon that is gone wrote this: the daemon that holds the lock now has not written its own words
    /// yet.
    pub(crate) fn is_its_holders(&self) -> bool {
        self.start.is_none_or(|start| process::start(self.pid) == Some(start))
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
        again::lock(&file).expect("a lock");
        assert_eq!(probe(&path), Lock::Held);
        drop(file);
        assert_eq!(probe(&path), Lock::Free);
    }

    #[test]
    fn a_lock_names_the_socket_for_as_long_as_it_is_held() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(dir.path());
        std::fs::create_dir_all(&layout.state).expect("a directory");
        assert_eq!(socket(&layout), None);
        let mut file = File::create(layout.daemon_lock()).expect("a file");
        let said =
            r#"{"pid":7,"version":"0.1.0","epoch":1,"started_at":"x","socket":"/elsewhere"}"#;
        std::io::Write::write_all(&mut file, said.as_bytes()).expect("written");
        assert_eq!(socket(&layout), None, "the lock is free");
        again::lock(&file).expect("a lock");
        assert_eq!(socket(&layout), Some(PathBuf::from("/elsewhere")));
    }
}
