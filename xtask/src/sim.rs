//! `cargo xtask sim`: the daemon over a faulty world, seed by seed, on every core.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Result, anyhow};
use outlast_sim::{Failure, Options, Stats};

/// So many lines say how far it has come.
const LINES: u64 = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many seeds to try
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Only this one
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
}

impl Args {
    pub(crate) fn range(first: u64, seeds: u64) -> Self {
        Self { seeds, first, seed: None }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    match args.seed {
        Some(seed) => one(seed),
        None => many(args.first, args.seeds),
    }
}

fn one(seed: u64) -> Result<()> {
    let stats = outlast_sim::run_seed(seed, &Options::default())?;
    println!("{stats}");
    Ok(())
}

fn many(first: u64, seeds: u64) -> Result<()> {
    let begin = Instant::now();
    let work = Work::new(first, seeds);
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(|| work.carry_on()))));
    let stats = work.outcome.into_inner().expect("no worker panics while it holds this");
    let stats = stats.map_err(replay)?;
    println!("{stats}");
    let seconds = begin.elapsed().as_secs_f64();
    println!("sim: {seeds} seeds from {first} on hold, in {seconds:.1} s");
    Ok(())
}

fn replay(failure: Failure) -> anyhow::Error {
    anyhow!("{failure}\nreplay it with: cargo xtask sim --seed {}", failure.seed)
}

/// Seeds, handed out to workers in pieces.
struct Work {
    next: AtomicU64,
    end: u64,
    piece: u64,
    outcome: Mutex<Result<Stats, Failure>>,
}

impl Work {
    fn new(first: u64, seeds: u64) -> Self {
        let outcome = Mutex::new(Ok(Stats::default()));
        let end = first.saturating_add(seeds);
        Self { next: AtomicU64::new(first), end, piece: (seeds / LINES).max(1), outcome }
    }

    fn carry_on(&self) {
        let mut goes_on = true;
        while goes_on {
            let first = self.next.fetch_add(self.piece, Ordering::Relaxed);
            if first >= self.end {
                return;
            }
            let count = self.piece.min(self.end - first);
            goes_on =
                self.note(first, count, outlast_sim::run_range(first, count, &Options::default()));
        }
    }

    /// Adds a piece to the outcome, and says whether there is a point in going on.
    fn note(&self, first: u64, count: u64, piece: Result<Stats, Failure>) -> bool {
        let mut outcome = self.outcome.lock().expect("no worker panics while it holds this");
        match (&mut *outcome, piece) {
            (Ok(sum), Ok(stats)) => {
                sum.add(&stats);
                println!("sim: seeds {first} to {} hold", first + count - 1);
            }
            // The lowest seed that fails is told, whichever worker is first.
            (Err(known), Err(failure)) if failure.seed < known.seed => *known = failure,
            (Ok(_), Err(failure)) => *outcome = Err(failure),
            (Err(_), Ok(_) | Err(_)) => {}
        }
        outcome.is_ok()
    }
}
