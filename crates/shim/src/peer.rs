//! Whether the process at the other end of a connection is the daemon: the one that holds the daemon's lock.
//!
//! Only the kernel is believed: who the peer is (`SO_PEERCRED`), and which locks a process's descriptors hold
//! (`/proc`). What the lock file says is not asked, since a process of the same user can write to it; and a
//! process of the same user is what an agent is. Without this check any step could claim an epoch at its own
//! socket, and lock the daemon out.

use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use outlast_home::holder::LOCK_DESCRIPTOR;
use outlast_wire::again;

/// A daemon that has not moved its lock took it among the first things it opened.
const FIRST_DESCRIPTORS: u32 = 64;
/// More than these are not looked at.
const DESCRIPTORS_MAX: usize = 65_536;

#[derive(Debug)]
pub(crate) struct Door {
    lock: PathBuf,
    /// The file that the lock was when we began, for the case that its name is gone.
    began_with: Option<File>,
}

/// Which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct File {
    device: u64,
    inode: u64,
}

impl File {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

impl Door {
    pub(crate) fn of(lock: &Path) -> Self {
        let began_with = std::fs::metadata(lock).ok().as_ref().map(File::of);
        Self { lock: lock.to_owned(), began_with }
    }

    /// True if the peer holds the daemon's lock. What cannot be proven is not so.
    pub(crate) fn lets_in(&self, stream: &UnixStream) -> bool {
        if cfg!(not(target_os = "linux")) {
            return true;
        }
        let Some(pid) = peer_pid(stream) else { return false };
        let lock = match std::fs::metadata(&self.lock) {
            Ok(metadata) => Some(File::of(&metadata)),
            Err(_) => self.began_with,
        };
        lock.is_some_and(|lock| holds(pid, lock))
    }
}

impl Door {
    /// True if the peer is proven not to hold the daemon's lock: a daemon that was frozen and replaced. What cannot
    /// be looked at is not turned away.
    pub(crate) fn turns_away(&self, stream: &UnixStream) -> bool {
        let (Some(pid), Ok(metadata)) = (peer_pid(stream), std::fs::metadata(&self.lock)) else {
            return false;
        };
        !holds(pid, File::of(&metadata)) && descriptors(pid).is_ok()
    }
}

#[cfg(target_os = "linux")]
fn peer_pid(stream: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

#[cfg(not(target_os = "linux"))]
fn peer_pid(_stream: &UnixStream) -> Option<u32> {
    None
}

fn holds(pid: u32, lock: File) -> bool {
    let mut likely = std::iter::once(LOCK_DESCRIPTOR).chain(0..FIRST_DESCRIPTORS);
    let first = likely.any(|fd| holds_at(pid, fd, lock));
    first || descriptors(pid).is_ok_and(|mut all| all.any(|fd| holds_at(pid, fd, lock)))
}

fn descriptors(pid: u32) -> io::Result<impl Iterator<Item = u32>> {
    let entries = again::read_dir(format!("/proc/{pid}/fd"))?;
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(numbers.filter(|fd| *fd >= FIRST_DESCRIPTORS).take(DESCRIPTORS_MAX))
}

fn holds_at(pid: u32, fd: u32, lock: File) -> bool {
    let is_it = std::fs::metadata(format!("/proc/{pid}/fd/{fd}"))
        .is_ok_and(|metadata| File::of(&metadata) == lock);
    is_it
        && read_start(&format!("/proc/{pid}/fdinfo/{fd}"))
            .is_ok_and(|info| String::from_utf8_lossy(&info).lines().any(is_exclusive))
}

/// More than a descriptor's account of itself takes, unless it holds many locks. One read, for a file that has no
/// length.
const INFO_BYTES: usize = 1024;

fn read_start(path: &str) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(INFO_BYTES);
    std::fs::File::open(path)?.take(INFO_BYTES as u64).read_to_end(&mut start)?;
    Ok(start)
}

/// `lock: 1: FLOCK  ADVISORY  WRITE 24322 fe:00:10029075 0 EOF`
fn is_exclusive(line: &str) -> bool {
    let Some(lock) = line.strip_prefix("lock:") else { return false };
    let mut words = lock.split_ascii_whitespace().skip(1);
    words.next() == Some("FLOCK") && words.nth(1) == Some("WRITE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_of_the_lock_is_let_in() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.lock");
        let lock = std::fs::File::create(&path).expect("creates");
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let door = Door::of(&path);
        assert!(!door.lets_in(&ours), "the file is open and not locked");
        again::lock_shared(&lock).expect("it is free");
        assert!(!door.lets_in(&ours), "others may hold it, too");
        lock.unlock().expect("it is ours");
        again::lock(&lock).expect("it is free");
        assert!(door.lets_in(&ours));
        std::fs::remove_file(&path).expect("it is ours");
        assert!(door.lets_in(&ours), "a lock without its name is still held");
        drop(lock);
        assert!(!door.lets_in(&ours));
    }

    #[test]
    fn a_lock_that_is_another_file_is_another_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.lock");
        let old = std::fs::File::create(&path).expect("creates");
        again::lock(&old).expect("it is free");
        let door = Door::of(&path);
        std::fs::remove_file(&path).expect("it is ours");
        std::fs::File::create(&path).expect("creates");
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        assert!(!door.lets_in(&ours));
    }
}
