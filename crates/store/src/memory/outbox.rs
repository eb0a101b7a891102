//! The outbox in memory, row by row as the tables on disk have it.

use std::collections::{BTreeMap, BTreeSet};

use outlast_engine::{RunId, Time};

use super::Memory;
use crate::{
    Backlog, Change, Done, Error, NoticeCounts, Outbox, Outgoing, Settled, SinkHealth, SinkState,
    Waiting, rules,
};

/// In the order of writing.
#[derive(Debug, Default)]
pub(super) struct Rack {
    rows: Vec<Kept>,
    health: BTreeMap<String, SinkHealth>,
}

#[derive(Debug)]
struct Kept {
    sink: String,
    notice: Waiting,
    /// `None` while it waits.
    settled: Option<(Settled, Time)>,
    problem: Option<String>,
}

impl Memory {
    /// Every notice there ever was of a run, as its type and its sink: the simulator counts them.
    pub fn told(&self, run: &RunId) -> Vec<(String, String)> {
        let shelf = self.shelf();
        let told = shelf.outbox.rows.iter().filter(|row| row.notice.run == *run);
        told.map(|row| (row.notice.kind.clone(), row.sink.clone())).collect()
    }
}

impl Outbox for Memory {
    fn change(&self, epoch: u64, change: Change, done: Done) {
        let answer = {
            let mut shelf = self.shelf();
            rules::check_epoch(epoch, shelf.epoch).map(|()| shelf.outbox.change(change))
        };
        done(answer);
    }

    fn waiting_sinks(&self) -> Result<Vec<String>, Error> {
        let shelf = self.shelf();
        let sinks: BTreeSet<&String> = shelf.outbox.pending().map(|row| &row.sink).collect();
        Ok(sinks.into_iter().cloned().collect())
    }

    fn waiting(&self, sink: &str, now: Time, most: usize) -> Result<Vec<Waiting>, Error> {
        let shelf = self.shelf();
        let mut earlier: BTreeMap<&RunId, (u32, Time)> = BTreeMap::new();
        let mut found: Vec<(u32, Waiting)> = Vec::new();
        for row in shelf.outbox.pending_of(sink) {
            let (tries, next_at) = earlier.entry(&row.notice.run).or_insert((0, Time(0)));
            *tries = (*tries).max(row.notice.tries);
            *next_at = (*next_at).max(row.notice.next_at.unwrap_or(Time(0)));
            if *next_at <= now {
                found.push((*tries, row.notice.clone()));
            }
        }
        found.sort_by_key(|(tries, _)| *tries);
        Ok(found.into_iter().map(|(_, notice)| notice).take(most).collect())
    }

    fn batch(&self, sink: &str, batch: &str) -> Result<Vec<Waiting>, Error> {
        let shelf = self.shelf();
        let rows = shelf.outbox.pending_of(sink).map(|row| &row.notice);
        Ok(rows.filter(|notice| notice.batch.as_deref() == Some(batch)).cloned().collect())
    }

    fn backlog(&self, sink: &str, now: Time) -> Result<Backlog, Error> {
        let shelf = self.shelf();
        let later = shelf.outbox.pending_of(sink).filter_map(|row| row.notice.next_at);
        let next_at = later.filter(|at| *at > now).min();
        Ok(Backlog { waiting: count(shelf.outbox.pending_of(sink)), next_at })
    }

    fn told_since(&self, sink: &str, after: Time) -> Result<u64, Error> {
        let shelf = self.shelf();
        let is_recent = |row: &&Kept| {
            row.sink == sink && matches!(row.settled, Some((Settled::Delivered, at)) if at > after)
        };
        let told = shelf.outbox.rows.iter().filter(is_recent);
        let ids: BTreeSet<&String> =
            told.map(|row| row.notice.batch.as_ref().unwrap_or(&row.notice.id)).collect();
        Ok(count(ids.into_iter()))
    }

    fn sink_health(&self, sink: &str) -> Result<Option<SinkHealth>, Error> {
        Ok(self.shelf().outbox.health.get(sink).cloned())
    }

    fn sink_states(&self) -> Result<Vec<SinkState>, Error> {
        let shelf = self.shelf();
        let rack = &shelf.outbox;
        let sinks: BTreeSet<&String> =
            rack.rows.iter().map(|row| &row.sink).chain(rack.health.keys()).collect();
        Ok(sinks.into_iter().map(|sink| rack.state(sink)).collect())
    }

    fn notice_counts(&self, run: &RunId) -> Result<NoticeCounts, Error> {
        let shelf = self.shelf();
        let of_run: Vec<&Kept> =
            shelf.outbox.rows.iter().filter(|row| row.notice.run == *run).collect();
        let settled = |how| count(of_run.iter().filter(|row| row.is(how)));
        let went_wrong = |row: &&&Kept| row.settled.is_none() || row.is(Settled::GivenUp);
        let problem = of_run.iter().rev().filter(went_wrong).find_map(|row| row.problem.clone());
        Ok(NoticeCounts {
            pending: count(of_run.iter().filter(|row| row.settled.is_none())),
            delivered: settled(Settled::Delivered),
            muted: settled(Settled::Muted),
            given_up: settled(Settled::GivenUp),
            problem,
        })
    }
}

impl Rack {
    /// True if a notice of this run is remembered.
    pub(super) fn has(&self, run: &RunId) -> bool {
        self.rows.iter().any(|row| row.notice.run == *run)
    }

    pub(super) fn put(&mut self, run: &RunId, mut told: Vec<Outgoing>) {
        let is_known = |outgoing: &Outgoing| {
            self.rows.iter().any(|row| row.notice.id == outgoing.id && row.sink == outgoing.sink)
        };
        told.retain(|outgoing| !is_known(outgoing));
        self.rows.extend(told.into_iter().map(|outgoing| Kept {
            sink: outgoing.sink,
            notice: Waiting {
                id: outgoing.id,
                run: run.clone(),
                kind: outgoing.kind,
                at: outgoing.at,
                body: outgoing.body,
                tries: 0,
                next_at: None,
                since: None,
                batch: None,
            },
            settled: None,
            problem: None,
        }));
    }

    /// A notice that a sink has yet to get outlives the run that it is about.
    pub(super) fn forget(&mut self, run: &RunId) {
        self.rows.retain(|row| row.notice.run != *run || row.settled.is_none());
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Settle { sink, ids, how, at, problem } => {
                self.each(&sink, &ids, |row| row.settle(how, at, problem.clone()));
                if how == Settled::Delivered {
                    self.health.remove(&sink);
                }
            }
            Change::Refused { sink, ids, at, next_at, problem } => {
                self.each(&sink, &ids, |row| {
                    row.notice.tries += 1;
                    row.notice.next_at = Some(next_at);
                    row.notice.since = row.notice.since.or(Some(at));
                    row.problem = Some(problem.clone());
                });
            }
            Change::Failed { sink, ids, at, next_at, problem } => {
                self.each(&sink, &ids, |row| row.problem = Some(problem.clone()));
                let health = self.unwell(sink, at);
                health.next_at = Some(next_at);
                health.problem = Some(problem);
            }
            Change::Disable { sink, at, problem } => {
                let health = self.unwell(sink, at);
                health.problem = Some(problem);
                health.disabled_at = Some(at);
            }
            Change::Enable { sink } => {
                self.health.remove(&sink);
                for row in self.rows.iter_mut().filter(|row| row.waits_for(&sink)) {
                    (row.notice.next_at, row.notice.since) = (None, None);
                }
            }
            Change::Batch { sink, ids, batch } => self.each(&sink, &ids, |row| {
                row.notice.batch.get_or_insert_with(|| batch.clone());
            }),
            Change::GiveUp { sink, before, keep, at, problem } => {
                let keep = usize::try_from(keep).unwrap_or(usize::MAX);
                let newest = self.rows.iter_mut().rev().filter(|row| row.waits_for(&sink));
                newest
                    .skip(keep)
                    .for_each(|row| row.settle(Settled::GivenUp, at, Some(problem.clone())));
                let old = self.rows.iter_mut().filter(|row| row.waits_for(&sink));
                old.filter(|row| row.notice.at < before)
                    .for_each(|row| row.settle(Settled::GivenUp, at, Some(problem.clone())));
            }
            Change::Prune { before, keep } => self.prune(before, keep),
        }
    }

    fn each(&mut self, sink: &str, ids: &[String], mut act: impl FnMut(&mut Kept)) {
        let waiting = self.rows.iter_mut().filter(|row| row.waits_for(sink));
        waiting.filter(|row| ids.contains(&row.notice.id)).for_each(&mut act);
    }

    fn unwell(&mut self, sink: String, at: Time) -> &mut SinkHealth {
        let fresh =
            SinkHealth { failures: 0, since: at, next_at: None, problem: None, disabled_at: None };
        let health = self.health.entry(sink).or_insert(fresh);
        health.failures += 1;
        health
    }

    fn prune(&mut self, before: Time, keep: u64) {
        self.rows.retain(|row| row.settled.is_none_or(|(_, at)| at >= before));
        let mut settled: Vec<(Time, usize)> =
            self.rows.iter().enumerate().filter_map(|(n, row)| Some((row.settled?.1, n))).collect();
        settled.sort_by(|a, b| b.cmp(a));
        let keep = usize::try_from(keep).unwrap_or(usize::MAX);
        let gone: BTreeSet<usize> = settled.into_iter().skip(keep).map(|(_, n)| n).collect();
        let mut n = 0..;
        self.rows.retain(|_| n.next().is_none_or(|n| !gone.contains(&n)));
    }

    fn pending(&self) -> impl Iterator<Item = &Kept> {
        self.rows.iter().filter(|row| row.settled.is_none())
    }

    fn pending_of(&self, sink: &str) -> impl Iterator<Item = &Kept> {
        self.pending().filter(move |row| row.sink == sink)
    }

    fn state(&self, sink: &str) -> SinkState {
        let of_sink = || self.rows.iter().filter(|row| row.sink == sink);
        let refused = self.pending_of(sink).filter(|row| row.notice.tries > 0);
        SinkState {
            sink: sink.to_owned(),
            pending: count(self.pending_of(sink)),
            delivered: count(of_sink().filter(|row| row.is(Settled::Delivered))),
            given_up: count(of_sink().filter(|row| row.is(Settled::GivenUp))),
            given_up_at: of_sink()
                .filter(|row| row.is(Settled::GivenUp))
                .filter_map(|row| row.settled.map(|(_, at)| at))
                .max(),
            refused: count(self.pending_of(sink).filter(|row| row.notice.tries > 0)),
            refused_since: self.pending_of(sink).filter_map(|row| row.notice.since).min(),
            refusal: refused.last().and_then(|row| row.problem.clone()),
            oldest_at: self.pending_of(sink).map(|row| row.notice.at).min(),
            health: self.health.get(sink).cloned(),
        }
    }
}

impl Kept {
    fn waits_for(&self, sink: &str) -> bool {
        self.sink == sink && self.settled.is_none()
    }

    fn is(&self, how: Settled) -> bool {
        matches!(self.settled, Some((settled, _)) if settled == how)
    }

    fn settle(&mut self, how: Settled, at: Time, problem: Option<String>) {
        self.settled = Some((how, at));
        self.problem = problem.or(self.problem.take());
        self.notice.body = String::new();
    }
}

fn count(rows: impl Iterator) -> u64 {
    u64::try_from(rows.count()).unwrap_or(u64::MAX)
}
