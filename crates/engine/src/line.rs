//! The line of time that a run's times are on, and what a line that moves does to a run.
//!
//! Within a boot, the daemon counts time by the boot clock, from when the machine was started. If it learns that the
//! machine was started at another time, because the wall clock was wrong, all later times are on another line. The
//! journal says so, and what is measured by differences moves along: no limit, delay or deadline becomes longer or
//! shorter. What a person meant by a time of day does not move.

use serde::{Deserialize, Serialize};

use crate::handle::Draft;
use crate::{BootId, Context, Fact, Run, State, StepState, Time, WaitCause};

/// One line of time: a boot, and when it began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    pub boot: BootId,
    pub booted_at_ms: i64,
}

impl Line {
    /// The line that a context is on, if that is known.
    pub(crate) fn of(context: &Context) -> Option<Self> {
        let booted_at_ms = context.booted_at_ms?;
        Some(Self { boot: context.boot.clone(), booted_at_ms })
    }

    fn is(&self, boot: &BootId, booted_at_ms: i64) -> bool {
        self.boot == *boot && self.booted_at_ms == booted_at_ms
    }
}

/// Asked before anything else is decided: every later comparison is between times of one line.
pub(crate) fn follow(draft: &mut Draft, context: &Context) {
    let (run, Some(booted_at_ms)) = (draft.run(), context.booted_at_ms) else { return };
    let is_known = run.line.as_ref().is_some_and(|line| line.is(&context.boot, booted_at_ms));
    if !is_known && !run.has_ended() {
        let line = Line { boot: context.boot.clone(), booted_at_ms };
        draft.push(context.now, Fact::ClockSet { line });
    }
}

impl Run {
    /// From here on times are on this line. Between two boots the wall is all there is, and nothing moves.
    pub(crate) fn go_by(&mut self, line: &Line) {
        let known = self.line.replace(line.clone());
        if let Some(known) = known.filter(|known| known.boot == line.boot) {
            self.shift(line.booted_at_ms.saturating_sub(known.booted_at_ms));
        }
    }

    fn shift(&mut self, by_ms: i64) {
        let moved = |at: Time| Time(at.0.saturating_add_signed(by_ms));
        let move_on = |at: &mut Time| *at = moved(*at);
        move_on(&mut self.since);
        move_on(&mut self.seen_at);
        move_on(&mut self.condition.since);
        self.clock.ticking_since.iter_mut().for_each(move_on);
        match &mut self.state {
            State::Waiting { cause, since, until } => {
                move_on(since);
                if is_measured(*cause) {
                    until.iter_mut().for_each(move_on);
                }
            }
            State::Finishing { since, .. } => move_on(since),
            State::Queued
            | State::Preparing
            | State::Running
            | State::Verifying
            | State::Blocked { .. }
            | State::Ended { .. } => {}
        }
        // The first heartbeat is counted from the first start, which stays what it was.
        self.heartbeat.told_at = self.heartbeat.told_at.or(self.started_at).map(moved);
        self.watches.iter_mut().filter_map(|watch| watch.told_at.as_mut()).for_each(move_on);
        let attempt = self.attempt.as_mut().map(|attempt| &mut attempt.state);
        let errand = self.errand.as_mut().map(|errand| &mut errand.state);
        for StepState { process, end, .. } in attempt.into_iter().chain(errand) {
            process.iter_mut().for_each(|process| move_on(&mut process.at));
            end.iter_mut().for_each(|(_, at)| move_on(at));
        }
    }
}

/// A delay of ours is so much time; all else that a run waits for has a time of day.
fn is_measured(cause: WaitCause) -> bool {
    match cause {
        WaitCause::Backoff => true,
        WaitCause::RateLimit
        | WaitCause::Timer
        | WaitCause::Budget
        | WaitCause::Slot
        | WaitCause::RestartPacing
        | WaitCause::Children
        | WaitCause::Message
        | WaitCause::Predecessor
        | WaitCause::Paused => false,
    }
}
