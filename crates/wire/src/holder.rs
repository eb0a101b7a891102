//! What `daemon.lock` says of the daemon that holds it: who it is and where it listens.
//!
//! Believed only while the lock is held: a daemon that died leaves its words behind.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::OsText;
use crate::shim::Identity;

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

    /// Who it is beyond its pid, if it has said so.
    pub fn identity(&self) -> Option<Identity> {
        Some(Identity { boot: self.boot.clone()?, pid: self.pid, start: self.start? })
    }
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
}
