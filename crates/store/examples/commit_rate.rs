//! How fast the journal commits, held against what the disk can do.
//!
//! `cargo run --release -p outlast-store --example commit_rate [DIRECTORY]`

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a benchmark reads the clock and prints")]

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use outlast_engine::{
    Agent, BootId, Custody, End, Exit, Input, Limits, Moment, Report, Retry, Run, RunId, RunSpec, Started, Time, TreeNews,
    create,
};
use outlast_store::{Append, Journal, Sqlite};

/// Slices of this many commits take turns, because the disk changes its mind from one second to the next.
const SLICE: u32 = 50;
const SLICES: u32 = 60;
/// The two pages that most commits touch.
const COMMIT_BYTES: usize = 2 * 4096;
const RUNS: u32 = 512;
const APPENDS_PER_RUN: u32 = 100;
const ROUNDS: usize = 5;

type Any = Box<dyn Error>;

fn main() -> Result<(), Any> {
    let parent = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let directory = tempfile::tempdir_in(parent)?;
    let mut rounds = Vec::new();
    println!("{:>12} {:>12} {:>12} {:>8} {:>8}", "disk/s", "one/s", "512/s", "one/disk", "512/one");
    for round in 0..ROUNDS {
        let place = directory.path().join(round.to_string());
        std::fs::create_dir(&place)?;
        let ((disk, one), many) = (one_and_disk_rate(&place)?, many_rate(&place)?);
        println!("{disk:>12.0} {one:>12.0} {many:>12.0} {:>8.2} {:>8.2}", one / disk, many / one);
        rounds.push((one / disk, many / one));
    }
    let (one, many) = (median(&rounds, |round| round.0), median(&rounds, |round| round.1));
    println!("median: one/disk {one:.2} (target 0.8), 512/one {many:.1} (target 8)");
    Ok(())
}

/// One run after another, each append waiting for the one before; and beside it the disk alone, writing and
/// syncing as much as a commit does.
fn one_and_disk_rate(place: &Path) -> Result<(f64, f64), Any> {
    let file = File::create(place.join("raw"))?;
    let store = Sqlite::open(&place.join("one.db"))?;
    let mut run = Held::new(&store, 0)?;
    let (mut disk, mut one) = (Duration::ZERO, Duration::ZERO);
    for slice in 0..SLICES {
        let begin = Instant::now();
        for n in 0..SLICE {
            file.write_all_at(&[7; COMMIT_BYTES], u64::from(slice * SLICE + n) * COMMIT_BYTES as u64)?;
            file.sync_data()?;
        }
        disk += begin.elapsed();
        let begin = Instant::now();
        for _ in 0..SLICE {
            store.append_wait(run.next())?;
        }
        one += begin.elapsed();
    }
    let rate = |time: Duration| f64::from(SLICE * SLICES) / time.as_secs_f64();
    Ok((rate(disk), rate(one)))
}

/// Many runs, each of which waits for its own last append only.
fn many_rate(place: &Path) -> Result<f64, Any> {
    let store = Sqlite::open(&place.join("many.db"))?;
    let mut runs = (0..RUNS).map(|n| Held::new(&store, n)).collect::<Result<Vec<_>, _>>()?;
    let (answers, answered) = mpsc::channel();
    let begin = Instant::now();
    let go_on = |run: &mut Held, n: usize| {
        let answers = answers.clone();
        store.append(run.next(), Box::new(move |answer| drop(answers.send((n, answer)))));
    };
    runs.iter_mut().enumerate().for_each(|(n, run)| go_on(run, n));
    let total = RUNS * APPENDS_PER_RUN;
    for left in (0..total).rev() {
        let (n, answer) = answered.recv()?;
        answer?;
        if left >= RUNS {
            go_on(&mut runs[n], n);
        }
    }
    Ok(f64::from(total) / begin.elapsed().as_secs_f64())
}

/// A run that fails and is tried again for ever.
struct Held {
    run: Run,
    epoch: u64,
}

impl Held {
    fn new(store: &Sqlite, n: u32) -> Result<Self, Any> {
        let epoch = if n == 0 { store.take_epoch()? } else { 1 };
        let id = RunId(format!("aaaa{n:08}"));
        let events = create(&id, spec(), &moment());
        let run = Run::replay(&id, &events)?;
        store.append_wait(Append { run: id, expected_seq: 0, epoch, events, row: run.row() })?;
        Ok(Self { run, epoch })
    }

    fn next(&mut self) -> Append {
        let expected_seq = self.run.seq();
        let events = self.run.handle(&self.news(), &moment());
        let apply = |run: Run, event| run.apply(event).expect("the engine answers legal events only");
        self.run = events.iter().fold(self.run.clone(), apply);
        Append { run: self.run.id.clone(), expected_seq, epoch: self.epoch, events, row: self.run.row() }
    }

    fn news(&self) -> Input {
        let Some(attempt) = self.run.live() else { return Input::Woke };
        let end = End::Exited { at: moment().now, exit: Exit::Code(1), cause: None };
        Input::Reported(Report {
            turn: attempt.turn,
            attempt: attempt.number,
            custody: Custody::Shim,
            started: Some(Started { at: moment().now, pid: 41, start: 7 }),
            end: attempt.process.map(|_| end),
            tree: TreeNews::Empty,
            output_bytes: 0,
        })
    }
}

fn spec() -> RunSpec {
    RunSpec {
        name: None,
        key: None,
        task: None,
        agent: Agent { kind: "exec".to_owned(), command: vec!["false".to_owned()] },
        dir: "/tmp".to_owned(),
        umask: None,
        tty: None,
        labels: std::collections::BTreeMap::new(),
        parent: None,
        limits: Limits::default(),
        retry: Retry { max_attempts: u32::MAX, initial_backoff_ms: 0, max_backoff_ms: 0 },
    }
}

fn moment() -> Moment {
    Moment { now: Time(1_000_000), boot: BootId("boot-1".to_owned()) }
}

fn median(rounds: &[(f64, f64)], of: impl Fn(&(f64, f64)) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
