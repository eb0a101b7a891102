//! Where a run is, in few words: for lists, for `wait`, for the line under an attached terminal.

use crate::{Purpose, Run, State};

impl Run {
    /// What the run is doing.
    pub fn phase(&self) -> String {
        if let Some(errand) = self.live_errand() {
            return self.errand_phase(&errand.purpose);
        }
        match &self.state {
            State::Queued => "queue".to_owned(),
            State::Preparing => "workspace".to_owned(),
            State::Waiting { cause, .. } => cause.written().word().to_owned(),
            State::Verifying => "verifying".to_owned(),
            State::Blocked { .. } => "blocked".to_owned(),
            State::Finishing { .. } if self.ends_after_children() => "children".to_owned(),
            State::Finishing { .. } => "finishing".to_owned(),
            State::Ended { .. } => "ended".to_owned(),
            State::Running => match &self.attempt {
                Some(attempt) => format!("turn {} attempt {}", attempt.turn, attempt.number),
                None => "starting".to_owned(),
            },
        }
    }

    fn errand_phase(&self, purpose: &Purpose) -> String {
        match purpose {
            Purpose::Done { .. } => format!("{}/{}", purpose.label(), self.spec.checks.done.len()),
            Purpose::Ready { .. } => {
                format!("{}/{}", purpose.label(), self.spec.checks.before_run.len())
            }
            Purpose::Checkout
            | Purpose::Hook { .. }
            | Purpose::Tool { .. }
            | Purpose::Snapshot { .. }
            | Purpose::Restore { .. } => purpose.label(),
        }
    }

    /// The last thing that will never be done again.
    pub fn checkpoint(&self) -> String {
        match self.turns_committed {
            0 if self.is_prepared() && self.spec.needs_preparation() => "prepared".to_owned(),
            0 => "created".to_owned(),
            turn => format!("turn {turn} committed"),
        }
    }
}
