//! The process tree as `/proc` shows it: who a process is, who descends from us, and signals to them.
//!
//! A pid is only a number: a signal goes through a pidfd, and only after the start time behind it was
//! found to be the one that was listed. A zombie is dead and is not listed. All of this is Linux's: a
//! port to another system begins here.

use std::collections::HashMap;
use std::io;

use outlast_wire::again;
use outlast_wire::guard::GUARD_VERB;
use outlast_wire::shim::{Identity, Survivor};
use rustix::process::{Pid, PidfdFlags, Signal};

use crate::tolerate;

/// A list of survivors names at most this many, each with this much of its command.
const SURVIVORS_MAX: usize = 200;
const COMMAND_MAX: usize = 200;
/// More processes than this are ended in later rounds.
const LISTED_MAX: usize = 65_536;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    start: u64,
}

/// What `/proc/<pid>/stat` says that we need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    is_dead: bool,
    parent: u32,
    start: u64,
}

pub(crate) fn identity(pid: Pid) -> io::Result<Identity> {
    let pid = pid.as_raw_nonzero().get().unsigned_abs();
    let start = stat(pid).ok_or_else(|| io::Error::other("the child is not in /proc"))?.start;
    Ok(Identity { boot: boot_id()?, pid, start })
}

/// When a process started, in clock ticks since boot.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.start)
}

fn boot_id() -> io::Result<String> {
    #[cfg(debug_assertions)]
    {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests play a reboot; release builds have no such door"
        )]
        if let Ok(fake) = std::env::var("OUTLAST_FAKE_BOOT_ID") {
            return Ok(fake);
        }
    }
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Every living descendant of this process, parents before their children.
pub(crate) fn descendants() -> Vec<Process> {
    descendants_but(&|_| false)
}

/// The same without the processes that are spared, and without all that is below them.
pub(crate) fn descendants_but(is_spared: &dyn Fn(u32) -> bool) -> Vec<Process> {
    let root = std::process::id();
    let rest = |mut pids: Vec<u32>| {
        pids.retain(|pid| !is_spared(*pid));
        pids
    };
    let listed = walk(root, &|pid| rest(children(pid)));
    if !listed.is_empty() {
        return listed;
    }
    // The kernel's list of children may be missing, or may skip one while another exits.
    let families = scan();
    walk(root, &|pid| rest(families.get(&pid).cloned().unwrap_or_default()))
}

/// True for a daemon, a shim, a waiter or a guard of Outlast.
pub(crate) fn is_outlast(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| is_life(&line))
}

fn is_life(command_line: &[u8]) -> bool {
    let mut words = command_line.split(|byte| *byte == 0).skip(1);
    match words.next() {
        Some(b"__shim" | b"__wait") => true,
        Some(b"daemon") => words.next() == Some(b"run"),
        word => word == Some(GUARD_VERB.as_bytes()),
    }
}

pub(crate) fn survivors(processes: &[Process]) -> Vec<Survivor> {
    let named = |process: &Process| Survivor {
        pid: process.pid,
        start: process.start,
        command: command(process.pid),
    };
    processes.iter().take(SURVIVORS_MAX).map(named).collect()
}

/// Sends each of `signals` to each process that is still the one that was listed.
pub(crate) fn signal(processes: &[Process], signals: &[Signal]) {
    for process in processes {
        signal_one(process, signals);
    }
}

fn signal_one(process: &Process, signals: &[Signal]) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    let Ok(handle) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
    if stat(process.pid).is_some_and(|stat| stat.start == process.start) {
        for signal in signals {
            // It ended on its own meanwhile, or is not ours to signal: the next listing shows which.
            tolerate(rustix::process::pidfd_send_signal(&handle, *signal));
        }
    }
}

fn walk(root: u32, children_of: &dyn Fn(u32) -> Vec<u32>) -> Vec<Process> {
    let mut found = Vec::new();
    let mut parents = vec![root];
    for _ in 0..LISTED_MAX {
        let Some(parent) = parents.pop() else { break };
        for pid in children_of(parent) {
            let Some(stat) = stat(pid) else { continue };
            // A dead process may still have children that nobody has taken over.
            parents.push(pid);
            if !stat.is_dead {
                found.push(Process { pid, start: stat.start });
            }
        }
    }
    found
}

/// The children of every thread of `pid`.
fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = again::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// Everybody's children, from everybody's parent.
fn scan() -> HashMap<u32, Vec<u32>> {
    let mut families: HashMap<u32, Vec<u32>> = HashMap::new();
    let Ok(entries) = again::read_dir("/proc") else { return families };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in pids {
        if let Some(stat) = stat(pid) {
            families.entry(stat.parent).or_default().push(pid);
        }
    }
    families
}

fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// The command name is in parentheses and may itself hold spaces and parentheses.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let after = bytes.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&bytes[after..]).ok()?.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    let threads: u32 = fields.nth(15)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    // A leader may be gone while other threads of its process go on.
    Some(Stat { is_dead: is_zombie && threads <= 1, parent, start })
}

fn command(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    let name = || {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
    };
    let text = if words.is_empty() { name() } else { words.join(" ") };
    text.chars().take(COMMAND_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_start_time() {
        let line =
            b"71 (my (odd) na me) S 70 71 71 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 58502 1 1 1";
        assert_eq!(parse_stat(line), Some(Stat { is_dead: false, parent: 70, start: 58502 }));
    }

    #[test]
    fn a_leader_that_left_its_threads_behind_is_not_dead() {
        let is_dead = |state: &str, threads: u32| {
            let line = format!("7 (x) {state} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 9 0 0");
            parse_stat(line.as_bytes()).expect("a whole line").is_dead
        };
        assert!(is_dead("Z", 1) && is_dead("X", 0));
        assert!(!is_dead("Z", 2) && !is_dead("R", 1));
    }

    #[test]
    fn the_lives_of_outlast_are_known_by_their_verbs() {
        for line in ["o\0__shim\0/d\0", "o\0__wait\0/p\0", "o\0__guard\0", "o\0daemon\0run\0"] {
            assert!(is_life(line.as_bytes()), "{line}");
        }
        for line in ["", "o\0", "o\0daemon\0status\0", "sh\0-c\0__guard\0", "__shim\0x\0"] {
            assert!(!is_life(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn we_have_a_start_time_ourselves() {
        assert!(stat(std::process::id()).is_some_and(|stat| stat.start > 0 && stat.parent > 0));
    }
}
