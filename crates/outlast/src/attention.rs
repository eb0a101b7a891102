//! Which runs a person should look at first.
//!
//! Judges by what the daemon says of a run, and asks nothing itself.

use outlast_wire::words::{Health, ReasonCode, StateName, Word};

use crate::output::state::Condition;

/// Groups of runs, the one to look at first first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Group {
    /// It goes no further, or not well, until a person acts.
    NeedsMe,
    Running,
    Waiting,
    /// It has not begun.
    Queued,
    Ended,
}

impl Group {
    pub(crate) const ALL: [Self; 5] =
        [Self::NeedsMe, Self::Running, Self::Waiting, Self::Queued, Self::Ended];

    pub(crate) fn of(condition: &Condition<'_>) -> Self {
        let has_ended = condition.state.has_ended();
        let is_stuck = condition.reason_code.is_some_and(|it| *it == ReasonCode::StopIncomplete);
        if is_stuck || condition.trouble.is_some() {
            return Self::NeedsMe;
        }
        if !has_ended && needs_person(condition.health) {
            return Self::NeedsMe;
        }
        match condition.state.known() {
            Some(StateName::Blocked) => Self::NeedsMe,
            Some(StateName::Waiting) => Self::Waiting,
            Some(StateName::Queued) => Self::Queued,
            Some(
                StateName::Completed
                | StateName::Failed
                | StateName::Stopped
                | StateName::Exhausted,
            ) => Self::Ended,
            Some(
                StateName::Preparing
                | StateName::Running
                | StateName::Verifying
                | StateName::Finishing,
            ) => Self::Running,
            // A state of a newer daemon: the run goes on.
            None => Self::Running,
        }
    }

    /// What a count of them is called.
    pub(crate) fn word(self, count: usize) -> &'static str {
        match self {
            Self::NeedsMe if count == 1 => "needs you",
            Self::NeedsMe => "need you",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Queued => "queued",
            Self::Ended => "ended",
        }
    }
}

/// The others pass by themselves, or are a remark. So is a word of a newer daemon.
fn needs_person(health: &Word<Health>) -> bool {
    match health.known() {
        Some(
            Health::WaitingHuman
            | Health::Stalled
            | Health::Thrashing
            | Health::Orphaned
            | Health::Unreachable,
        ) => true,
        Some(Health::Healthy | Health::Silent | Health::RateLimited | Health::NearLimit) | None => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast_wire::api::Trouble;
    use outlast_wire::words::{Code, TroubleCode};

    use super::*;
    use crate::output::state::Pace;

    const RUNNING: Condition = Condition {
        state: &Word::Known(StateName::Running),
        reason_code: None,
        health: &Word::Known(Health::Healthy),
        exit: None,
        survivors: 0,
        trouble: None,
        pace: Pace::UNKNOWN,
    };

    #[test]
    fn what_goes_no_further_without_a_person_comes_first() {
        let trouble = Trouble {
            code: TroubleCode::Of(Code::Unreadable).into(),
            message: String::new(),
            since: String::new(),
        };
        let stuck = ReasonCode::StopIncomplete.into();
        let [blocked, waiting, stopped] =
            [StateName::Blocked, StateName::Waiting, StateName::Stopped].map(Word::from);
        let [stalled, waits] = [Health::Stalled, Health::WaitingHuman].map(Word::from);
        for needs_me in [
            Condition { state: &blocked, ..RUNNING },
            Condition { health: &stalled, ..RUNNING },
            Condition { state: &waiting, health: &waits, ..RUNNING },
            Condition { trouble: Some(&trouble), ..RUNNING },
            Condition { state: &stopped, reason_code: Some(&stuck), survivors: 1, ..RUNNING },
        ] {
            assert_eq!(Group::of(&needs_me), Group::NeedsMe, "{needs_me:?}");
        }
    }

    #[test]
    fn the_others_stand_by_what_they_do() {
        for (state, health, group) in [
            ("running", "near_limit", Group::Running),
            ("verifying", "silent", Group::Running),
            ("waiting", "rate_limited", Group::Waiting),
            ("queued", "healthy", Group::Queued),
            ("failed", "healthy", Group::Ended),
            ("completed", "stalled", Group::Ended),
            ("dreaming", "elated", Group::Running),
        ] {
            let (state, health) = (Word::of(state), Word::of(health));
            let condition = Condition { state: &state, health: &health, ..RUNNING };
            assert_eq!(Group::of(&condition), group, "{state}");
        }
        assert!(Group::ALL.is_sorted());
    }
}
