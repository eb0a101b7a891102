//! The process tree below this shim as `/proc` shows it, and signals to its processes.
//!
//! A signal reaches only the process that was listed, or none (`outlast_home::process`). A zombie is dead and is not
//! listed. All of this is Linux's: a port to another system begins here.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use outlast_home::process::{self, Stat, Who};
use outlast_wire::again;
use outlast_wire::guard::GUARD_VERB;
use outlast_wire::shim::{Identity, Survivor};
use rustix::process::{Pid, Signal};

use crate::tolerate;

/// A list of survivors names at most this many, each with this much of its command.
const SURVIVORS_MAX: usize = 200;
const COMMAND_MAX: usize = 200;
/// How often, and after what time, a survivor with the command line of its main process is looked at again.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// More processes than this are ended in later rounds.
const LISTED_MAX: usize = 65_536;

pub(crate) fn identity(pid: Pid) -> io::Result<Identity> {
    process::identity(pid.as_raw_nonzero().get().unsigned_abs())
}

/// Every living descendant of this process, parents before their children.
pub(crate) fn descendants() -> Vec<Who> {
    descendants_but(&|_| false)
}

/// The same without the processes that are spared, and without all that is below them.
pub(crate) fn descendants_but(is_spared: &dyn Fn(u32) -> bool) -> Vec<Who> {
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

pub(crate) fn survivors(processes: &[Who]) -> Vec<Survivor> {
    let named = |process: &Who| Survivor {
        pid: process.pid,
        start: process.start,
        command: command(process.pid),
    };
    processes.iter().take(SURVIVORS_MAX).map(named).collect()
}

/// The same for what the main process leaves when it ends. A child that has not become its own program yet still has the
/// command line of the main process, and while it becomes one it has none; it gets a moment to do that.
pub(crate) fn survivors_of(main: &[String], processes: &[Who]) -> Vec<Survivor> {
    let of_main = main.join(" ");
    let becomes = |process: &Who| command_line(process.pid).is_none_or(|line| line == of_main);
    for _ in 0..LOOKS {
        if !processes.iter().take(SURVIVORS_MAX).any(becomes) {
            break;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    survivors(processes)
}

/// Sends each of `signals` to each process that is still the one that was listed.
pub(crate) fn signal(processes: &[Who], signals: &[Signal]) {
    for process in processes {
        // It ended on its own meanwhile, or is another user's: the next listing shows which.
        tolerate(process::signal_each(*process, signals));
    }
}

fn walk(root: u32, children_of: &dyn Fn(u32) -> Vec<u32>) -> Vec<Who> {
    let mut found = Vec::new();
    let mut parents = vec![root];
    for _ in 0..LISTED_MAX {
        let Some(parent) = parents.pop() else { break };
        for pid in children_of(parent) {
            let Some(stat) = stat(pid) else { continue };
            // A dead process may still have children that no process has taken over.
            parents.push(pid);
            if !stat.is_zombie {
                found.push(Who { pid, start: stat.start });
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

/// The children of every process, from the parent of every process.
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
    process::stat(pid).ok().flatten()
}

fn command(pid: u32) -> String {
    let name = || {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
    };
    command_line(pid).unwrap_or_else(name).chars().take(COMMAND_MAX).collect()
}

fn command_line(pid: u32) -> Option<String> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<_> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(String::from_utf8_lossy)
        .collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lives_of_outlast_are_known_by_their_verbs() {
        for line in ["o\0__shim\0/d\0", "o\0__wait\0/p\0", "o\0__guard\0", "o\0daemon\0run\0"] {
            assert!(is_life(line.as_bytes()), "{line}");
        }
        for line in ["", "o\0", "o\0daemon\0status\0", "sh\0-c\0__guard\0", "__shim\0x\0"] {
            assert!(!is_life(line.as_bytes()), "{line}");
        }
    }
}
