//! How one process tree ended: an attempt's, or that of a command of the host.

use serde::{Deserialize, Serialize};

use crate::{Exit, Impediment, NeverStarted, Time};

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    Exited {
        code: i32,
    },
    Signaled {
        signal: i32,
    },
    NeverStarted {
        code: NeverStarted,
        why: String,
    },
    Stalled {
        exit: Option<Exit>,
    },
    TimedOut {
        exit: Option<Exit>,
    },
    /// It ended by itself, and what it answered cannot be used.
    BadResponse {
        exit: Option<Exit>,
        why: String,
    },
    /// It ended by itself because something kept it from its turn. The turn goes on once that is out of the way, and
    /// no try is used up.
    Impeded {
        by: Impediment,
        /// When it may go on, if that was reported.
        until: Option<Time>,
        why: String,
        exit: Option<Exit>,
        /// The agent's own name of the question that it ended with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<String>,
    },
    /// Ended on request, and its tree is proven empty.
    Stopped {
        exit: Option<Exit>,
    },
    Interrupted {
        by: String,
    },
    /// The end was not observed.
    Lost,
}

const PAUSE: &str = "pause";

impl Outcome {
    /// The agent's own name of the question that it ended with.
    pub(crate) fn question(&self) -> Option<&str> {
        match self {
            Self::Impeded { question, .. } => question.as_deref(),
            _ => None,
        }
    }

    pub fn word(&self) -> &'static str {
        match self {
            Self::Exited { .. } => "exited",
            Self::Signaled { .. } => "signaled",
            Self::NeverStarted { .. } => "never_started",
            Self::Stalled { .. } => "stalled",
            Self::TimedOut { .. } => "timed_out",
            Self::BadResponse { .. } => "bad_response",
            Self::Impeded { .. } => "impeded",
            Self::Stopped { .. } => "stopped",
            Self::Interrupted { .. } => "interrupted",
            Self::Lost => "lost",
        }
    }

    /// True if the main process ended by itself.
    pub fn is_by_itself(&self) -> bool {
        match self {
            Self::Exited { .. }
            | Self::Signaled { .. }
            | Self::BadResponse { .. }
            | Self::Impeded { .. } => true,
            Self::NeverStarted { .. }
            | Self::Stalled { .. }
            | Self::TimedOut { .. }
            | Self::Stopped { .. }
            | Self::Interrupted { .. }
            | Self::Lost => false,
        }
    }

    /// It was ended because everything was to rest at once.
    pub(crate) fn by_pause() -> Self {
        Self::Interrupted { by: PAUSE.to_owned() }
    }

    pub(crate) fn is_by_pause(&self) -> bool {
        matches!(self, Self::Interrupted { by } if by == PAUSE)
    }

    /// True if a step that ended so may have run although its start was not seen. Of one that another boot
    /// interrupted, what was written says whether it had started.
    pub(crate) fn may_have_run(&self) -> bool {
        match self {
            Self::NeverStarted { .. } => false,
            Self::Interrupted { .. } => self.is_by_pause(),
            Self::Exited { .. }
            | Self::Signaled { .. }
            | Self::Stalled { .. }
            | Self::TimedOut { .. }
            | Self::BadResponse { .. }
            | Self::Impeded { .. }
            | Self::Stopped { .. }
            | Self::Lost => true,
        }
    }

    /// Nothing ran, because the host lacked something just then.
    pub fn is_shortage(&self) -> bool {
        matches!(self, Self::NeverStarted { code: NeverStarted::NoResources, .. })
    }

    /// The exit, if it was observed.
    pub fn exit(&self) -> Option<Exit> {
        match self {
            Self::Exited { code } => Some(Exit::Code(*code)),
            Self::Signaled { signal } => Some(Exit::Signal(*signal)),
            Self::Stalled { exit }
            | Self::TimedOut { exit }
            | Self::BadResponse { exit, .. }
            | Self::Impeded { exit, .. }
            | Self::Stopped { exit } => *exit,
            Self::NeverStarted { .. } | Self::Interrupted { .. } | Self::Lost => None,
        }
    }
}
