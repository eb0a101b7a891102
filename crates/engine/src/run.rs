//! A run: the fold of its journal.
//!
//! Holds no history, so that turn ten thousand costs what the first did. Nothing but [`Run::apply`]
//! changes it.

use serde::{Deserialize, Serialize};

use crate::legal::{self, Illegal};
use crate::{
    BootId, Event, Fact, Limit, Outcome, Reason, RunId, RunSpec, StopMode, Survivor, Time,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub id: RunId,
    pub(crate) seq: u64,
    pub spec: RunSpec,
    pub state: State,
    /// Why it is in this state.
    pub why: Reason,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// The current attempt, or the last one there was.
    pub attempt: Option<Attempt>,
    pub turns_committed: u32,
    /// Attempts of the current turn that count against the retry limit.
    pub counted_attempts: u32,
    /// Attempts of the current turn in which nothing ran through no fault of the command.
    pub free_attempts: u32,
    /// Attempts over the whole run that ended badly.
    pub crashes: u32,
    pub stop: Option<StopMode>,
    pub limit: Option<Limit>,
}

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
    Backoff,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub turn: u32,
    pub number: u32,
    /// The boot it was meant for. On another boot nothing of it can be alive.
    pub boot: BootId,
    pub process: Option<Process>,
    /// True once its shim is gone while its process lives.
    pub is_orphaned: bool,
    pub end: Option<(Outcome, Time)>,
    pub tree: Tree,
    /// Set while a stop has been tried and has not emptied the tree.
    pub stop_incomplete: bool,
    pub output_bytes: u64,
}

/// The command's process, by more than its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub start: u64,
    pub at: Time,
}

/// What is known of the attempt's process tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// Alive, or not looked at yet.
    Whole,
    /// The main process is gone; these were left.
    Survived(Vec<Survivor>),
    Empty,
}

impl Run {
    /// Folds a journal. The first event must be `RunCreated`, and each must be legal after the one before.
    pub fn replay<'a>(
        id: &RunId,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, Illegal> {
        let mut events = events.into_iter();
        let first = events.next().ok_or(Illegal::Empty)?;
        events.try_fold(Self::created(id, first)?, Self::apply)
    }

    /// The run that its first event makes.
    pub fn created(id: &RunId, event: &Event) -> Result<Self, Illegal> {
        let Fact::RunCreated { spec } = &event.fact else {
            return Err(Illegal::NotCreated { kind: event.fact.kind() });
        };
        if event.seq != 1 {
            return Err(Illegal::Seq { expected: 1, found: event.seq });
        }
        let why = Reason {
            reason: "created".to_owned(),
            reason_code: "created".to_owned(),
            evidence: Vec::new(),
            actor: crate::Actor::User,
        };
        Ok(Self {
            id: id.clone(),
            seq: 1,
            spec: (**spec).clone(),
            state: State::Queued,
            why,
            created_at: event.at,
            started_at: None,
            ended_at: None,
            attempt: None,
            turns_committed: 0,
            counted_attempts: 0,
            free_attempts: 0,
            crashes: 0,
            stop: None,
            limit: None,
        })
    }

    /// The run after one more event, or why there can be no such event now.
    pub fn apply(mut self, event: &Event) -> Result<Self, Illegal> {
        if event.seq != self.seq + 1 {
            return Err(Illegal::Seq { expected: self.seq + 1, found: event.seq });
        }
        legal::check(&self, &event.fact)?;
        self.seq = event.seq;
        self.fold(event);
        Ok(self)
    }

    fn fold(&mut self, event: &Event) {
        let at = event.at;
        match &event.fact {
            Fact::RunCreated { .. } => {
                unreachable!("the legality table refuses a second RunCreated")
            }
            Fact::StateChanged { to, why, cause, until, verdict, .. } => {
                self.state = state_of(*to, *cause, at, *until, *verdict);
                self.why = why.clone();
            }
            Fact::TurnStarted { turn, attempt, boot } => self.begin_attempt(*turn, *attempt, boot),
            Fact::AttemptStarted { pid, start, .. } => {
                self.started_at.get_or_insert(at);
                self.the_attempt().process = Some(Process { pid: *pid, start: *start, at });
            }
            Fact::AttemptAdopted { .. } => {}
            Fact::AttemptOrphaned { .. } => self.the_attempt().is_orphaned = true,
            Fact::AttemptEnded { outcome, output_bytes, survivors, .. } => {
                self.end_attempt(outcome, at, *output_bytes, survivors);
            }
            Fact::TreeEmptied { .. } => {
                let attempt = self.the_attempt();
                attempt.tree = Tree::Empty;
                attempt.stop_incomplete = false;
            }
            Fact::StopIncomplete { survivors, .. } => {
                let attempt = self.the_attempt();
                attempt.tree = Tree::Survived(survivors.clone());
                attempt.stop_incomplete = true;
            }
            Fact::TurnCommitted { .. } => self.turns_committed += 1,
            Fact::StopRequested { mode, .. } => {
                self.stop = Some(*mode);
                if let Some(attempt) = &mut self.attempt {
                    attempt.stop_incomplete = false;
                }
            }
            Fact::LimitReached { limit } => self.limit = Some(*limit),
            Fact::RunEnded { .. } => self.ended_at = Some(at),
        }
    }

    fn begin_attempt(&mut self, turn: u32, number: u32, boot: &BootId) {
        if self.attempt.as_ref().is_none_or(|last| last.turn != turn) {
            self.counted_attempts = 0;
            self.free_attempts = 0;
        }
        self.attempt = Some(Attempt {
            turn,
            number,
            boot: boot.clone(),
            process: None,
            is_orphaned: false,
            end: None,
            tree: Tree::Whole,
            stop_incomplete: false,
            output_bytes: 0,
        });
    }

    fn end_attempt(
        &mut self,
        outcome: &Outcome,
        at: Time,
        output_bytes: u64,
        survivors: &[Survivor],
    ) {
        match outcome {
            Outcome::NeverStarted { code, .. } if code.is_ours() => self.free_attempts += 1,
            _ => self.counted_attempts += 1,
        }
        if !matches!(outcome, Outcome::Exited { code: 0 } | Outcome::Stopped { .. }) {
            self.crashes += 1;
        }
        let attempt = self.the_attempt();
        attempt.end = Some((outcome.clone(), at));
        attempt.output_bytes = output_bytes;
        attempt.stop_incomplete = false;
        attempt.tree = match survivors {
            [] => Tree::Empty,
            some => Tree::Survived(some.to_vec()),
        };
    }

    fn the_attempt(&mut self) -> &mut Attempt {
        self.attempt
            .as_mut()
            .expect("the legality table asks for an attempt before anything happens to it")
    }

    /// The number of the last event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The attempt that has not ended, if there is one.
    pub fn live(&self) -> Option<&Attempt> {
        self.attempt.as_ref().filter(|attempt| attempt.end.is_none())
    }

    /// True when the journal says that the run is over.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }

    /// True while something still has to be done or watched for this run.
    pub fn is_open(&self) -> bool {
        !self.has_ended() || self.ended_at.is_none() || self.has_survivors()
    }

    pub fn has_survivors(&self) -> bool {
        self.attempt.as_ref().is_some_and(Attempt::has_survivors)
    }

    pub fn survivors(&self) -> &[Survivor] {
        match self.attempt.as_ref().map(|attempt| &attempt.tree) {
            Some(Tree::Survived(survivors)) => survivors,
            Some(Tree::Whole | Tree::Empty) | None => &[],
        }
    }
}

impl Attempt {
    pub(crate) fn has_survivors(&self) -> bool {
        matches!(self.tree, Tree::Survived(_))
    }

    pub(crate) fn is(&self, turn: u32, number: u32) -> bool {
        self.turn == turn && self.number == number
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

fn state_of(
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
