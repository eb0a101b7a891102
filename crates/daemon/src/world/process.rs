//! Processes by identity: a pid alone names nobody, since the kernel gives it out again.
//!
//! A zombie is dead. A signal goes through a pidfd that was opened before the identity was checked, so it
//! cannot reach a later owner of the number.

use std::os::fd::OwnedFd;

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
    pub(crate) session: u32,
    pub(crate) start: u64,
}

/// A handle on exactly this process, if it is alive.
pub(crate) fn open(who: Who) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(who.pid).ok()?)?;
    let handle = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
    // Checked after opening: what the handle holds is what we have looked at.
    let stat = stat(who.pid)?;
    (stat.start == who.start && !stat.is_zombie).then_some(handle)
}

/// Signals exactly this process; a process that is gone, or another one under its number, gets nothing.
pub(crate) fn signal(who: Who, signal: Signal) {
    let Some(handle) = open(who) else { return };
    if let Err(error) = pidfd_send_signal(&handle, signal) {
        tracing::debug!(pid = who.pid, %error, "signal not sent");
    }
}

pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
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
            (stat.command.as_str(), stat.session, stat.start),
            ("my (odd) na me", 77, 58502)
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
        let start = stat(me).expect("we are alive").start;
        assert!(open(Who { pid: me, start }).is_some());
        assert!(open(Who { pid: me, start: start + 1 }).is_none());
    }
}
