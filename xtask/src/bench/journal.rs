//! How fast the journal commits, held against what the disk and a bare SQLite can do.

use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::Result;
use outlast_engine::{Input, Retry, Run, RunId, create};
use outlast_store::{Append, Journal, Sqlite};

use super::bare;
use super::context::Context;
use super::floor;
use super::made;
use super::row::{Row, Target, median};

const RUNS: u32 = 512;

const FOR_EVER: Retry = Retry { max_attempts: u32::MAX, initial_backoff_ms: 0, max_backoff_ms: 0 };

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let (rounds, commits, appends) = if context.is_quick { (3, 1000, 40) } else { (5, 4000, 200) };
    let mut measured = Vec::new();
    for round in 0..rounds {
        let place = context.scratch.join(format!("journal{round}"));
        std::fs::create_dir(&place)?;
        // Each is measured in the same minute on the same disk, because the disk changes its mind.
        let disk = floor::sync_rate(&place, commits)?;
        let (one, many) = (one_rate(&place, commits)?, many_rate(&place, appends)?);
        let beside = beside_bare(&place, appends)?;
        measured.push(Rates { disk, one, many, beside });
    }
    let middle = |of: fn(&Rates) -> f64| median(measured.iter().map(of).collect());
    let (disk, one, many) = (middle(|m| m.disk), middle(|m| m.one), middle(|m| m.many));
    let alone = format!("{one:.0}/s one after another, write+fdatasync {disk:.0}/s");
    let together = format!("{many:.0}/s for {RUNS} runs at once, {one:.0}/s one after another");
    let beside = format!(
        "{:.0}/s for {RUNS} runs at once in groups of {:.0}, the same rows in the same groups by SQLite alone {:.0}/s",
        middle(|m| m.beside.ours),
        middle(|m| m.beside.group),
        middle(|m| m.beside.bare)
    );
    let of_bare = middle(|m| m.beside.ours / m.beside.bare);
    Ok(vec![
        Row::ratio("journal-one", middle(|m| m.one / m.disk), Target::AtLeast(0.8), alone),
        Row::ratio("journal-many", middle(|m| m.many / m.one), Target::AtLeast(8.0), together),
        Row::ratio("journal-bare", of_bare, Target::AtLeast(0.7), beside),
    ])
}

/// Appends in a second, in one round.
struct Rates {
    disk: f64,
    one: f64,
    many: f64,
    beside: Beside,
}

/// The journal and a bare SQLite with the same rows, all of them made ahead.
struct Beside {
    ours: f64,
    bare: f64,
    /// Appends that the journal's writer has committed together, in the middle.
    group: f64,
}

/// One run after another: each append waits for the one before.
fn one_rate(place: &Path, commits: u32) -> Result<f64> {
    let store = Sqlite::open(&place.join("one.db"))?;
    let mut run = Held::new(&store, 0, store.take_epoch()?)?;
    let begin = Instant::now();
    for _ in 0..commits {
        store.append_wait(run.next())?;
    }
    Ok(f64::from(commits) / begin.elapsed().as_secs_f64())
}

/// Many runs, each of which waits for its own last append only.
fn many_rate(place: &Path, appends: u32) -> Result<f64> {
    let store = Sqlite::open(&place.join("many.db"))?;
    let epoch = store.take_epoch()?;
    let mut runs = (0..RUNS).map(|n| Held::new(&store, n, epoch)).collect::<Result<Vec<_>>>()?;
    let (answers, answered) = mpsc::channel();
    let go_on = |run: &mut Held, n: usize| {
        let answers = answers.clone();
        store.append(run.next(), Box::new(move |answer| drop(answers.send((n, answer)))));
    };
    let begin = Instant::now();
    runs.iter_mut().enumerate().for_each(|(n, run)| go_on(run, n));
    let total = RUNS * appends;
    for left in (0..total).rev() {
        let (n, answer) = answered.recv()?;
        answer?;
        if left >= RUNS {
            go_on(&mut runs[n], n);
        }
    }
    Ok(f64::from(total) / begin.elapsed().as_secs_f64())
}

fn beside_bare(place: &Path, appends: u32) -> Result<Beside> {
    let store = Sqlite::open(&place.join("ahead.db"))?;
    let epoch = store.take_epoch()?;
    let mut runs = (0..RUNS).map(|n| Held::new(&store, n, epoch)).collect::<Result<Vec<_>>>()?;
    let made: Vec<Append> =
        (0..appends).flat_map(|_| runs.iter_mut().map(Held::next).collect::<Vec<_>>()).collect();
    let rows: Vec<_> = made.iter().map(bare::Rows::of).collect::<Result<_>>()?;
    let (before, total) = (store.commits(), RUNS * appends);
    let (answers, answered) = mpsc::channel();
    let begin = Instant::now();
    for (n, append) in (0..).zip(made) {
        // Each run waits for its last append: so many are on their way at once.
        if n >= RUNS {
            answered.recv()??;
        }
        let answers = answers.clone();
        store.append(append, Box::new(move |answer| drop(answers.send(answer))));
    }
    for _ in 0..RUNS {
        answered.recv()??;
    }
    let ours = f64::from(total) / begin.elapsed().as_secs_f64();
    let commits = u32::try_from(store.commits() - before)?;
    let group = (total / commits).max(1);
    drop(store);

    let path = place.join("bare.db");
    let store = Sqlite::open(&path)?;
    let epoch = store.take_epoch()?;
    (0..RUNS).try_for_each(|n| Held::new(&store, n, epoch).map(drop))?;
    drop(store);
    let bare = bare::rate(&path, &rows, usize::try_from(group)?)?;
    Ok(Beside { ours, bare, group: f64::from(group) })
}

/// A run that fails and is tried again for ever.
struct Held {
    run: Run,
    epoch: u64,
}

impl Held {
    fn new(store: &Sqlite, n: u32, epoch: u64) -> Result<Self> {
        let id = RunId(format!("aaaa{n:08}"));
        let events = create(&id, made::spec(&["false"], FOR_EVER), &made::context(0));
        let run = Run::replay(&id, &events)?;
        store.append_wait(Append {
            run: id,
            expected_seq: 0,
            epoch,
            events,
            row: run.row(),
            outbox: Vec::new(),
            spent: outlast_store::Entry::default(),
        })?;
        Ok(Self { run, epoch })
    }

    fn next(&mut self) -> Append {
        let expected_seq = self.run.seq();
        let news = made::exit(&self.run, 1).unwrap_or(Input::Woke);
        let events = self.run.handle(&news, &made::context(0));
        self.run = made::applied(self.run.clone(), &events);
        Append {
            run: self.run.id.clone(),
            expected_seq,
            epoch: self.epoch,
            events,
            row: self.run.row(),
            outbox: Vec::new(),
            spent: outlast_store::Entry::default(),
        }
    }
}
