//! `cargo xtask soak --hostile`: a day's life in a few minutes, with an adversary in the machine.
//!
//! Loops, commands, terminals, hooks, tools, schedules and sinks go on while processes are killed and frozen,
//! files of attempts vanish, the disk fills, descriptors run out, the clock leaps, clients hang up and old
//! journals are put back. Afterwards everything that was acknowledged is there, or its loss is named with the
//! hazard that caused it; nothing ran twice at once; nothing is left alive.

mod audit;
mod hazards;
mod ledger;
mod person;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::hazards::Adversary;
pub(super) use self::hazards::Hazard;
use self::ledger::Ledger;
use self::tasks::Tasks;
use crate::interrupt;
use crate::private::{self, Private};
use crate::random::Random;
use crate::root;

/// Set in the process that has mounts of its own.
const INSIDE: &str = "OUTLAST_SOAK_INSIDE";
/// Large enough for the thousands of runs of ten minutes, small enough to be filled.
const DISK: &str = "size=1g,mode=0700";
/// So many runs may be going on at once.
const LIVE_MAX: usize = 16;

/// Everything that the threads of a soak share.
struct Soak<'a> {
    outlast: &'a Private,
    scratch: PathBuf,
    ledger: Ledger,
}

/// Which hazards there are, and how long it takes.
pub(super) struct Plan {
    pub(super) minutes: f64,
    pub(super) seed: u64,
    pub(super) hazards: Vec<Hazard>,
}

pub(super) fn run(binary: &Path, plan: &Plan) -> Result<()> {
    if std::env::var_os(INSIDE).is_none() && can_mount() {
        return inside();
    }
    let scratch = tempfile::Builder::new().prefix("hostile-").tempdir_in(root::target())?;
    let done = prepared(binary, plan, &scratch.path().canonicalize()?);
    private::sweep(scratch.path())?;
    unmount(&scratch.path().join("home"));
    done.with_context(|| format!("hostile soak with seed {}", plan.seed))
}

/// A disk that can be filled is a mount, and mounts are made in a namespace that ends with us.
fn can_mount() -> bool {
    let tried = Command::new("unshare").args(["-m", "true"]).output();
    tried.is_ok_and(|output| output.status.success())
}

fn inside() -> Result<()> {
    let status = Command::new("unshare")
        .arg("-m")
        .arg(std::env::current_exe().context("our own program")?)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .status()
        .context("starting unshare")?;
    if status.success() { Ok(()) } else { bail!("the soak ended with {status}") }
}

fn unmount(home: &Path) {
    if std::env::var_os(INSIDE).is_some() {
        let _not_mounted_is_fine = Command::new("umount").arg("-l").arg(home).output();
    }
}

fn prepared(binary: &Path, plan: &Plan, scratch: &Path) -> Result<()> {
    let home = scratch.join("home");
    fs::create_dir(&home)?;
    let mut hazards = plan.hazards.clone();
    if std::env::var_os(INSIDE).is_some() {
        let mount = ["-t", "tmpfs", "-o", DISK, "outlast-soak"];
        let mounted = Command::new("mount").args(mount).arg(&home).status()?;
        if !mounted.success() {
            bail!("a disk of our own could not be mounted: {mounted}");
        }
    } else {
        println!("soak: no mount namespace here, so the disk is not filled");
        hazards.retain(|hazard| *hazard != Hazard::Disk);
    }
    for directory in ["locks", "counts", "work"] {
        fs::create_dir(scratch.join(directory))?;
    }
    fs::write(home.join("config.toml"), "[supervision]\nstorm_starts = 0\n")?;
    let clock = scratch.join("clock");
    fs::write(&clock, "0")?;
    let outlast = Private::new(binary, home)?.with_env("OUTLAST_FAKE_CLOCK_FILE", &clock);
    soak(&outlast, plan, &hazards, scratch)
}

fn soak(outlast: &Private, plan: &Plan, hazards: &[Hazard], scratch: &Path) -> Result<()> {
    let words: Vec<String> = hazards.iter().map(|hazard| format!("{hazard:?}")).collect();
    println!("soak: hostile, seed {}, {} min: {}", plan.seed, plan.minutes, words.join(", "));
    let soak = Soak { outlast, scratch: scratch.to_owned(), ledger: Ledger::default() };
    let tasks = Tasks::new(&soak)?;
    let mut random = Random::new(plan.seed);
    let mut adversary = Adversary::new(&soak, hazards, Random::new(random.next()));
    let end = Instant::now() + Duration::from_secs_f64(plan.minutes * 60.0);
    let done = thread::scope(|scope| {
        let adversary = scope.spawn(|| adversary.go_on());
        let person = scope.spawn(|| person::go_on(&soak));
        let started = start_runs(&soak, &tasks, &mut random, end);
        soak.ledger.is_over.store(true, Ordering::Relaxed);
        let person = person.join().expect("the person does not panic");
        adversary.join().expect("the adversary does not panic").and(person).and(started)
    });
    println!("soak: {} runs acknowledged; {}", soak.ledger.runs().len(), adversary.tally());
    adversary.relent()?;
    done?;
    let found = audit::audit(&soak)?;
    found.named.iter().for_each(|loss| println!("soak: named: {loss}"));
    if found.problems.is_empty() {
        println!(
            "soak: {} runs, {} orders: everything acknowledged is there, or its loss is named ({})",
            soak.ledger.runs().len(),
            soak.ledger.orders().len(),
            found.named.len()
        );
        return Ok(());
    }
    found.problems.iter().for_each(|problem| println!("soak: PROBLEM: {problem}"));
    bail!("{} problems", found.problems.len())
}

fn start_runs(soak: &Soak<'_>, tasks: &Tasks, random: &mut Random, end: Instant) -> Result<()> {
    tasks.schedule(soak)?;
    let (mut number, mut told) = (0, Instant::now());
    while Instant::now() < end && !interrupt::is_asked() {
        number += 1;
        tasks.start(soak, number, random)?;
        while soak.ledger.live(soak.outlast)? >= LIVE_MAX && Instant::now() < end {
            interrupt::pause(Duration::from_millis(200));
        }
        if told.elapsed() > Duration::from_secs(15) {
            told = Instant::now();
            println!("soak: {number} runs started, {:.0} s left", (end - told).as_secs_f64());
        }
        interrupt::pause(Duration::from_millis(random.below(150)));
    }
    interrupt::check()
}
