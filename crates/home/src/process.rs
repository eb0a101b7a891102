//! Processes by identity. The kernel gives a pid out again, so a pid counts only together with its start time.
//!
//! This is the one reader of `/proc/<pid>/stat`. A zombie is dead. A signal goes through a pidfd that was opened before
//! the identity was compared, so it cannot reach a later owner of the number. All of this is Linux's: a port to another
//! system begins here.

use std::fs::File;
use std::io::{self, Read};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

use outlast_wire::shim::Identity;
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::process::PidfdFlags;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::boot;

/// Which process it is within one boot. Lock files hold this as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    pub pid: u32,
    /// Clock ticks since boot at its start.
    pub start: u64,
}

/// What `/proc/<pid>/stat` says that Outlast uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    pub command: String,
    pub is_zombie: bool,
    /// Stopped by a signal.
    pub is_frozen: bool,
    /// Stopped by a tracer.
    pub is_traced: bool,
    pub parent: u32,
    pub session: u32,
    /// Field 22: clock ticks since boot at its start.
    pub start: u64,
}

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Yes,
    /// Exactly this process is not there.
    Gone,
    /// It is not known well enough which process it is, or the system let nothing through.
    No,
}

/// The state of a process; `None` if no process has that number, or another user's privacy hides it. An error means that
/// the process may be alive.
pub fn stat(pid: u32) -> io::Result<Option<Stat>> {
    Ok(read(pid, "stat")?.as_deref().and_then(parse))
}

/// When the process with that number started, in clock ticks since boot.
pub fn start_of(pid: u32) -> Option<u64> {
    Some(stat(pid).ok()??.start)
}

/// The process with that number, as it is known beyond this boot.
pub fn identity(pid: u32) -> io::Result<Identity> {
    let start = stat(pid)?.ok_or_else(|| io::Error::other("the process is not in /proc"))?.start;
    Ok(Identity { boot: boot::id()?, pid, start })
}

/// A file of `/proc/<pid>`; `None` if the process is gone, or is another user's.
pub fn read(pid: u32, name: &str) -> io::Result<Option<Vec<u8>>> {
    // The kernel does not say how long such a file is; most fit into this, so that one read has all of it.
    let mut bytes = Vec::with_capacity(1024);
    let opened = File::open(format!("/proc/{pid}/{name}"));
    match opened.and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if is_gone_or_hidden(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A handle on exactly this process, to wait for its end; `None` if it is dead. An error means that it may be alive.
#[cfg(target_os = "linux")]
pub fn open(who: Who) -> io::Result<Option<OwnedFd>> {
    open_with(who, PidfdFlags::NONBLOCK)
}

#[cfg(target_os = "linux")]
fn open_with(who: Who, flags: PidfdFlags) -> io::Result<Option<OwnedFd>> {
    use rustix::process::{Pid, pidfd_open};

    let Some(pid) = i32::try_from(who.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let handle = match pidfd_open(pid, flags) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Compared after the open, so the compared process is the process of the handle.
    let is_same = stat(who.pid)?.is_some_and(|stat| stat.start == who.start && !stat.is_zombie);
    Ok(is_same.then_some(handle))
}

pub fn is_alive(who: Who) -> io::Result<bool> {
    let stat = stat(who.pid)?;
    Ok(stat.is_some_and(|stat| stat.start == who.start && !stat.is_zombie))
}

/// True if exactly this process was stopped by a signal, and does nothing until it is continued.
pub fn is_frozen(who: Who) -> bool {
    let stat = stat(who.pid).ok().flatten();
    stat.is_some_and(|stat| stat.start == who.start && stat.is_frozen)
}

/// Signals exactly this process: a process that is gone, or another one under its number, gets nothing.
pub fn signal(who: Who, signal: Signal) -> io::Result<Sent> {
    signal_each(who, &[signal])
}

/// Sends each of the signals to exactly this process.
#[cfg(target_os = "linux")]
pub fn signal_each(who: Who, signals: &[Signal]) -> io::Result<Sent> {
    let Some(handle) = open_with(who, PidfdFlags::empty())? else { return Ok(Sent::Gone) };
    for signal in signals {
        match rustix::process::pidfd_send_signal(&handle, *signal) {
            Ok(()) => {}
            Err(Errno::SRCH) => return Ok(Sent::Gone),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Sent::Yes)
}

/// Untested here: without a pidfd the signal could reach another process, so none is sent.
#[cfg(not(target_os = "linux"))]
pub fn signal_each(_who: Who, _signals: &[Signal]) -> io::Result<Sent> {
    Ok(Sent::No)
}

fn is_gone_or_hidden(error: &io::Error) -> bool {
    let is_gone = error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
    is_gone || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// The command is in parentheses and may hold anything, parentheses too: the last parenthesis ends it.
fn parse(line: &[u8]) -> Option<Stat> {
    let line = String::from_utf8_lossy(line);
    let (before, after) = line.rsplit_once(')')?;
    let (_, command) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let threads: u32 = fields.nth(13)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some(Stat {
        command: command.to_owned(),
        // A leader that has left while its other threads go on looks like a zombie and is none.
        is_zombie: matches!(state, "Z" | "X" | "x") && threads <= 1,
        is_frozen: state == "T",
        is_traced: state == "t",
        parent,
        session,
        start,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line =
            b"4242 (my (odd) na me) S 1 4242 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 58502 1 2";
        let stat = parse(line).expect("a whole line");
        assert_eq!(
            (stat.command.as_str(), stat.parent, stat.session, stat.start),
            ("my (odd) na me", 1, 77, 58502)
        );
    }

    #[test]
    fn a_leader_that_left_its_threads_behind_is_no_zombie() {
        let is_zombie = |state: &str, threads: u32| {
            let line =
                format!("42 (sh) {state} 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 7 0 0");
            parse(line.as_bytes()).expect("a whole line").is_zombie
        };
        assert!(is_zombie("Z", 1) && is_zombie("X", 0));
        assert!(!is_zombie("Z", 2) && !is_zombie("S", 1));
    }

    #[test]
    fn a_line_that_is_cut_short_says_nothing() {
        for line in [&b""[..], b"42", b"42 (sh", b"42 (sh) S 1 42 42 0"] {
            assert_eq!(parse(line), None);
        }
    }

    #[test]
    fn another_start_time_is_another_process() {
        let pid = std::process::id();
        let start = start_of(pid).expect("this process lives");
        assert_eq!(identity(pid).expect("it can be read").start, start);
        let (us, other) = (Who { pid, start }, Who { pid, start: start + 1 });
        assert!(is_alive(us).unwrap() && !is_alive(other).unwrap());
        assert!(open(us).unwrap().is_some() && open(other).unwrap().is_none());
        // A process that was not stopped does not notice that it is continued.
        assert_eq!(signal(us, Signal::CONT).unwrap(), Sent::Yes);
        assert_eq!(signal(other, Signal::CONT).unwrap(), Sent::Gone);
    }
}
