//! What a shim has to see to and has not: a stop that was ordered, a limit that is reached.
//!
//! The shim keeps the limits, so that they hold without a daemon. The daemon looks after them as well, so that they
//! hold without the shim: after a grace period the tree is ended as an orphan's is, and the shim with it.

use outlast_engine::{Custody, EndCause, Time};
use outlast_wire::shim::Record;
use outlast_wire::words::TroubleCode;

use super::pulse::{ANSWER_WITHIN_MS, WAKE_WITHIN_MS};
use super::{At, Effect, LAST_RETRY_MS, StepMonitor, Surroundings};
use crate::records;

/// What a shim may be late by before it is asked about a limit.
const SLACK_MS: u64 = 2_000;

/// Between two looks at a shim that does not answer while something is due.
const RETRY_WHILE_DUE_MS: u64 = 1_000;

impl StepMonitor {
    /// What is overdue, if something is: an order (`None`) or a limit.
    pub(super) fn overdue(
        &self,
        records: &[Record],
        around: &dyn Surroundings,
    ) -> Option<Option<EndCause>> {
        if self.stop.is_some() {
            return Some(None);
        }
        let (at, cause) = self.limit_due(records, around)?;
        (at <= around.steady()).then_some(Some(cause))
    }

    /// When a limit is overdue by the clock that nothing moves, and which: the turn's time, or its silence as far as
    /// the files tell.
    pub(super) fn limit_due(
        &self,
        records: &[Record],
        around: &dyn Surroundings,
    ) -> Option<(Time, EndCause)> {
        // A command that has ended by itself has no limit to reach; one that is being ended has to be gone.
        if records::has_ended(records) && records::ending(records).is_none() {
            return None;
        }
        let limit = self.limit(records, SLACK_MS, around);
        let silence = self.silence_limit(records, around);
        limit.into_iter().chain(silence).min_by_key(|(at, _)| *at)
    }

    fn silence_limit(
        &self,
        records: &[Record],
        around: &dyn Surroundings,
    ) -> Option<(Time, EndCause)> {
        let window_ms = self.task.stall_window_ms?;
        let started = self.started_at(records, around)?;
        let heard = around.last_sign().unwrap_or(started).max(started);
        let at = steady_after(heard, window_ms.saturating_add(SLACK_MS), around);
        Some((at, EndCause::Stalled))
    }

    /// When the shim would have ended the tree, and why: what it was doing, or the turn's own time. By the clock that
    /// nothing moves: the run may be told of another line of time meanwhile.
    pub(super) fn limit(
        &self,
        records: &[Record],
        slack_ms: u64,
        around: &dyn Surroundings,
    ) -> Option<(Time, EndCause)> {
        let is_open =
            self.task.run.step_state(self.task.step).is_some_and(|state| state.end.is_none());
        let begun = records::ending(records).map(|cause| (Time(0), cause));
        let timed = self.started_at(records, around).zip(self.task.timeout_ms).map(|(at, ms)| {
            (steady_after(at, ms.saturating_add(slack_ms), around), EndCause::TimedOut)
        });
        begun.or(timed).filter(|_| is_open)
    }

    /// The limit of a step that is found without its shim. If nothing says when it was started, its time counts from
    /// now on.
    pub(super) fn limit_of_orphan(
        &self,
        records: &[Record],
        around: &dyn Surroundings,
    ) -> Option<(Time, EndCause)> {
        let is_open =
            self.task.run.step_state(self.task.step).is_some_and(|state| state.end.is_none());
        let from_now = || {
            let timeout_ms = self.task.timeout_ms.filter(|_| is_open)?;
            Some((around.steady().plus_ms(timeout_ms), EndCause::TimedOut))
        };
        self.limit(records, 0, around).or_else(from_now)
    }

    /// When the command was started, as its shim or the journal has it.
    fn started_at(&self, records: &[Record], around: &dyn Surroundings) -> Option<Time> {
        let journalled = self.task.run.step_state(self.task.step).and_then(|state| state.process);
        let started = records::report(self.task.step, Custody::Orphan, records, 0).started;
        let ours = started.map(|it| around.of_shim(it.at, records::line(records)));
        ours.or(journalled.map(|it| it.at))
    }

    /// The shim holds its lock, or has just been started, and could not be asked. `records` are what can be read of it
    /// meanwhile.
    pub(super) fn note_silence(
        &mut self,
        message: &str,
        records: &[Record],
        around: &dyn Surroundings,
    ) {
        let now_ms = around.awake_ms();
        let silent_ms = now_ms - *self.silent_since_ms.get_or_insert(now_ms);
        if silent_ms >= ANSWER_WITHIN_MS {
            self.say_trouble(TroubleCode::Unreachable, message.to_owned());
        }
        // Records that cannot be read say nothing of a limit; an order to stop still holds.
        let overdue = self.overdue(if records.is_empty() { &self.told } else { records }, around);
        match overdue {
            Some(cause) if silent_ms >= ANSWER_WITHIN_MS + WAKE_WITHIN_MS => {
                self.taken_over = Some(cause);
            }
            Some(_) if silent_ms >= ANSWER_WITHIN_MS => self.effects.push(Effect::WakeShim),
            Some(_) | None => {}
        }
    }

    pub(super) fn longest_retry_ms(&self, around: &dyn Surroundings) -> u64 {
        let is_due = self.overdue(&self.told, around).is_some();
        if is_due { RETRY_WHILE_DUE_MS } else { LAST_RETRY_MS }
    }

    /// Does the shim's work: ends the tree for what is overdue, and the shim with it.
    pub(super) fn take_over(&mut self, around: &dyn Surroundings) -> At {
        self.effects.push(Effect::TakeOver);
        let told = self.told.clone();
        self.orphan(told, around)
    }
}

/// When so much time has passed since then, by the clock that nothing moves.
fn steady_after(since: Time, ms: u64, around: &dyn Surroundings) -> Time {
    let age_ms = around.now().ms_since(since);
    around.steady().plus_ms(ms.saturating_sub(age_ms))
}
