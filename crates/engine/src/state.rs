//! The states of a run, as in the diagram of the design.

use crate::{BlockReason, Reason, StateName, Time, Verdict, WaitCause, WaitWord, Word};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Queued,
    Preparing,
    Running,
    Waiting {
        cause: WaitCause,
        since: Time,
        until: Option<Time>,
    },
    Verifying,
    /// Until a person acts.
    Blocked {
        reason: Word<BlockReason>,
    },
    /// The outcome is decided; what has to be tidied up is not yet.
    Finishing {
        verdict: Verdict,
        since: Time,
    },
    Ended {
        verdict: Verdict,
    },
}

impl State {
    pub fn is_blocked(&self) -> bool {
        matches!(self, Self::Blocked { .. })
    }

    pub fn name(&self) -> StateName {
        match self {
            Self::Queued => StateName::Queued,
            Self::Preparing => StateName::Preparing,
            Self::Running => StateName::Running,
            Self::Waiting { .. } => StateName::Waiting,
            Self::Verifying => StateName::Verifying,
            Self::Blocked { .. } => StateName::Blocked,
            Self::Finishing { .. } => StateName::Finishing,
            Self::Ended { verdict } => verdict.name(),
        }
    }
}

/// The state that a change leads to, with what the reason code of the change says of it.
pub(crate) fn state_of(
    to: StateName,
    why: &Reason,
    cause: Option<WaitWord>,
    since: Time,
    until: Option<Time>,
    verdict: Option<Verdict>,
) -> State {
    match to {
        StateName::Queued => State::Queued,
        StateName::Preparing => State::Preparing,
        StateName::Running => State::Running,
        StateName::Waiting => State::Waiting {
            cause: WaitCause::of(
                cause.expect("the legality table asks for a cause"),
                &why.reason_code,
            ),
            since,
            until,
        },
        StateName::Verifying => State::Verifying,
        StateName::Blocked => State::Blocked { reason: Word::of(why.reason_code.as_str()) },
        StateName::Finishing => State::Finishing {
            verdict: verdict.expect("the legality table asks for a verdict"),
            since,
        },
        StateName::Completed | StateName::Failed | StateName::Stopped | StateName::Exhausted => {
            State::Ended { verdict: to.verdict().expect("these four are the verdicts") }
        }
    }
}

/// Whether a run's time passes in this state: not while it waits for a person, a provider or its place.
pub(crate) fn is_ticking(state: &State) -> bool {
    match state {
        State::Preparing | State::Running | State::Verifying => true,
        State::Waiting { cause, .. } => match cause {
            WaitCause::Backoff | WaitCause::Timer | WaitCause::Children => true,
            WaitCause::Slot
            | WaitCause::RestartPacing
            | WaitCause::RateLimit
            | WaitCause::Budget
            | WaitCause::Message
            | WaitCause::Predecessor
            | WaitCause::Paused => false,
        },
        State::Queued | State::Blocked { .. } | State::Finishing { .. } | State::Ended { .. } => {
            false
        }
    }
}
