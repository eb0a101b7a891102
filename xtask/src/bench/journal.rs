//! How fast the journal commits, held against what the disk can do.

use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::Result;
use outlast_engine::{Input, Retry, Run, RunId, create};
use outlast_store::{Append, Journal, Sqlite};

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
        measured.push((disk, one, many));
    }
    let middle = |of: fn(&(f64, f64, f64)) -> f64| median(measured.iter().map(of).collect());
    let (disk, one, many) = (middle(|m| m.0), middle(|m| m.1), middle(|m| m.2));
    let alone = format!("{one:.0}/s one after another, write+fdatasync {disk:.0}/s");
    let together = format!("{many:.0}/s for {RUNS} runs at once, {one:.0}/s one after another");
    Ok(vec![
        Row::ratio("journal-one", middle(|m| m.1 / m.0), Target::AtLeast(0.8), alone),
        Row::ratio("journal-many", middle(|m| m.2 / m.1), Target::AtLeast(8.0), together),
    ])
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

/// A run that fails and is tried again for ever.
struct Held {
    run: Run,
    epoch: u64,
}

impl Held {
    fn new(store: &Sqlite, n: u32, epoch: u64) -> Result<Self> {
        let id = RunId(format!("aaaa{n:08}"));
        let events = create(&id, made::spec(&["false"], FOR_EVER), &made::moment(0));
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
        let events = self.run.handle(&news, &made::moment(0));
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
