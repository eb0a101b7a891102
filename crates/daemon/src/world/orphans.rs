//! The tree of a step whose shim is gone, or cannot be asked.
//!
//! Its processes are found by the marks they carry: the session that the step's main process made, the step's
//! names in their environment, and descent from a shim that was started for the step's directory. A process
//! that has shed all of them is not found, which is why this containment is called best effort. The shim itself
//! is found by its command line, so that it is found also when the directory is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::ffi::OsStrExt;

use outlast_engine::{RunId, Step, Survivor};
use outlast_home::layout::AttemptDir;
use outlast_wire::again;
use rustix::process::Signal;

use super::process::{self, Stat, Who};

/// What marks a process as part of one step.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    environment: Vec<Vec<u8>>,
    /// The main process, whose number is also its session's.
    main: Option<Who>,
    /// What the step's shim was started with, after its program's name.
    shim: [Vec<u8>; 2],
}

/// Who is alive of one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The command and what it has started, but no shim.
    pub(crate) tree: Vec<Survivor>,
    /// The shims of the step: one, or none.
    pub(crate) shims: Vec<Survivor>,
    /// The process of the tree that leads a session of its own and is the oldest of those: the main process,
    /// where nothing else names it.
    pub(crate) leader: Option<Who>,
}

impl Marks {
    pub(crate) fn new(run: &RunId, step: Step, dir: &AttemptDir, main: Option<Who>) -> Self {
        let of_step = match step {
            Step::Attempt { turn, attempt } => {
                vec![format!("OUTLAST_TURN={turn}"), format!("OUTLAST_ATTEMPT={attempt}")]
            }
            Step::Errand { errand } => vec![format!("OUTLAST_ERRAND={errand}")],
        };
        let marks = std::iter::once(format!("OUTLAST_RUN_ID={run}")).chain(of_step);
        let environment = marks.map(String::into_bytes).collect();
        let shim = [b"__shim".to_vec(), dir.0.as_os_str().as_bytes().to_vec()];
        Self { environment, main, shim }
    }

    fn are_on(&self, pid: u32, stat: &Stat) -> io::Result<bool> {
        let in_session =
            self.main.is_some_and(|main| stat.session == main.pid && stat.start >= main.start);
        Ok(in_session || has_in_environment(pid, &self.environment)?)
    }

    /// True for a shim of the step, and for a child of it that has not become the command yet.
    fn are_a_shims(&self, pid: u32) -> io::Result<bool> {
        let Some(line) = process::read(pid, "cmdline")? else { return Ok(false) };
        let mut words = line.split(|byte| *byte == 0).skip(1);
        Ok(self.shim.iter().all(|wanted| words.next() == Some(wanted)))
    }
}

/// What cannot be read is another user's, or just gone: either way not ours to signal.
fn has_in_environment(pid: u32, marks: &[Vec<u8>]) -> io::Result<bool> {
    let Some(environment) = process::read(pid, "environ")? else { return Ok(false) };
    let has = |mark: &[u8]| environment.split(|byte| *byte == 0).any(|variable| variable == mark);
    Ok(marks.iter().all(|mark| has(mark)))
}

/// Every living process that any attempt of this run has started.
pub(crate) fn of_run(run: &RunId) -> io::Result<Vec<Survivor>> {
    let mark = format!("OUTLAST_RUN_ID={run}").into_bytes();
    let all = alive()?;
    let marked = pids(&all, |pid, _| has_in_environment(pid, std::slice::from_ref(&mark)))?;
    Ok(all.iter().filter(|(pid, _)| marked.contains(pid)).map(survivor).collect())
}

/// Every living process that carries the marks. That processes cannot be looked at is an error, and no proof that
/// there are none.
pub(crate) fn look(marks: &Marks) -> io::Result<Found> {
    let all = alive()?;
    let with_its_name = pids(&all, |pid, _| marks.are_a_shims(pid))?;
    let marked = pids(&all, |pid, stat| marks.are_on(pid, stat))?;
    Ok(sort(&all, &with_its_name, &marked))
}

fn pids(
    all: &BTreeMap<u32, Stat>,
    is_one: impl Fn(u32, &Stat) -> io::Result<bool>,
) -> io::Result<BTreeSet<u32>> {
    let mut pids = BTreeSet::new();
    for (pid, stat) in all {
        if is_one(*pid, stat)? {
            pids.insert(*pid);
        }
    }
    Ok(pids)
}

/// Who of these processes is what, given who has a shim's command line and who carries the marks.
fn sort(all: &BTreeMap<u32, Stat>, with_its_name: &BTreeSet<u32>, marked: &BTreeSet<u32>) -> Found {
    let is_own_child =
        |pid: &u32| all.get(pid).is_some_and(|stat| with_its_name.contains(&stat.parent));
    let shims: BTreeSet<u32> =
        with_its_name.iter().copied().filter(|pid| !is_own_child(pid)).collect();
    let descends = |pid: u32| ancestors(all, pid).any(|parent| shims.contains(&parent));
    let is_of_tree = |pid: u32| !shims.contains(&pid) && (marked.contains(&pid) || descends(pid));
    let tree: Vec<(&u32, &Stat)> = all.iter().filter(|(pid, _)| is_of_tree(**pid)).collect();
    let leaders = tree.iter().filter(|(pid, stat)| stat.session == **pid);
    let leader = leaders.min_by_key(|(_, stat)| stat.start);
    Found {
        leader: leader.map(|(pid, stat)| Who { pid: **pid, start: stat.start }),
        tree: tree.into_iter().map(survivor).collect(),
        shims: all.iter().filter(|(pid, _)| shims.contains(pid)).map(survivor).collect(),
    }
}

/// The parent of a process, its parent, and so on. A list that was read while processes came and went may hold
/// a circle, so it is followed for as many steps as there are processes, and no more.
fn ancestors(all: &BTreeMap<u32, Stat>, pid: u32) -> impl Iterator<Item = u32> {
    let parent = move |pid: &u32| all.get(pid).map(|stat| stat.parent);
    std::iter::successors(parent(&pid), parent).take(all.len())
}

fn survivor((pid, stat): (&u32, &Stat)) -> Survivor {
    Survivor { pid: *pid, start: stat.start, command: stat.command.clone() }
}

/// Every process but ours; a zombie is dead.
fn alive() -> io::Result<BTreeMap<u32, Stat>> {
    let me = std::process::id();
    let mut alive = BTreeMap::new();
    for entry in again::read_dir("/proc")? {
        let name = entry?.file_name();
        let number = std::str::from_utf8(name.as_bytes()).ok().and_then(|name| name.parse().ok());
        let Some(pid) = number.filter(|pid: &u32| *pid != me) else { continue };
        if let Some(stat) = process::stat(pid)?.filter(|stat| !stat.is_zombie) {
            alive.insert(pid, stat);
        }
    }
    Ok(alive)
}

/// Signals these, each by its identity.
pub(crate) fn signal(these: &[Survivor], signal: Signal) {
    for one in these {
        process::signal(Who { pid: one.pid, start: one.start }, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(parent: u32, session: u32, start: u64) -> Stat {
        Stat {
            command: "x".to_owned(),
            is_zombie: false,
            is_frozen: false,
            is_traced: false,
            parent,
            session,
            start,
        }
    }

    fn named(these: &[Survivor]) -> Vec<u32> {
        these.iter().map(|one| one.pid).collect()
    }

    fn sorted(all: &BTreeMap<u32, Stat>, with_its_name: &[u32], marked: &[u32]) -> Found {
        let set = |pids: &[u32]| pids.iter().copied().collect();
        sort(all, &set(with_its_name), &set(marked))
    }

    #[test]
    fn a_tree_is_what_descends_from_its_shim_or_carries_its_marks_and_no_shim() {
        let all = BTreeMap::from([
            (10, stat(1, 10, 1)),
            (11, stat(10, 11, 2)),
            (12, stat(11, 11, 3)),
            (13, stat(1, 13, 4)),
            (14, stat(1, 14, 5)),
        ]);
        let found = sorted(&all, &[10], &[13]);
        assert_eq!((named(&found.tree), named(&found.shims)), (vec![11, 12, 13], vec![10]));
        assert_eq!(
            found.leader,
            Some(Who { pid: 11, start: 2 }),
            "the oldest that leads a session"
        );
    }

    #[test]
    fn a_child_that_waits_at_the_barrier_is_of_the_tree_and_no_second_shim() {
        let all = BTreeMap::from([(10, stat(1, 10, 1)), (11, stat(10, 11, 2))]);
        let found = sorted(&all, &[10, 11], &[]);
        assert_eq!((named(&found.tree), named(&found.shims)), (vec![11], vec![10]));
    }

    #[test]
    fn parents_in_a_circle_end() {
        let all = BTreeMap::from([(2, stat(3, 2, 1)), (3, stat(2, 3, 1))]);
        assert_eq!(sorted(&all, &[], &[]), Found::default());
    }
}
