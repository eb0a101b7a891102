//! One sink, told one notice after the other: what waits in the store, then the sink, then the store again.
//!
//! Whatever dies in between, the notice is told again under the same id. A notice is never told before an
//! earlier one of the same run.

mod remember;

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use outlast_engine::{Slot, Time};
use outlast_store::{Change, Error, Outbox, Settled, SinkHealth, Waiting};
use outlast_wire::hook;
use outlast_workflow::notify::{Settings, Sink, WhenPresent, shown};
use tokio::sync::{Notify, oneshot};

use super::body::Telling;
use super::sink_workers::{Leave, SinkWorkers};
use super::{Outcome, backoff, links, send, target};
use crate::leaving::Leaving;

/// What is looked at before the store is asked again.
const PAGE: usize = 64;

/// More than so many within so long are a storm.
const STORM: usize = 15;
const STORM_MS: u64 = 10_000;
/// The most that are told as one.
const BATCH: usize = 500;

/// While something waits, the clock is looked at this often: it may leap, and a machine may have slept.
const LONGEST_SLEEP: Duration = Duration::from_secs(10 * 60);

/// Between two tries to write to a disk that is full.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// After so many settled notices the oldest are forgotten.
const PRUNE_EVERY: u32 = 256;

pub(super) struct SinkWorker {
    workers: Arc<SinkWorkers>,
    sink: String,
    bell: Arc<Notify>,
    settled: u32,
}

/// What a sink worker does next.
enum Next {
    Again,
    /// Not before then.
    At(Time),
    /// There is nothing to tell.
    Leave,
}

/// This daemon may no longer write.
struct Over;

impl SinkWorker {
    pub(super) fn new(workers: Arc<SinkWorkers>, sink: String, bell: Arc<Notify>) -> Self {
        Self { workers, sink, bell, settled: 0 }
    }

    pub(super) async fn tell(mut self) {
        loop {
            self.workers.look(&self.sink);
            match self.step().await {
                Ok(Next::Again) => {}
                Ok(Next::At(at)) => self.sleep(at).await,
                Ok(Next::Leave) => match self.workers.leave(&self.sink) {
                    Leave::Left => return,
                    Leave::ThereIsNews => {}
                },
                Err(Over) => return,
            }
        }
    }

    async fn sleep(&self, at: Time) {
        let left = Duration::from_millis(at.ms_since(self.now()).max(1));
        // Whether the bell or the time was first, the store is asked again.
        let _rung = tokio::time::timeout(left.min(LONGEST_SLEEP), self.bell.notified()).await;
    }

    /// Tells what is due, as far as all goes well.
    async fn step(&mut self) -> Result<Next, Over> {
        let now = self.now();
        let health = self.read(Outbox::sink_health)?;
        if let Some(health) = &health {
            if health.disabled_at.is_some() {
                self.give_up(now, "its sink is disabled").await?;
                return Ok(Next::Leave);
            }
            if let Some(next_at) = health.next_at.filter(|at| backoff::is_ahead(*at, now)) {
                return Ok(Next::At(next_at));
            }
        }
        let due = self.read(|store, sink| store.waiting(sink, now, PAGE))?;
        if due.is_empty() {
            return self.nothing_due(now);
        }
        let (sink, settings) = match target::find(&self.workers.ground, &self.sink) {
            Ok(found) => found,
            Err(why) => {
                self.failed(&due[..1], &health, why, None).await?;
                return Ok(Next::Again);
            }
        };
        let due = self.without_unwanted(due, &sink, &settings).await?;
        if let Some(batch) = due.first().and_then(|first| first.batch.clone()) {
            return self.tell_batch(&sink, &batch, &health).await;
        }
        let alone = due.iter().filter(|notice| notice.batch.is_none()).count();
        if sink.coalesce && alone > 0 {
            let recent = self
                .read(|store, sink| store.told_since(sink, Time(now.0.saturating_sub(STORM_MS))))?;
            let recent = usize::try_from(recent).unwrap_or(usize::MAX);
            if alone > STORM {
                return self.make_batch(&sink, now).await;
            }
            if recent.saturating_add(alone) > STORM {
                return self.storm(&sink, now).await;
            }
        }
        self.tell_each(&sink, due, health).await
    }

    fn nothing_due(&self, now: Time) -> Result<Next, Over> {
        let backlog = self.read(|store, sink| store.backlog(sink, now))?;
        match backlog.next_at {
            Some(at) if backlog.waiting > 0 => Ok(Next::At(at)),
            _ => Ok(Next::Leave),
        }
    }

    /// One after the other, until one does not go well.
    async fn tell_each(
        &mut self,
        sink: &Sink,
        due: Vec<Waiting>,
        mut health: Option<SinkHealth>,
    ) -> Result<Next, Over> {
        for waiting in due.into_iter().take(PAGE) {
            // Another daemon has batched it, or the config has changed: look again.
            if waiting.batch.is_some() {
                return Ok(Next::Again);
            }
            let one = [waiting];
            let told = match Telling::one(&one[0]) {
                Ok(telling) => self.send(sink, &telling).await,
                Err(why) => Outcome::Hopeless { why },
            };
            let is_well = matches!(told, Outcome::Delivered { .. });
            self.remember(&one, told, &health).await?;
            if !is_well || sink.coalesce {
                return Ok(Next::Again);
            }
            health = None;
        }
        Ok(Next::Again)
    }

    /// Written down before it is told, so that it is the same if it is told again.
    async fn make_batch(&mut self, sink: &Sink, now: Time) -> Result<Next, Over> {
        let due = self.read(|store, sink| store.waiting(sink, now, BATCH))?;
        let is_wanted = |notice: &Waiting| notice.batch.is_none() && sink.level.wants(&notice.kind);
        let ids = due.into_iter().filter(is_wanted).map(|notice| notice.id);
        let ids: Vec<String> = ids.collect();
        if let (Some(first), 2..) = (ids.first(), ids.len()) {
            let batch = format!("{first}+{}", ids.len());
            self.write(Change::Batch { sink: self.sink.clone(), ids, batch }).await?;
        }
        Ok(Next::Again)
    }

    /// Lets what comes in a storm gather, and then makes one of it.
    async fn storm(&mut self, sink: &Sink, now: Time) -> Result<Next, Over> {
        let calm = now.plus_ms(STORM_MS);
        while self.now() < calm {
            self.sleep(calm).await;
        }
        self.make_batch(sink, self.now()).await
    }

    async fn tell_batch(
        &mut self,
        sink: &Sink,
        batch: &str,
        health: &Option<SinkHealth>,
    ) -> Result<Next, Over> {
        let all = self.read(|store, sink| store.batch(sink, batch))?;
        if all.is_empty() {
            return Ok(Next::Again);
        }
        let told = match Telling::many(batch, &all) {
            Ok(telling) => self.send(sink, &telling).await,
            Err(why) => Outcome::Hopeless { why },
        };
        self.remember(&all, told, health).await?;
        Ok(Next::Again)
    }

    async fn send(&self, sink: &Sink, telling: &Telling) -> Outcome {
        let _room = self.workers.room.acquire().await;
        hook!("daemon.notice-before-send");
        let dir = target::dir(&self.workers.ground, &self.sink, telling.dir());
        let linked = links::of(&self.workers.ground, (&self.sink, sink), telling);
        let telling = linked.as_ref().unwrap_or(telling);
        let told = send::send(&self.workers, sink, telling, &dir).await;
        hook!("daemon.notice-sent");
        told
    }

    /// What is left of it after the sink's level and the presence of a person are considered.
    async fn without_unwanted(
        &mut self,
        due: Vec<Waiting>,
        sink: &Sink,
        settings: &Settings,
    ) -> Result<Vec<Waiting>, Over> {
        let is_there = sink.way.is_for_people()
            && sink.when_present == WhenPresent::Mute
            && is_present(settings, self.now());
        let is_wanted = |notice: &Waiting| {
            notice.batch.is_some() || (sink.level.wants(&notice.kind) && !is_there)
        };
        let (wanted, unwanted): (Vec<Waiting>, Vec<Waiting>) = due.into_iter().partition(is_wanted);
        if !unwanted.is_empty() {
            let (sink, ids, at) = (self.sink.clone(), ids(&unwanted), self.now());
            let how = Settled::Muted;
            self.write(Change::Settle { sink, ids, how, at, problem: None }).await?;
            self.count_settled(unwanted.len());
        }
        Ok(wanted)
    }

    fn count_settled(&mut self, more: usize) {
        self.settled = self.settled.saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
        if self.settled >= PRUNE_EVERY {
            self.settled = 0;
            self.workers.prune();
        }
    }

    /// This moment, which the next daemon will not find in its future.
    fn now(&self) -> Time {
        self.workers.ground.context(Slot::Taken).now
    }

    fn read<T>(
        &self,
        ask: impl FnOnce(&dyn outlast_store::Journal, &str) -> Result<T, Error>,
    ) -> Result<T, Over> {
        ask(&*self.workers.ground.store, &self.sink).map_err(|error| {
            tracing::error!(sink = shown(&self.sink), %error, "cannot read the outbox; the next notice or daemon reads it again");
            Over
        })
    }

    /// Remembers, however long the disk takes to let us: what was told must not be told again for nothing.
    async fn write(&self, change: Change) -> Result<(), Over> {
        let mut retry_in = FIRST_RETRY;
        loop {
            let (done, durable) = oneshot::channel();
            let answer = Box::new(move |result| {
                // The sink worker may have been told to go meanwhile.
                let _gone = done.send(result);
            });
            self.workers.ground.store.change(self.workers.ground.epoch, change.clone(), answer);
            match durable.await.unwrap_or(Err(Error::Closed)) {
                Ok(()) => return Ok(()),
                Err(error @ (Error::StaleEpoch { .. } | Error::Closed)) => {
                    tracing::error!(sink = shown(&self.sink), %error, "this daemon may no longer write");
                    self.workers.ground.leave(Leaving::Fenced);
                    return Err(Over);
                }
                Err(error @ Error::Gone { .. }) => {
                    tracing::error!(sink = shown(&self.sink), %error, "the journal is gone");
                    self.workers.ground.heed_store(&error);
                    return Err(Over);
                }
                Err(error) => {
                    tracing::error!(sink = shown(&self.sink), %error, "cannot write down what was told");
                    tokio::time::sleep(retry_in).await;
                    retry_in = (retry_in * 2).min(LAST_RETRY);
                }
            }
        }
    }
}

impl Drop for SinkWorker {
    fn drop(&mut self) {
        self.workers.forget(&self.sink, &self.bell);
    }
}

fn ids(notices: &[Waiting]) -> Vec<String> {
    notices.iter().map(|notice| notice.id.clone()).collect()
}

/// Whether a person was there a moment ago.
fn is_present(settings: &Settings, now: Time) -> bool {
    let Some(file) = &settings.presence_file else { return false };
    let Ok(touched) = std::fs::metadata(file).and_then(|metadata| metadata.modified()) else {
        return false;
    };
    let touched = touched.duration_since(UNIX_EPOCH).unwrap_or_default();
    let touched_ms = u64::try_from(touched.as_millis()).unwrap_or(u64::MAX);
    now.0.saturating_sub(touched_ms) <= settings.presence_max_age_ms
}
