//! What a shim has to see to and has not: a stop that was ordered, a limit that is reached.
//!
//! The shim keeps the limits, so that they hold without a daemon. The daemon looks after them as well, so that
//! they hold without the shim: after a grace period the tree is ended as an orphan's is, and the shim with it.

use std::time::Duration;

use outlast_engine::{EndCause, Time};
use outlast_wire::shim::Record;
use outlast_wire::words::TroubleCode;

use super::pulse::{ANSWER_WITHIN_MS, WAKE_WITHIN_MS};
use super::{LAST_RETRY, Work, orphan, records};
use crate::silence;

/// What a shim may be late by before it is asked about a limit.
const SLACK_MS: u64 = 2_000;

/// Between two looks at a shim that does not answer while something is due.
const RETRY_WHILE_DUE: Duration = Duration::from_secs(1);

impl Work {
    /// What is overdue, if something is: an order (`None`) or a limit.
    pub(super) fn overdue(&self, records: &[Record]) -> Option<Option<EndCause>> {
        if self.stop.borrow().is_some() {
            return Some(None);
        }
        let (at, cause) = self.limit_due(records)?;
        (at <= self.ground.world.steady()).then_some(Some(cause))
    }

    /// When a limit is overdue by the clock that nothing moves, and which: the turn's time, or its silence as far as the files tell.
    pub(super) fn limit_due(&self, records: &[Record]) -> Option<(Time, EndCause)> {
        // A command that has ended by itself has no limit to reach; one that is being ended has to be gone.
        if records::has_ended(records) && records::ending(records).is_none() {
            return None;
        }
        let limits = self.limit(records, SLACK_MS).into_iter().chain(self.silence_limit(records));
        limits.min_by_key(|(at, _)| *at)
    }

    fn silence_limit(&self, records: &[Record]) -> Option<(Time, EndCause)> {
        let window_ms = self.stall_window_ms()?;
        let started = self.started_at(records)?;
        let heard = silence::last_sign(&self.dir, &self.ground.world).unwrap_or(started);
        let at = self.steady_after(heard.max(started), window_ms.saturating_add(SLACK_MS));
        Some((at, EndCause::Stalled))
    }

    /// The shim holds its lock, or has just been started, and could not be asked.
    pub(super) async fn note_silence(&mut self, message: &str) {
        let now_ms = self.ground.world.awake_ms();
        let silent_ms = now_ms - *self.silent_since_ms.get_or_insert(now_ms);
        if silent_ms >= ANSWER_WITHIN_MS {
            self.say_trouble(TroubleCode::Unreachable, message).await;
        }
        // Records that cannot be read say nothing of a limit; an order to stop still holds.
        let records = records::read(&self.dir.events()).unwrap_or_default();
        let overdue = self.overdue(if records.is_empty() { &self.told } else { &records });
        match overdue {
            Some(cause) if silent_ms >= ANSWER_WITHIN_MS + WAKE_WITHIN_MS => {
                self.taken_over = Some(cause);
            }
            Some(_) if silent_ms >= ANSWER_WITHIN_MS => orphan::wake(&self.marks(None)),
            Some(_) | None => {}
        }
    }

    pub(super) fn longest_retry(&self) -> Duration {
        if self.overdue(&self.told).is_some() { RETRY_WHILE_DUE } else { LAST_RETRY }
    }

    /// Does the shim's work: ends the tree for what is overdue, and the shim with it.
    pub(super) async fn take_over(self) {
        tracing::warn!(run = %self.task.run.id, "a shim does not answer; its tree is ended without it");
        let records = self.freshest(self.told.clone());
        orphan::keep(self, records).await;
    }

    /// The records as they are on disk by now, unless these say more.
    pub(super) fn freshest(&self, known: Vec<Record>) -> Vec<Record> {
        match records::read(&self.dir.events()) {
            Ok(written) if written.len() > known.len() => written,
            Ok(_) | Err(_) => known,
        }
    }
}
