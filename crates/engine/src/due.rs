//! What has to be done, as a function of state.
//!
//! Effects are orders that are safe to repeat. They are asked for after every step and after every
//! restart alike; nobody remembers which were given.

use crate::{BootId, Limit, Run, State, StopMode, Time, Verdict, limits};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// See to it that the attempt has been launched, and report on it until nothing of it is left.
    EnsureAttempt { turn: u32, attempt: u32, boot: BootId },
    /// See to it that the attempt's tree is ended.
    StopAttempt { turn: u32, attempt: u32, mode: StopMode },
    /// Remove what a run needs only while it goes on, then say so.
    Finish { verdict: Verdict },
}

impl Run {
    pub fn due(&self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some(attempt) =
            self.attempt.as_ref().filter(|last| last.end.is_none() || last.has_survivors())
        {
            let (turn, number, boot) = (attempt.turn, attempt.number, attempt.boot.clone());
            effects.push(Effect::EnsureAttempt { turn, attempt: number, boot });
            if let Some(mode) = self.stop_mode().filter(|_| !attempt.stop_incomplete) {
                effects.push(Effect::StopAttempt { turn, attempt: number, mode });
            }
        }
        if let State::Finishing { verdict, .. } = self.state {
            effects.push(Effect::Finish { verdict });
        }
        effects
    }

    /// When to ask again if nothing happens before.
    pub fn wake_at(&self) -> Option<Time> {
        let deadline =
            limits::deadline(self).filter(|_| self.limit.is_none() && self.stop.is_none());
        match &self.state {
            State::Finishing { .. } | State::Ended { .. } => None,
            State::Waiting { until, .. } if !self.has_survivors() => earlier(*until, deadline),
            State::Waiting { .. }
            | State::Queued
            | State::Preparing
            | State::Running
            | State::Verifying
            | State::Blocked => deadline,
        }
    }

    /// How the current attempt is to be ended, if it is.
    fn stop_mode(&self) -> Option<StopMode> {
        let for_limit = self.limit.map(|limit| match limit {
            Limit::RunTimeout | Limit::TurnTimeout | Limit::StallWindow => StopMode::Gracefully,
        });
        // Nobody may be left of one attempt when the next one starts.
        let between_attempts =
            matches!(self.state, State::Waiting { .. }).then_some(StopMode::Gracefully);
        self.stop.or(for_limit).or(between_attempts)
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
