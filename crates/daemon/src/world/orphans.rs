//! The tree of an attempt whose shim is gone.
//!
//! Nobody is its subreaper any more, so its processes are found by the two marks they carry: the session
//! that the attempt's main process made, and the attempt's names in their environment. A process that has
//! shed both is not found, which is why this containment is called best effort.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use outlast_engine::{RunId, Step, Survivor};
use rustix::process::Signal;

use super::process::{self, Who};

/// What marks a process as part of one step.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    environment: Vec<Vec<u8>>,
    /// The main process, whose number is also its session's.
    main: Option<Who>,
}

impl Marks {
    pub(crate) fn new(run: &RunId, step: Step, main: Option<Who>) -> Self {
        let of_step = match step {
            Step::Attempt { turn, attempt } => {
                vec![format!("OUTLAST_TURN={turn}"), format!("OUTLAST_ATTEMPT={attempt}")]
            }
            Step::Errand { errand } => vec![format!("OUTLAST_ERRAND={errand}")],
        };
        let marks = std::iter::once(format!("OUTLAST_RUN_ID={run}")).chain(of_step);
        Self { environment: marks.map(String::into_bytes).collect(), main }
    }

    fn are_on(&self, pid: u32, stat: &process::Stat) -> bool {
        let in_session =
            self.main.is_some_and(|main| stat.session == main.pid && stat.start >= main.start);
        in_session || has_in_environment(pid, &self.environment)
    }
}

fn has_in_environment(pid: u32, marks: &[Vec<u8>]) -> bool {
    // Unreadable means another user's, or just gone: either way not ours to signal.
    let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) else { return false };
    let has = |mark: &[u8]| environment.split(|byte| *byte == 0).any(|variable| variable == mark);
    marks.iter().all(|mark| has(mark))
}

/// Everybody alive whom any attempt of this run has started.
pub(crate) fn of_run(run: &RunId) -> Vec<Survivor> {
    let mark = format!("OUTLAST_RUN_ID={run}").into_bytes();
    alive(|pid, _| has_in_environment(pid, std::slice::from_ref(&mark)))
}

/// Everybody alive who carries the marks.
pub(crate) fn members(marks: &Marks) -> Vec<Survivor> {
    alive(|pid, stat| marks.are_on(pid, stat))
}

fn alive(is_one: impl Fn(u32, &process::Stat) -> bool) -> Vec<Survivor> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let me = std::process::id();
    processes
        .flatten()
        .filter_map(|entry| std::str::from_utf8(entry.file_name().as_bytes()).ok()?.parse().ok())
        .filter(|pid| *pid != me)
        .filter_map(|pid: u32| Some((pid, process::stat(pid)?)))
        .filter(|(pid, stat)| !stat.is_zombie && is_one(*pid, stat))
        .map(|(pid, stat)| Survivor { pid, start: stat.start, command: stat.command })
        .collect()
}

/// Signals everybody who carries the marks; says who that was.
pub(crate) fn signal(marks: &Marks, signal: Signal) -> BTreeMap<u32, Survivor> {
    let members = members(marks);
    for member in &members {
        process::signal(Who { pid: member.pid, start: member.start }, signal);
    }
    members.into_iter().map(|member| (member.pid, member)).collect()
}
