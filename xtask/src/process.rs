//! Processes as the kernel shows them: which are ours, what they use, and their end.
//!
//! A process is ours if its environment names a home inside our scratch directory. No other is signalled.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// The processes whose home lies in `scratch`.
pub(crate) fn ours(scratch: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id() && is_ours(*pid, scratch)).collect()
}

fn is_ours(pid: u32, scratch: &Path) -> bool {
    let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
    let home = [b"OUTLAST_HOME=", scratch.as_os_str().as_bytes()].concat();
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(&home))
}

/// Kills a process if it is ours, and says whether it was there to be killed.
pub(crate) fn kill(pid: u32, scratch: &Path) -> Result<bool> {
    signal(pid, scratch, Signal::KILL)
}

/// Signals a process if it is ours, and says whether it was there to be signalled.
pub(crate) fn signal(pid: u32, scratch: &Path, signal: Signal) -> Result<bool> {
    let Some(known) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(false) };
    // Held before it is looked at, so that what was looked at is what is killed.
    let Ok(handle) = pidfd_open(known, PidfdFlags::empty()) else { return Ok(false) };
    if !is_ours(pid, scratch) {
        return Ok(false);
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::SRCH) => Ok(false),
        Err(error) => Err(error).with_context(|| format!("signalling {pid}")),
    }
}

/// Those of our processes that this one has started.
pub(crate) fn children(parent: u32, scratch: &Path) -> Vec<u32> {
    ours(scratch).into_iter().filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

/// Kills every process of ours and all that they have started, as a power cut would: none of them sees the end of another.
pub(crate) fn cut_power(scratch: &Path) -> Result<()> {
    for _ in 0..CUTS {
        let ours = ours(scratch);
        if ours.iter().all(|pid| !is_alive(*pid)) {
            return Ok(());
        }
        for pid in &ours {
            signal(*pid, scratch, Signal::STOP)?;
        }
        // A parent that stands still reaps no child, so these numbers are still theirs.
        for pid in descendants(&ours) {
            kill_one(pid)?;
        }
        for pid in ours {
            kill(pid, scratch)?;
        }
    }
    anyhow::bail!("processes {:?} would not go", ours(scratch))
}

/// So often is looked for processes that were being started.
const CUTS: usize = 200;

fn kill_one(pid: u32) -> Result<()> {
    let Some(known) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    match rustix::process::kill_process(known, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("killing {pid}")),
    }
}

/// What these have started, and what that has started, without themselves.
fn descendants(parents: &[u32]) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut others: Vec<(u32, u32)> = pids
        .filter(|pid| !parents.contains(pid))
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let mut found: Vec<u32> = Vec::new();
    loop {
        let is_known = |parent: &u32| parents.contains(parent) || found.contains(parent);
        let (next, rest): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, parent)| is_known(parent));
        if next.is_empty() {
            return found;
        }
        found.extend(next.into_iter().map(|(pid, _)| pid));
        others = rest;
    }
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A process holds its files and sockets until the last of its threads is gone.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| is_running(&thread.path().join("stat")))
}

fn is_running(stat: &Path) -> bool {
    let Ok(stat) = fs::read_to_string(stat) else { return false };
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Memory {
    Now,
    Peak,
    /// Without the pages of files: those of its program are shared with every shim and driver.
    Anonymous,
}

pub(crate) fn memory_mib(pid: u32, which: Memory) -> Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let key = match which {
        Memory::Now => "VmRSS",
        Memory::Peak => "VmHWM",
        Memory::Anonymous => "RssAnon",
    };
    let kib = field(&status, key).with_context(|| format!("{path} has no {key}"))?;
    Ok(kib as f64 / 1024.0)
}

/// What no other process has a share in.
pub(crate) fn own_kib(pid: u32) -> Result<u64> {
    let [clean, dirty] = rollup(pid, ["Private_Clean", "Private_Dirty"])?;
    Ok(clean + dirty)
}

/// Its own memory, and its part of what it shares.
pub(crate) fn proportional_mib(pid: u32) -> Result<f64> {
    let [kib] = rollup(pid, ["Pss"])?;
    Ok(kib as f64 / 1024.0)
}

fn rollup<const N: usize>(pid: u32, keys: [&str; N]) -> Result<[u64; N]> {
    let path = format!("/proc/{pid}/smaps_rollup");
    let rollup = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let mut found = [0; N];
    for (place, key) in found.iter_mut().zip(keys) {
        *place = field(&rollup, key).with_context(|| format!("{path} has no {key}"))?;
    }
    Ok(found)
}

/// What a process and all that it has reaped have used of the processors.
pub(crate) fn processor_time(pid: u32) -> Result<Duration> {
    /// What the kernel counts in for programs, on every platform that Linux has.
    const TICKS_A_SECOND: u32 = 100;
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace());
    let ticks = fields.with_context(|| format!("{path} has no name"))?.skip(11).take(4);
    let ticks = ticks.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(Duration::from_secs(ticks.into()) / TICKS_A_SECOND)
}

/// How often each thread of a process has gone to sleep.
pub(crate) struct Sleeps(BTreeMap<OsString, u64>);

impl Sleeps {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/task");
        let threads = fs::read_dir(&path).with_context(|| format!("reading {path}"))?;
        let count = |thread: fs::DirEntry| {
            let status = fs::read_to_string(thread.path().join("status")).ok()?;
            Some((thread.file_name(), field(&status, "voluntary_ctxt_switches")?))
        };
        Ok(Self(threads.flatten().filter_map(count).collect()))
    }

    /// How often they have gone to sleep since then. A thread that has ended since woke up for that.
    pub(crate) fn since(&self, before: &Self) -> u64 {
        let slept = self
            .0
            .iter()
            .map(|(thread, now)| now.saturating_sub(before.0.get(thread).copied().unwrap_or(0)));
        let ended = before.0.keys().filter(|thread| !self.0.contains_key(*thread)).count();
        slept.sum::<u64>() + ended as u64
    }
}

fn field(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let status =
            "VmHWM:\t    2048 kB\nnonvoluntary_ctxt_switches:\t9\nvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, "VmHWM"), Some(2048));
        assert_eq!(field(status, "voluntary_ctxt_switches"), Some(3));
        assert_eq!(field(status, "VmRSS"), None);
    }

    #[test]
    fn a_process_with_another_home_is_not_ours() {
        let scratch = tempfile::tempdir().expect("a directory");
        assert!(ours(scratch.path()).is_empty());
        assert!(!kill(std::process::id(), scratch.path()).expect("nothing is killed"));
        assert!(is_alive(std::process::id()));
    }
}
