//! What became of a notice, written down: told, refused, put off or given up.

use outlast_engine::Time;
use outlast_store::{Change, Settled, SinkHealth, Waiting};
use outlast_wire::hook;
use outlast_workflow::notify::shown;

use super::super::{Outcome, backoff};
use super::{Over, SinkWorker, ids};
use crate::world;

impl SinkWorker {
    pub(super) async fn remember(
        &mut self,
        told: &[Waiting],
        outcome: Outcome,
        health: &Option<SinkHealth>,
    ) -> Result<(), Over> {
        let now = self.now();
        let settle = |how, problem| Change::Settle {
            sink: self.sink.clone(),
            ids: ids(told),
            how,
            at: now,
            problem,
        };
        match outcome {
            Outcome::Delivered { .. } => {
                self.write(settle(Settled::Delivered, None)).await?;
                hook!("daemon.notice-marked");
                self.count_settled(told.len());
            }
            Outcome::Hopeless { why } => {
                tracing::warn!(
                    sink = shown(&self.sink),
                    notice = told[0].id,
                    why,
                    "notice given up"
                );
                self.write(settle(Settled::GivenUp, Some(why))).await?;
            }
            Outcome::Gone { why } => {
                tracing::warn!(sink = shown(&self.sink), why, "sink disabled");
                let sink = self.sink.clone();
                self.write(Change::Disable { sink, at: now, problem: why }).await?;
            }
            Outcome::Refused { why, retry_after_ms } => {
                self.refused(told, why, retry_after_ms).await?;
            }
            Outcome::Failed { why, retry_after_ms } => {
                self.failed(told, health, why, retry_after_ms).await?;
            }
        }
        Ok(())
    }

    async fn refused(
        &mut self,
        told: &[Waiting],
        why: String,
        retry_after_ms: Option<u64>,
    ) -> Result<(), Over> {
        let (now, sink, ids) = (self.now(), self.sink.clone(), ids(told));
        tracing::warn!(sink = shown(&self.sink), notice = told[0].id, why, "notice refused");
        let is_over =
            told[0].since.is_some_and(|since| now.ms_since(since) >= backoff::PATIENCE_MS);
        if is_over {
            let problem = Some(why);
            return self
                .write(Change::Settle { sink, ids, how: Settled::GivenUp, at: now, problem })
                .await;
        }
        let tries = told[0].tries.saturating_add(1);
        let next_at = backoff::next_at(now, tries, retry_after_ms, chance());
        self.write(Change::Refused { sink, ids, at: now, next_at, problem: why }).await
    }

    pub(super) async fn failed(
        &mut self,
        told: &[Waiting],
        health: &Option<SinkHealth>,
        why: String,
        retry_after_ms: Option<u64>,
    ) -> Result<(), Over> {
        let (now, sink, ids) = (self.now(), self.sink.clone(), ids(told));
        let failures = health.as_ref().map_or(0, |health| health.failures).saturating_add(1);
        let next_at = backoff::next_at(now, failures, retry_after_ms, chance());
        if failures == 1 || failures.is_multiple_of(10) {
            tracing::warn!(sink = shown(&self.sink), failures, why, "delivery to the sink fails");
        }
        let problem = why.clone();
        self.write(Change::Failed { sink, ids: ids.clone(), at: now, next_at, problem }).await?;
        if failures >= backoff::FAILURES_IN_ORDER {
            let (sink, problem) = (self.sink.clone(), why.clone());
            self.write(Change::Refused { sink, ids, at: now, next_at, problem }).await?;
        }
        let since = health.as_ref().map_or(now, |health| health.since);
        let is_long = now.ms_since(since) >= backoff::PATIENCE_MS;
        let backlog = self.read(|store, sink| store.backlog(sink, now))?;
        if is_long || backlog.waiting > backoff::MOST_WAITING {
            self.give_up(now, &why).await?;
        }
        Ok(())
    }

    /// Whatever was tried for long enough, or would have been; and the oldest, if too much waits.
    pub(super) async fn give_up(&mut self, now: Time, why: &str) -> Result<(), Over> {
        let before = Time(now.0.saturating_sub(backoff::PATIENCE_MS));
        let (sink, problem) = (self.sink.clone(), why.to_owned());
        let keep = backoff::MOST_WAITING;
        self.write(Change::GiveUp { sink, before, keep, at: now, problem }).await
    }
}

fn chance() -> u8 {
    // Without chance there is no spread, which is harmless.
    world::random::<1>().map_or(127, |[byte]| byte)
}
