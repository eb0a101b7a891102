//! Events: what has happened to a run, in the past tense, numbered, never changed.
//!
//! Their JSON is on disk for good. A field may be added with a default; nothing is renamed or removed.

use serde::{Deserialize, Serialize};

use crate::{BootId, RunSpec, StateName, Time, Verdict, WaitCause};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// 1, 2, 3, … within the run.
    pub seq: u64,
    /// When it happened, which may be before it was written down.
    pub at: Time,
    #[serde(flatten)]
    pub fact: Fact,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Fact {
    RunCreated {
        spec: Box<RunSpec>,
    },
    StateChanged {
        from: StateName,
        to: StateName,
        #[serde(flatten)]
        why: Reason,
        /// What a waiting run waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<WaitCause>,
        /// When a waiting run goes on by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
        /// What a finishing run will have ended as.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
    /// The intent to run an attempt. Nothing of it exists yet.
    TurnStarted {
        turn: u32,
        attempt: u32,
        boot: BootId,
    },
    /// The command's process exists.
    AttemptStarted {
        turn: u32,
        attempt: u32,
        pid: u32,
        start: u64,
    },
    /// A daemon found the attempt alive that another daemon had launched.
    AttemptAdopted {
        turn: u32,
        attempt: u32,
        epoch: u64,
    },
    /// The shim is gone and the command lives: its output and its exit can no longer be seen.
    AttemptOrphaned {
        turn: u32,
        attempt: u32,
    },
    AttemptEnded {
        turn: u32,
        attempt: u32,
        #[serde(flatten)]
        outcome: Outcome,
        output_bytes: u64,
        /// Processes of the tree that outlived the main one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        survivors: Vec<Survivor>,
    },
    /// No process of the attempt's tree is left.
    TreeEmptied {
        turn: u32,
        attempt: u32,
    },
    /// The tree was to be ended, and these would not go.
    StopIncomplete {
        turn: u32,
        attempt: u32,
        survivors: Vec<Survivor>,
    },
    TurnCommitted {
        turn: u32,
        attempt: u32,
        status: TurnStatus,
        outcome: TurnOutcome,
    },
    StopRequested {
        mode: StopMode,
        actor: Actor,
    },
    LimitReached {
        limit: Limit,
    },
    RunEnded {
        state: Verdict,
        reason_code: Option<String>,
    },
}

impl Fact {
    /// The word that stands under `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunCreated { .. } => "RunCreated",
            Self::StateChanged { .. } => "StateChanged",
            Self::TurnStarted { .. } => "TurnStarted",
            Self::AttemptStarted { .. } => "AttemptStarted",
            Self::AttemptAdopted { .. } => "AttemptAdopted",
            Self::AttemptOrphaned { .. } => "AttemptOrphaned",
            Self::AttemptEnded { .. } => "AttemptEnded",
            Self::TreeEmptied { .. } => "TreeEmptied",
            Self::StopIncomplete { .. } => "StopIncomplete",
            Self::TurnCommitted { .. } => "TurnCommitted",
            Self::StopRequested { .. } => "StopRequested",
            Self::LimitReached { .. } => "LimitReached",
            Self::RunEnded { .. } => "RunEnded",
        }
    }
}

/// Why a state changed: a sentence for people, a word for scripts, what it rests on, and who did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub reason: String,
    pub reason_code: String,
    pub evidence: Vec<String>,
    pub actor: Actor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// The person or script behind the API.
    User,
    /// The rules in this crate.
    Engine,
}

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
    /// Ended on request, and its tree is proven empty.
    Stopped {
        exit: Option<Exit>,
    },
    Interrupted {
        by: String,
    },
    /// Nobody saw the end.
    Lost,
}

impl Outcome {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Exited { .. } => "exited",
            Self::Signaled { .. } => "signaled",
            Self::NeverStarted { .. } => "never_started",
            Self::Stalled { .. } => "stalled",
            Self::TimedOut { .. } => "timed_out",
            Self::Stopped { .. } => "stopped",
            Self::Interrupted { .. } => "interrupted",
            Self::Lost => "lost",
        }
    }

    /// The exit that somebody saw, if somebody did.
    pub fn exit(&self) -> Option<Exit> {
        match self {
            Self::Exited { code } => Some(Exit::Code(*code)),
            Self::Signaled { signal } => Some(Exit::Signal(*signal)),
            Self::Stalled { exit } | Self::TimedOut { exit } | Self::Stopped { exit } => *exit,
            Self::NeverStarted { .. } | Self::Interrupted { .. } | Self::Lost => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeverStarted {
    CommandNotFound,
    NotExecutable,
    NoDirectory,
    NoResources,
    BadSpec,
    TooLong,
    /// The shim died before the child had passed its barrier, or could not be started.
    NoShim,
    /// Stop came first.
    Stopped,
}

impl NeverStarted {
    /// True if the fault was not the command's, so that trying again can help and costs no attempt.
    pub fn is_ours(self) -> bool {
        match self {
            Self::NoShim | Self::NoResources => true,
            Self::CommandNotFound
            | Self::NotExecutable
            | Self::NoDirectory
            | Self::BadSpec
            | Self::TooLong
            | Self::Stopped => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    pub pid: u32,
    pub start: u64,
    pub command: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// Ask, wait, then kill.
    Gracefully,
    /// Kill.
    Now,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    RunTimeout,
    TurnTimeout,
    StallWindow,
}

impl Limit {
    pub fn word(self) -> &'static str {
        match self {
            Self::RunTimeout => "run_timeout",
            Self::TurnTimeout => "turn_timeout",
            Self::StallWindow => "stall_window",
        }
    }
}

/// What the agent said of its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    Continue,
    Done,
    Blocked,
    Failed,
}

/// What the turn was worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    MeaningfulCompletion,
    NoOpSuccess,
    EscalationBlocker,
}
