//! Which runs a person should look at first.
//!
//! Judges by what the daemon says of a run, and asks nothing itself.

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
        let has_ended = matches!(condition.state, "completed" | "failed" | "stopped" | "exhausted");
        let is_stuck = condition.reason_code == Some("stop_incomplete");
        if is_stuck || condition.trouble.is_some() {
            return Self::NeedsMe;
        }
        if !has_ended && needs_person(condition.health) {
            return Self::NeedsMe;
        }
        match condition.state {
            "blocked" => Self::NeedsMe,
            "waiting" => Self::Waiting,
            "queued" => Self::Queued,
            _ if has_ended => Self::Ended,
            // Also what a newer daemon may call it: it goes on.
            _ => Self::Running,
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

/// The others pass by themselves, or are a remark: `silent`, `rate_limited`, `near_limit`.
fn needs_person(health: &str) -> bool {
    matches!(health, "waiting_human" | "stalled" | "thrashing" | "orphaned" | "unreachable")
}

#[cfg(test)]
mod tests {
    use outlast_wire::api::Trouble;

    use super::*;

    const RUNNING: Condition = Condition {
        state: "running",
        reason_code: None,
        health: "healthy",
        exit: None,
        survivors: 0,
        trouble: None,
    };

    #[test]
    fn what_goes_no_further_without_a_person_comes_first() {
        let trouble =
            Trouble { code: "unreadable".into(), message: String::new(), since: String::new() };
        let stuck = Some("stop_incomplete");
        for needs_me in [
            Condition { state: "blocked", ..RUNNING },
            Condition { health: "stalled", ..RUNNING },
            Condition { state: "waiting", health: "waiting_human", ..RUNNING },
            Condition { trouble: Some(&trouble), ..RUNNING },
            Condition { state: "stopped", reason_code: stuck, survivors: 1, ..RUNNING },
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
        ] {
            assert_eq!(Group::of(&Condition { state, health, ..RUNNING }), group, "{state}");
        }
        assert!(Group::ALL.is_sorted());
    }
}
