//! The crash matrix of a loop: a process stands at a crash point, and this one, the other one, both or the
//! whole machine die.
//!
//! Each point is died at by the process that passes it, and by one other choice of victims, at one of its passes.
//! `OUTLAST_TEST_KILLS` asks for every choice, and for as many passes of each point.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Background, Home, is_alive, kill, nap, until};
use crate::loop_crash::{Cost, Loop, assert_told};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victims {
    /// The process that passes the point.
    Passer,
    Daemon,
    Shims,
    Both,
    /// Every process, and the next daemon is of another boot.
    Machine,
}

impl Victims {
    /// What a death here may cost.
    fn cost(self, point: &str) -> Cost {
        match self {
            Self::Daemon => Cost::Nothing,
            Self::Passer if point.starts_with("daemon.") => Cost::Nothing,
            Self::Passer | Self::Shims | Self::Both | Self::Machine => Cost::OneUnseen,
        }
    }

    fn others(point: &str) -> [Self; 3] {
        let other = if point.starts_with("daemon.") { Self::Shims } else { Self::Daemon };
        [other, Self::Both, Self::Machine]
    }
}

/// A process of the home that is one of ours, by its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Daemon,
    Shim,
    Client,
    Agent,
}

fn part(pid: u32) -> Part {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = line.split(|byte| *byte == 0);
    let is_ours = words.next().is_some_and(|program| program.ends_with(b"/outlast"));
    match (is_ours, words.next().unwrap_or_default(), words.next().unwrap_or_default()) {
        (true, b"__shim", _) => Part::Shim,
        (true, b"daemon", b"run") => Part::Daemon,
        (true, ..) => Part::Client,
        (false, ..) => Part::Agent,
    }
}

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

fn home(point: Option<(&str, usize)>, signal: &str) -> Home {
    let home = Home::new();
    let (token, log) = (home.scratch().join("token"), home.scratch().join("passed"));
    let home = home
        .env("OUTLAST_CRASH_LOG", &log)
        .env("OUTLAST_CRASH_TOKEN", &token)
        .env("OUTLAST_CRASH_SIGNAL", signal)
        .env("OUTLAST_FAKE_BOOT_ID", "first-boot");
    match point {
        Some((point, pass)) => {
            fs::write(token, "").expect("the scratch directory is ours");
            home.env("OUTLAST_CRASH_AT", format!("{point}@{pass}"))
        }
        None => home,
    }
}

fn tell_with_a_death(point: &str, pass: usize, victims: Victims) {
    let when = format!("{victims:?} at {point}, pass {pass}");
    let told = match victims {
        Victims::Passer => Loop::new(home(Some((point, pass)), "KILL"), ""),
        _ => Loop::new(home(Some((point, pass)), "STOP").env("OUTLAST_NO_AUTOSTART", "1"), ""),
    };
    let is_over = AtomicBool::new(false);
    let id = std::thread::scope(|scope| {
        if victims != Victims::Passer {
            // A client that starts a daemon waits for it, and the point may lie on the way.
            let starter = told.home.spawn(&["daemon", "start"]);
            scope.spawn(|| strike(&told, victims, starter, &is_over));
        }
        let id = told.start();
        told.end(&id);
        is_over.store(true, Ordering::Release);
        id
    });
    assert!(!told.home.scratch().join("token").exists(), "{when}: no process died");
    assert_told(&told, &id, victims.cost(point), &when);
}

/// Waits for a process to stand at the point, and has the victims die.
fn strike(told: &Loop, victims: Victims, starter: Background, is_over: &AtomicBool) {
    let passer = loop {
        let stopped = told.home.processes().into_iter().find(|pid| is_stopped(*pid));
        match stopped {
            Some(pid) => break pid,
            None if is_over.load(Ordering::Acquire) => return,
            None => nap(),
        }
    };
    drop(starter);
    let is_victim = |part: Part| match victims {
        Victims::Passer => false,
        Victims::Daemon => part == Part::Daemon,
        Victims::Shims => part == Part::Shim,
        Victims::Both => matches!(part, Part::Daemon | Part::Shim),
        Victims::Machine => part != Part::Client,
    };
    // A process that goes on may start another, so that the victims are dead before.
    loop {
        let doomed: Vec<u32> = told
            .home
            .processes()
            .into_iter()
            .filter(|pid| is_victim(part(*pid)) && is_alive(*pid))
            .collect();
        if doomed.is_empty() {
            break;
        }
        doomed.into_iter().for_each(|pid| kill(pid, "KILL"));
    }
    kill(passer, "CONT");
    match victims {
        Victims::Machine => start_daemon(told, "second-boot"),
        _ => start_daemon(told, "first-boot"),
    }
}

fn start_daemon(told: &Loop, boot: &str) {
    until("a daemon runs", || {
        let mut start = told.home.outlast(&["daemon", "start"]);
        let output = start.env("OUTLAST_FAKE_BOOT_ID", boot).output().expect("the program starts");
        output.status.success().then_some(())
    });
}

/// Every point that the loop passes when no process dies, and how often.
pub(crate) fn points() -> BTreeMap<String, usize> {
    let told = Loop::new(home(None, "KILL"), "");
    let id = told.start();
    assert_told(&told, &id, Cost::Nothing, "no process died");
    let passed = fs::read_to_string(told.home.scratch().join("passed")).unwrap_or_default();
    let mut points = BTreeMap::new();
    for point in passed.lines() {
        *points.entry(point.to_owned()).or_insert(0) += 1;
    }
    points
}

/// How many passes of a point are died at with every choice of victims, if that is asked for.
fn kills() -> Option<usize> {
    std::env::var("OUTLAST_TEST_KILLS").ok()?.parse().ok()
}

/// Some of the passes, which look as if chance had chosen them and are the same every time.
fn chosen(point: &str, victims: Victims, passes: usize) -> Vec<usize> {
    let words = format!("{point} {victims:?}");
    let seed =
        words.bytes().fold(7_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let count = kills().unwrap_or(1).clamp(1, passes);
    (0..count).map(|at| 1 + (seed / 8 + at * passes / count) % passes).collect()
}

fn tell_all(prefix: &str, choices: impl Fn(&str) -> Vec<Victims>) {
    for (point, passes) in points().into_iter().filter(|(point, _)| point.starts_with(prefix)) {
        for victims in choices(&point) {
            for pass in chosen(&point, victims, passes) {
                tell_with_a_death(&point, pass, victims);
            }
        }
    }
}

fn others(point: &str) -> Vec<Victims> {
    let all = Victims::others(point);
    match kills() {
        Some(_) => all.to_vec(),
        None => vec![all[point.len() % all.len()]],
    }
}

#[test]
fn a_loop_survives_its_daemon_at_every_point() {
    tell_all("daemon.", |_| vec![Victims::Passer]);
}

#[test]
fn a_loop_survives_its_shims_at_every_point() {
    tell_all("shim.", |_| vec![Victims::Passer]);
}

#[test]
fn a_loop_survives_whoever_else_dies_at_a_point_of_its_daemon() {
    tell_all("daemon.", others);
}

#[test]
fn a_loop_survives_whoever_else_dies_at_a_point_of_its_shims() {
    tell_all("shim.", others);
}
