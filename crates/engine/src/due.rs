//! What has to be done, as a function of state.
//!
//! Effects are orders that are safe to repeat. They are asked for after every step and after every
//! restart alike; no code remembers which were given.

use crate::run::{Removal, WorkspaceState};
use crate::{BootId, Run, State, Step, StepState, StopMode, Time, Verdict, finish, limits};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// See to it that the step has been launched, and report on it until nothing of it is left.
    Ensure { step: Step, boot: BootId },
    /// See to it that the step's tree is ended.
    Stop { step: Step, mode: StopMode },
    /// See to it that the workspace is there.
    PrepareWorkspace,
    /// See to it that a half-made workspace is gone.
    DiscardWorkspace,
    /// See to it that the workspace of an ended run is gone.
    RemoveWorkspace,
    /// See to it that the children that go on are stopped, with all below them.
    StopChildren { mode: StopMode },
    /// Remove what a run needs only while it goes on, then say so.
    Finish { verdict: Verdict },
}

impl Run {
    pub fn due(&self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Some((step, state)) = self.current() {
            effects.push(Effect::Ensure { step, boot: state.boot.clone() });
            let mode = state.stop.or_else(|| finish::stop_mode(self));
            if let Some(mode) = mode.filter(|_| !state.stop_incomplete) {
                effects.push(Effect::Stop { step, mode });
            }
        }
        if self.stops_children() {
            let mode = self.stop.unwrap_or(StopMode::Gracefully);
            effects.push(Effect::StopChildren { mode });
        }
        match self.state {
            State::Preparing
                if self.preparation.workspace == WorkspaceState::Unmade && !self.is_ending() =>
            {
                effects.push(Effect::PrepareWorkspace);
            }
            State::Finishing { .. }
                if self.live_errand().is_none() && finish::is_half_made(self) =>
            {
                effects.push(Effect::DiscardWorkspace);
            }
            State::Finishing { verdict, .. } if finish::is_tidy(self) => {
                effects.push(Effect::Finish { verdict });
            }
            State::Ended { .. }
                if self.removal == Removal::Asked
                    && !self.is_busy()
                    && finish::has_run_hook(self) =>
            {
                effects.push(Effect::RemoveWorkspace);
            }
            _ => {}
        }
        effects
    }

    /// The step that lives, or else one that has left processes behind.
    fn current(&self) -> Option<(Step, &StepState)> {
        let attempt = self.attempt.as_ref().map(|it| (it.step(), &it.state));
        let errand = self.errand.as_ref().map(|it| (Step::Errand { errand: it.number }, &it.state));
        let steps = [errand, attempt];
        let alive = steps.into_iter().flatten().find(|(_, state)| state.is_live());
        alive.or_else(|| steps.into_iter().flatten().find(|(_, state)| state.has_survivors()))
    }

    fn is_ending(&self) -> bool {
        self.stop.is_some() || self.limit.is_some()
    }

    /// When to ask again if nothing happens before.
    pub fn wake_at(&self) -> Option<Time> {
        earlier(self.due_at(), limits::near_at(self))
    }

    /// When the run goes on or ends by itself if nothing happens before.
    pub fn due_at(&self) -> Option<Time> {
        let deadline = limits::deadline(self).filter(|_| !self.is_ending());
        match &self.state {
            State::Finishing { .. } | State::Ended { .. } => None,
            State::Waiting { until, .. } if !self.is_busy() && !self.is_to_rest() => {
                earlier(*until, deadline)
            }
            State::Waiting { .. }
            | State::Queued
            | State::Preparing
            | State::Running
            | State::Verifying
            | State::Blocked { .. } => deadline,
        }
    }
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
