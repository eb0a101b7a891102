//! What `daemon.lock` says of the daemon that holds it: which process it is and where it listens.
//!
//! The text counts only while the lock is held: a daemon that died leaves its text behind. The daemon writes the text,
//! clients and the next daemon read it.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use outlast_wire::OsText;
use outlast_wire::shim::Identity;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::boot;
use crate::lock::{self, Lock};
use crate::process::{self, Sent, Who};
use crate::regular;

/// A daemon moves the lock to the first descriptor from this number on that is free. Only a hint where to look first:
/// an older daemon, or one that may not have so many, has it elsewhere.
pub const LOCK_DESCRIPTOR: u32 = 900;

/// The lock's holder. What is optional came later, or is not known yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub version: String,
    pub epoch: Option<u64>,
    pub started_at: String,
    /// Tells two builds of one version apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Its socket, from the moment on that it listens there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<OsText>,
    /// The boot that the pid belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Its start in clock ticks since boot, field 22 of `/proc/<pid>/stat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<u64>,
    /// The name that it was started by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<OsText>,
    /// How it has left, once it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

/// Whether another daemon is to be expected after one that left in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Left {
    /// It was told to, and stays down.
    Stopped,
    /// A successor waits for the lock.
    Replaced,
    /// A later version's word.
    #[serde(other)]
    Other,
}

impl Holder {
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_ref().map(|socket| Path::new(socket.as_os_str()))
    }

    pub fn program(&self) -> Option<&Path> {
        self.program.as_ref().map(|program| Path::new(program.as_os_str()))
    }

    /// Which process it is beyond its pid, if the lock says so.
    pub fn identity(&self) -> Option<Identity> {
        Some(Identity { boot: self.boot.clone()?, pid: self.pid, start: self.start? })
    }

    /// Signals exactly the process that the lock names: boot, pid and start are compared.
    pub fn signal(&self, signal: Signal) -> Sent {
        let Some(Identity { boot, pid, start }) = self.identity() else { return Sent::No };
        match boot::id() {
            Ok(this_boot) if this_boot == boot => {
                process::signal(Who { pid, start }, signal).unwrap_or(Sent::No)
            }
            Ok(_) => Sent::Gone,
            Err(_) => Sent::No,
        }
    }

    /// True if the daemon was stopped by a signal or a tracer, and does nothing until it is continued.
    pub fn is_frozen(&self) -> bool {
        let stat = process::stat(self.pid).ok().flatten();
        stat.is_some_and(|stat| stat.is_frozen || stat.is_traced)
    }
}

/// The daemon that holds the lock; `None` if no daemon does, or the daemon has not written its text yet.
pub fn current(path: &Path) -> Option<Holder> {
    // The text is read first: a daemon that takes the lock in between has not written it.
    let holder = last(path)?;
    (lock::probe(path) == Lock::Held).then_some(holder)
}

/// The daemon that held the lock last, and may hold it still.
pub fn last(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&regular::read(path).ok()?).ok()
}

/// Writes the holder's text over the text that was there, so that a full disk takes it too.
pub fn write(lock: &mut File, holder: &Holder) -> io::Result<()> {
    let text = serde_json::to_vec(holder).map_err(io::Error::other)?;
    lock.seek(SeekFrom::Start(0))?;
    lock.write_all(&text)?;
    lock.set_len(text.len() as u64)
}

/// True if the file holds this text and nothing else.
pub fn is_written(lock: &File, holder: &Holder) -> io::Result<bool> {
    let text = serde_json::to_vec(holder).map_err(io::Error::other)?;
    let mut there = vec![0; text.len() + 1];
    let read = lock.read_at(&mut there, 0)?;
    Ok(there[..read] == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_of_before_names_a_pid_and_neither_a_socket_nor_an_identity() {
        let said = r#"{"pid":7,"version":"0.1.0","epoch":3,"started_at":"2026-11-16T00:00:00Z"}"#;
        let holder: Holder = serde_json::from_str(said).expect("it is whole");
        assert_eq!((holder.pid, holder.epoch), (7, Some(3)));
        assert_eq!((holder.socket(), holder.identity()), (None, None));
        assert_eq!(serde_json::to_string(&holder).expect("plain data"), said);
    }

    #[test]
    fn what_is_said_comes_back_also_from_a_later_version() {
        let said = r#"{"pid":7,"version":"0.1.0","epoch":3,"started_at":"x","socket":"/r/s","boot":"b","start":9,"left":"retired","later":[]}"#;
        let holder: Holder = serde_json::from_str(said).expect("it is whole");
        assert_eq!(holder.socket(), Some(Path::new("/r/s")));
        assert_eq!(holder.identity().map(|it| it.start), Some(9));
    }

    fn named(boot: Option<String>, start: Option<u64>) -> Holder {
        Holder {
            pid: std::process::id(),
            version: String::new(),
            epoch: None,
            started_at: String::new(),
            build: None,
            socket: None,
            boot,
            start,
            program: None,
            left: None,
        }
    }

    #[test]
    fn a_shorter_text_leaves_nothing_of_a_longer_one() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.lock");
        let mut lock = lock::open(&path).expect("a file");
        write(&mut lock, &named(Some("a long name of a boot".to_owned()), Some(7))).unwrap();
        let short = named(None, None);
        assert!(!is_written(&lock, &short).unwrap());
        write(&mut lock, &short).unwrap();
        assert!(is_written(&lock, &short).unwrap());
        assert_eq!((last(&path), current(&path)), (Some(short), None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_signal_reaches_only_the_process_that_is_named() {
        let start = process::start_of(std::process::id());
        let boot = boot::id().ok();
        let later = start.map(|start| start + 1);
        // A process that was not stopped does not notice that it is continued.
        assert_eq!(named(boot.clone(), start).signal(Signal::CONT), Sent::Yes);
        assert_eq!(named(boot.clone(), later).signal(Signal::CONT), Sent::Gone);
        assert_eq!(named(Some("another".to_owned()), start).signal(Signal::CONT), Sent::Gone);
        assert_eq!(named(boot, None).signal(Signal::CONT), Sent::No);
        assert!(!named(None, None).is_frozen());
    }
}
