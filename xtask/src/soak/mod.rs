//! `cargo xtask soak`: real runs, a daemon and shims that are killed at random, and an audit of what is left.
//!
//! A seed repeats the workload and the order of the kills, not their exact moments: what fails here is
//! understood from the journals it prints, and then becomes a crash test or a simulated seed.

mod audit;
mod chaos;
mod hostile;
mod workload;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use self::workload::{Kind, Workload};
use crate::private::{self, Private};
use crate::random::Random;
use crate::root::{self, Profile};
use crate::{interrupt, stamp};

/// So many runs may be going on at once.
const LIVE_MAX: usize = 24;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long to go on starting runs: 5 if not said, 10 with an adversary
    #[arg(long)]
    minutes: Option<f64>,
    /// With an adversary in the machine, not only a killer
    #[arg(long)]
    hostile: bool,
    /// Of the adversary's hazards only these
    #[arg(long, value_delimiter = ',', requires = "hostile")]
    only: Vec<hostile::Hazard>,
    /// All of the adversary's hazards but these
    #[arg(long, value_delimiter = ',', requires = "hostile", conflicts_with = "only")]
    without: Vec<hostile::Hazard>,
    /// Repeats a workload; chosen and printed if absent
    #[arg(long)]
    seed: Option<u64>,
    /// Soak the release build
    #[arg(long)]
    release: bool,
    /// Soak this program instead of building one
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

impl Args {
    fn plan(&self, seed: u64) -> hostile::Plan {
        let is_meant = |hazard: &hostile::Hazard| match self.only.is_empty() {
            true => !self.without.contains(hazard),
            false => self.only.contains(hazard),
        };
        let hazards = hostile::Hazard::value_variants().iter().copied().filter(is_meant).collect();
        hostile::Plan { minutes: self.minutes.unwrap_or(10.0), seed, hazards }
    }
}

/// A run that was acknowledged, and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    id: String,
    kind: Kind,
    /// Whether we killed its shim, so that its outcome may be lost.
    lost_shim: bool,
}

/// What the workload and the killer both know.
#[derive(Default)]
struct Shared {
    runs: Mutex<Vec<Run>>,
    is_over: AtomicBool,
}

impl Shared {
    fn runs(&self) -> std::sync::MutexGuard<'_, Vec<Run>> {
        self.runs.lock().expect("no holder of the list panics")
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || interrupt::is_asked()
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    interrupt::listen()?;
    let seed = args.seed.unwrap_or_else(|| stamp::now_ns() % 1_000_000);
    let binary = match &args.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => {
            root::build(&["outlast"], if args.release { Profile::Release } else { Profile::Debug })?
                .join("outlast")
        }
    };
    if args.hostile {
        return hostile::run(&binary, &args.plan(seed));
    }
    let scratch = tempfile::Builder::new()
        .prefix("soak-")
        .tempdir_in(root::target())
        .context("a scratch directory")?;
    let swept = scratch.path().to_owned();
    let done = {
        let outlast = Private::new(&binary, scratch.path().join("home"))?;
        // So many deaths would have what they interrupt held back, which is not what is soaked here.
        std::fs::write(outlast.home().join("config.toml"), "[supervision]\nstorm_starts = 0\n")
            .context("a config that bears any number of deaths")?;
        soak(&outlast, args, seed)
    };
    private::sweep(&swept)?;
    done.with_context(|| format!("soak with seed {seed}"))
}

fn soak(outlast: &Private, args: &Args, seed: u64) -> Result<()> {
    let minutes = args.minutes.unwrap_or(5.0);
    println!("soak: seed {seed}, {minutes} min, home {}", outlast.home().display());
    let shared = Shared::default();
    let end = Instant::now() + Duration::from_secs_f64(minutes * 60.0);
    let mut random = Random::new(seed);
    let mut chaos = chaos::Chaos::new(outlast, &shared, Random::new(random.next()));
    let workload = Workload::new(outlast, seed)?;
    let started = thread::scope(|scope| {
        let killer = scope.spawn(|| chaos.go_on());
        let started = start_runs(&workload, &shared, &mut random, end);
        shared.is_over.store(true, Ordering::Relaxed);
        killer.join().expect("the killer does not panic").and(started)
    });
    println!("soak: {} runs started; {}", shared.runs().len(), chaos.tally());
    started?;
    let runs = shared.runs().clone();
    let problems = audit::audit(outlast, &workload, &runs)?;
    if problems.is_empty() {
        println!("soak: {} runs and their journals hold", runs.len());
        return Ok(());
    }
    problems.iter().for_each(|problem| println!("soak: {problem}"));
    bail!("{} problems", problems.len())
}

fn start_runs(
    workload: &Workload<'_>,
    shared: &Shared,
    random: &mut Random,
    end: Instant,
) -> Result<()> {
    let mut number = 0;
    let mut told = Instant::now();
    while Instant::now() < end && !shared.is_over() {
        number += 1;
        let kind = Kind::any(random);
        let id = workload.start(number, kind)?;
        shared.runs().push(Run { id: id.clone(), kind, lost_shim: false });
        if let Kind::Stopped { now } = kind {
            workload.stop(&id, now)?;
        }
        let oldest_allowed = shared.runs().len().checked_sub(LIVE_MAX);
        let oldest = oldest_allowed.map(|index| shared.runs()[index].id.clone());
        if let Some(oldest) = oldest {
            workload.await_end(&oldest)?;
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            println!(
                "soak: {number} runs started, {:.0} s left",
                (end - Instant::now()).as_secs_f64()
            );
        }
        interrupt::pause(Duration::from_millis(random.below(60)));
    }
    interrupt::check()
}
