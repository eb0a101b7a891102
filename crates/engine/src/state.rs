//! The states of a run, as in the diagram of the design.

use serde::{Deserialize, Serialize};

use crate::Time;

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
    Blocked,
    /// The outcome is decided; what has to be tidied up is not yet.
    Finishing {
        verdict: Verdict,
        since: Time,
    },
    Ended {
        verdict: Verdict,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    Queued,
    Preparing,
    Running,
    Waiting,
    Verifying,
    Blocked,
    Finishing,
    Completed,
    Failed,
    Stopped,
    Exhausted,
}

/// The four ways a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Completed,
    Failed,
    Stopped,
    Exhausted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// Before the next attempt.
    Backoff,
    /// Until fewer others run.
    Slot,
    /// Until the agent's provider lets it go on.
    RateLimit,
    Children,
    Timer,
    /// Until it is told something.
    Message,
    /// Until a person lets it go on.
    Paused,
}

impl WaitCause {
    pub fn word(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
            Self::Slot => "slot",
            Self::RateLimit => "rate_limit",
            Self::Children => "children",
            Self::Timer => "timer",
            Self::Message => "message",
            Self::Paused => "paused",
        }
    }
}

impl State {
    pub fn name(&self) -> StateName {
        match self {
            Self::Queued => StateName::Queued,
            Self::Preparing => StateName::Preparing,
            Self::Running => StateName::Running,
            Self::Waiting { .. } => StateName::Waiting,
            Self::Verifying => StateName::Verifying,
            Self::Blocked => StateName::Blocked,
            Self::Finishing { .. } => StateName::Finishing,
            Self::Ended { verdict } => verdict.name(),
        }
    }
}

impl Verdict {
    pub fn name(self) -> StateName {
        match self {
            Self::Completed => StateName::Completed,
            Self::Failed => StateName::Failed,
            Self::Stopped => StateName::Stopped,
            Self::Exhausted => StateName::Exhausted,
        }
    }
}

impl StateName {
    pub fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Verifying => "verifying",
            Self::Blocked => "blocked",
            Self::Finishing => "finishing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Exhausted => "exhausted",
        }
    }

    /// The verdict that this state is, if it is one of the four ends.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Completed => Some(Verdict::Completed),
            Self::Failed => Some(Verdict::Failed),
            Self::Stopped => Some(Verdict::Stopped),
            Self::Exhausted => Some(Verdict::Exhausted),
            Self::Queued
            | Self::Preparing
            | Self::Running
            | Self::Waiting
            | Self::Verifying
            | Self::Blocked
            | Self::Finishing => None,
        }
    }
}

pub(crate) fn state_of(
    to: StateName,
    cause: Option<WaitCause>,
    since: Time,
    until: Option<Time>,
    verdict: Option<Verdict>,
) -> State {
    match to {
        StateName::Queued => State::Queued,
        StateName::Preparing => State::Preparing,
        StateName::Running => State::Running,
        StateName::Waiting => State::Waiting {
            cause: cause.expect("the legality table asks for a cause"),
            since,
            until,
        },
        StateName::Verifying => State::Verifying,
        StateName::Blocked => State::Blocked,
        StateName::Finishing => State::Finishing {
            verdict: verdict.expect("the legality table asks for a verdict"),
            since,
        },
        StateName::Completed | StateName::Failed | StateName::Stopped | StateName::Exhausted => {
            State::Ended { verdict: to.verdict().expect("these four are the verdicts") }
        }
    }
}
