//! Processes by identity: a pid alone names nobody, since the kernel gives it out again.
//!
//! A zombie is dead. A signal goes through a pidfd that was opened before the identity was checked, so it
//! cannot reach a later owner of the number.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Who a process is within one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) pid: u32,
    /// Clock ticks since boot at its start.
    pub(crate) start: u64,
}

/// What `/proc/<pid>/stat` says that we use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) command: String,
    pub(crate) is_zombie: bool,
    /// Stopped by a signal.
    pub(crate) is_frozen: bool,
    pub(crate) parent: u32,
    pub(crate) session: u32,
    pub(crate) start: u64,
}

/// A handle on exactly this process; `None` if it is dead. That it cannot be looked at is an error: it may be
/// alive.
pub(crate) fn open(who: Who) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(who.pid).ok().and_then(Pid::from_raw) else { return Ok(None) };
    let handle = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
        Ok(handle) => handle,
        Err(Errno::SRCH) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Checked after opening: what the handle holds is what we have looked at.
    let is_the_one = stat(who.pid)?.is_some_and(|it| it.start == who.start && !it.is_zombie);
    Ok(is_the_one.then_some(handle))
}

pub(crate) fn is_alive(who: Who) -> io::Result<bool> {
    Ok(open(who)?.is_some())
}

/// True if exactly this process was stopped by a signal.
pub(crate) fn is_frozen(who: Who) -> bool {
    let stat = stat(who.pid).ok().flatten();
    stat.is_some_and(|stat| stat.start == who.start && stat.is_frozen)
}

/// True if this child of ours was stopped by a signal. Takes nothing from the task that waits for its end.
pub(crate) fn is_stopped_child(pid: u32) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let how = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), how), Ok(Some(_)))
}

/// Returns when exactly this process is gone, at once if it is already.
#[cfg(target_os = "linux")]
pub(crate) async fn gone(who: Who) -> std::io::Result<()> {
    let Some(handle) = open(who)? else { return Ok(()) };
    let handle = super::readable(handle)?;
    let _ended = handle.readable().await?;
    Ok(())
}

/// Signals exactly this process; a process that is gone, or another one under its number, gets nothing.
pub(crate) fn signal(who: Who, signal: Signal) {
    let sent = open(who).and_then(|handle| match handle {
        Some(handle) => Ok(pidfd_send_signal(&handle, signal)?),
        None => Ok(()),
    });
    if let Err(error) = sent {
        tracing::warn!(pid = who.pid, %error, "signal not sent");
    }
}

/// What is said of a process; `None` if there is none under that number.
pub(crate) fn stat(pid: u32) -> io::Result<Option<Stat>> {
    let line = read(pid, "stat")?;
    Ok(line.as_deref().map(String::from_utf8_lossy).as_deref().and_then(parse))
}

/// A file of `/proc/<pid>`; `None` if the process is gone, or is not ours to look at.
pub(super) fn read(pid: u32, name: &str) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(format!("/proc/{pid}/{name}")) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_none_of_ours(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_none_of_ours(error: &io::Error) -> bool {
    let is_gone = error.raw_os_error() == Some(Errno::SRCH.raw_os_error());
    is_gone || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// The command is in parentheses and may hold anything, parentheses too: the last one ends it.
fn parse(stat: &str) -> Option<Stat> {
    let (before, after) = stat.rsplit_once(')')?;
    let (_, command) = before.split_once('(')?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    // A leader that has left while its other threads go on looks like a zombie and is none.
    let threads: u32 = fields.get(17)?.parse().ok()?;
    Some(Stat {
        command: command.to_owned(),
        is_zombie: matches!(*fields.first()?, "Z" | "X") && threads <= 1,
        is_frozen: *fields.first()? == "T",
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        start: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line =
            "4242 (my (odd) na me) S 1 4242 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 58502 1 2";
        let stat = parse(line).expect("a whole line");
        assert_eq!(
            (stat.command.as_str(), stat.parent, stat.session, stat.start),
            ("my (odd) na me", 1, 77, 58502)
        );
    }

    #[test]
    fn a_leader_that_left_its_threads_behind_is_no_zombie() {
        let line = |state: &str, threads: u32| {
            format!("42 (sh) {state} 1 42 42 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 7 0 0")
        };
        let is_zombie = |line: &str| parse(line).expect("a whole line").is_zombie;
        assert!(is_zombie(&line("Z", 1)) && is_zombie(&line("X", 0)));
        assert!(!is_zombie(&line("Z", 2)) && !is_zombie(&line("S", 1)));
    }

    #[test]
    fn another_start_time_is_another_process() {
        let me = std::process::id();
        let start = stat(me).expect("it can be read").expect("we are alive").start;
        let is_alive = |start| is_alive(Who { pid: me, start }).expect("it can be read");
        assert!(is_alive(start) && !is_alive(start + 1));
    }
}
