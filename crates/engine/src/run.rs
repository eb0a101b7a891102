//! A run: the fold of its journal.
//!
//! Holds no history, so that turn ten thousand costs what the first did. Nothing but [`Run::apply`]
//! changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::emit::{self, Emit};
use crate::{
    AgentNotes, AgentQuestions, Charge, Child, Condition, Decision, Errand, Heartbeat, Held, Inbox,
    KeyedCalls, Limit, Line, Message, Orders, Outcome, Reason, RefusedCall, RunId, RunSpec,
    Snapshots, Spend, State, StateName, Step, StepState, StopMode, Survivor, Time, ToolCall,
    TurnStatus, Verdict, Wait, WaitCause, Watch,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub id: RunId,
    pub(crate) seq: u64,
    /// When the last event happened that says what the run did.
    pub seen_at: Time,
    /// Shared: a run is copied with every step, and this changes only when its limits are raised.
    pub spec: Arc<RunSpec>,
    pub state: State,
    /// Why it is in this state.
    pub why: Reason,
    /// When it came into this state.
    pub since: Time,
    /// The number of the event that brought it there.
    pub state_seq: u64,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub clock: Clock,
    /// The line of time that its times are on; `None` in a journal of before there were lines.
    pub(crate) line: Option<Line>,
    pub preparation: Preparation,
    /// The current attempt, or the last one there was.
    pub attempt: Option<Attempt>,
    pub errand: Option<Errand>,
    /// How many errands there have been.
    pub errands: u32,
    pub turns_committed: u32,
    /// What the last turn has left to be done before the next.
    pub settling: Option<Settling>,
    /// The claim of done that is being verified.
    pub claim: Option<Claim>,
    /// What the turns work on now.
    pub task: Option<String>,
    /// What the last turn came to.
    pub previous: Option<Previous>,
    /// The workspace as it was last seen between two turns.
    pub digest: Option<String>,
    pub inbox: Inbox,
    pub spend: Spend,
    /// Of a fork: what was spent before it, by the run that it comes from.
    pub inherited: Spend,
    /// True of a fork, from the seam on.
    pub(crate) is_forked: bool,
    pub counters: Counters,
    /// Completed calls by their keys. Shared: it grows with the run, and few steps change it.
    pub calls: Arc<BTreeMap<String, CompletedCall>>,
    /// Calls that its attempts make under keys, and what became of each.
    pub keyed: KeyedCalls,
    /// What its attempts have noted lately.
    pub notes: AgentNotes,
    /// What it was told to do last, so that an order that comes again is known.
    pub orders: Orders,
    /// By a person, this run alone.
    pub is_paused: bool,
    /// The number of the last order to rest, and of the last to go on.
    pub(crate) paused_seq: u64,
    pub(crate) resumed_seq: u64,
    /// What a person has decided since the last attempt began.
    pub(crate) decision: Option<Decision>,
    /// With every other run, by `pause --all`.
    pub is_paused_with_all: bool,
    /// True from a person's word until a blocked run goes on.
    pub(crate) is_released: bool,
    /// True once `after_run` was meant to start.
    pub(crate) has_cleaned_up: bool,
    pub removal: Removal,
    pub stop: Option<StopMode>,
    pub limit: Option<Limit>,
    /// How the run ended after which this one was to start.
    pub predecessor: Option<Verdict>,
    /// Limits of which most is used up, and that was said.
    pub(crate) neared: BTreeSet<Limit>,
    /// How it is doing, by the journal.
    pub condition: Condition,
    /// The runs that were made as this one's, and what each has come to.
    pub children: BTreeMap<RunId, Child>,
    /// What those hold of its pots.
    pub held: Held,
    /// The build that conducts it, as far as its journal says.
    pub build: Option<String>,
    /// True once it was stopped with all below it.
    pub(crate) stops_tree: bool,
    /// What each of its watches has told.
    pub watches: Vec<Watch>,
    pub heartbeat: Heartbeat,
    /// Set if the run was rebuilt from its directory.
    pub recovered: Option<Recovered>,
    pub snapshots: Snapshots,
}

/// The journal had forgotten the run, or stood behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    pub at: Time,
    /// What its directory does not prove, in words.
    pub missing: Vec<String>,
    /// True until a person lets the run go on: before that it starts nothing.
    pub awaits_look: bool,
}

/// How much of its time a run has used. Time at rest, waiting for a person or for others, is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clock {
    pub(crate) used_ms: u64,
    pub(crate) ticking_since: Option<Time>,
}

impl Clock {
    pub fn used_ms(&self, now: Time) -> u64 {
        self.used_ms + self.ticking_since.map_or(0, |since| now.ms_since(since))
    }
}

/// How far a run is made ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preparation {
    pub workspace: WorkspaceState,
    pub(crate) is_checked_out: bool,
    pub(crate) after_create: Done,
    /// How many of the checks before the first turn have passed.
    pub(crate) ready: u32,
    /// True once the check that is next has been asked, and no person wants it asked again.
    pub(crate) has_asked: bool,
    pub(crate) before_run: Done,
}

/// What has become of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WorkspaceState {
    #[default]
    Unmade,
    Refused {
        why: String,
    },
    Ready {
        created: bool,
    },
    /// Half made, and gone again, unless there was a problem with that.
    Discarded,
}

/// Whether something that is done once has been done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Done {
    #[default]
    NotYet,
    Well,
    Badly {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub turn: u32,
    pub number: u32,
    pub state: StepState,
    /// How the attempt before it at the same turn ended.
    pub after: Option<Outcome>,
    /// The number of the last message it was given.
    pub(crate) messages: u64,
    /// What a person decided about the question that the attempt before it ended with.
    pub decision: Option<Decision>,
    /// What it has asked while it lives.
    pub asked: AgentQuestions,
    /// What the attempt before it at the same turn had asked.
    pub asked_before: AgentQuestions,
    /// The messages that it took in the middle of its turn.
    pub(crate) taken: Vec<u64>,
    /// What it has used up so far, as far as it has said.
    pub reported: Option<Charge>,
    /// True once it is decided what follows from its end.
    pub(crate) is_settled: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settling {
    pub turn: u32,
    pub status: TurnStatus,
    pub calls: Vec<ToolCall>,
    pub(crate) wait: Option<Wait>,
    pub(crate) after_turn: Done,
    pub(crate) emission: Emission,
    /// A call with an unknown outcome that may have done harm; a person has to know.
    pub(crate) needs_person: bool,
}

/// Whether what a turn has to say has left the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Emission {
    Undecided,
    Approved,
    Settled,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Claim {
    /// How many of the done checks have passed.
    pub(crate) passed: u32,
    pub(crate) has_failed: bool,
}

/// What a turn came to, for the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    pub turn: u32,
    pub status: TurnStatus,
    pub summary: String,
    pub next_task: Option<String>,
    pub calls: Vec<ToolCall>,
    /// One for each call, once there is one.
    pub results: Vec<Option<CallResult>>,
    pub failed_checks: Vec<FailedCheck>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    pub name: String,
    pub key: String,
    pub outcome: CallOutcome,
    /// What made it; `None` for a call that was refused.
    pub made: Option<CallMade>,
}

/// Where the journal has what a call wrote. The text itself is no part of a run's state: it is read when a
/// request is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallMade {
    /// The errand that made the call, and whose directory has all of its output.
    pub errand: u32,
    /// The number of the event that says how it ended, with the end of its output.
    pub seq: u64,
}

/// A call that is never made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletedCall {
    /// The tool's.
    pub name: String,
    pub made: CallMade,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    Ok,
    Failed {
        why: String,
    },
    /// Its end was not observed.
    Unknown,
    Refused {
        reason_code: String,
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCheck {
    pub command: String,
    pub why: String,
    pub output: String,
}

/// Each counts one thing, and is reset where that thing is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Attempts of the current turn that count against the retry limit.
    pub attempts: u32,
    /// Attempts of the current turn in which nothing ran through no fault of the command.
    pub free_attempts: u32,
    /// Attempts in a row that something kept from their turn, and did not say until when.
    pub impeded: u32,
    /// Attempts in a row that stalled; a turn that commits ends the row.
    pub stalls: u32,
    /// Over the whole run: attempts that were made because the one before had stalled.
    pub stall_restarts: u32,
    /// And because it had ended badly otherwise.
    pub crash_restarts: u32,
    /// Turns in a row that changed nothing.
    pub no_progress: u32,
    /// Turns in a row that claimed done and were refuted.
    pub failed_claims: u32,
}

/// Whether the workspace of an ended run is to go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Removal {
    #[default]
    NotAsked,
    Asked,
    Removed,
    Kept {
        why: String,
    },
}

impl Run {
    /// The number of the last event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The attempt that has not ended, if there is one.
    pub fn live(&self) -> Option<&Attempt> {
        self.attempt.as_ref().filter(|attempt| attempt.state.is_live())
    }

    /// The errand that has not ended, if there is one.
    pub fn live_errand(&self) -> Option<&Errand> {
        self.errand.as_ref().filter(|errand| errand.state.is_live())
    }

    /// True while any process of the run lives, or may.
    pub(crate) fn is_busy(&self) -> bool {
        self.live().is_some() || self.live_errand().is_some() || self.has_survivors()
    }

    /// What is known of a step, if it is the current one of its kind.
    pub fn step_state(&self, step: Step) -> Option<&StepState> {
        match step {
            Step::Attempt { turn, attempt } => {
                self.attempt.as_ref().filter(|known| known.is(turn, attempt)).map(|it| &it.state)
            }
            Step::Errand { errand } => {
                self.errand.as_ref().filter(|known| known.number == errand).map(|it| &it.state)
            }
        }
    }

    /// The messages that the current attempt is given: those that had come when it was meant to start. One
    /// that comes later is the next turn's, however late the attempt is launched.
    pub fn given(&self) -> impl Iterator<Item = &Message> {
        let mark = self.attempt.as_ref().map_or(0, |attempt| attempt.messages);
        self.inbox.unread.iter().map(Arc::as_ref).filter(move |message| message.seq <= mark)
    }

    /// True when the journal says that the run is over.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }

    /// True while something still has to be done or watched for this run.
    pub fn is_open(&self) -> bool {
        !self.has_ended()
            || self.ended_at.is_none()
            || self.is_busy()
            || self.removal == Removal::Asked
            || self.snapshots.asked.is_some()
    }

    /// True while the run takes one of the places that there are for running.
    pub fn holds_slot(&self) -> bool {
        match self.state {
            State::Preparing | State::Running | State::Verifying | State::Finishing { .. } => true,
            State::Queued | State::Waiting { .. } | State::Blocked { .. } | State::Ended { .. } => {
                false
            }
        }
    }

    /// True if the run would go on at once if it had a place.
    pub fn wants_slot(&self) -> bool {
        match self.state {
            State::Queued => true,
            State::Waiting { cause, .. } => {
                matches!(cause, WaitCause::Slot | WaitCause::RestartPacing)
            }
            _ => false,
        }
    }

    /// True while nothing happens to the run until a person says so: no process of it lives, no time is due.
    pub fn waits_for_person(&self) -> bool {
        let is_left_to_one = match self.state {
            State::Blocked { .. } => true,
            State::Waiting { .. } => self.is_to_rest(),
            State::Queued
            | State::Preparing
            | State::Running
            | State::Verifying
            | State::Finishing { .. }
            | State::Ended { .. } => false,
        };
        is_left_to_one && !self.is_busy() && self.due().is_empty() && self.due_at().is_none()
    }

    /// True if nothing new is to be started for it, for now.
    pub fn is_to_rest(&self) -> bool {
        self.is_paused || self.is_paused_with_all
    }

    pub fn has_survivors(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.state.has_survivors())
            || self.errand.as_ref().is_some_and(|errand| errand.state.has_survivors())
    }

    pub fn survivors(&self) -> &[Survivor] {
        let of_attempt = self.attempt.as_ref().map_or(&[][..], |it| it.state.survivors());
        let of_errand = self.errand.as_ref().map_or(&[][..], |it| it.state.survivors());
        if of_attempt.is_empty() { of_errand } else { of_attempt }
    }

    /// True if a stop has been tried and a process is left.
    pub fn is_stop_incomplete(&self) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.state.stop_incomplete)
            || self.errand.as_ref().is_some_and(|errand| errand.state.stop_incomplete)
    }

    /// The last call that a settling run has to see to, and its place.
    pub(crate) fn next_call(&self) -> Option<(u32, &ToolCall)> {
        let settling = self.settling.as_ref()?;
        let previous = self.previous.as_ref()?;
        let at = previous.results.iter().position(Option::is_none)?;
        Some((u32::try_from(at).ok()?, settling.calls.get(at)?))
    }

    /// Where a run goes on that has been at rest.
    pub(crate) fn home(&self) -> StateName {
        if !self.is_prepared() {
            StateName::Preparing
        } else if self.claim.is_some() {
            StateName::Verifying
        } else {
            StateName::Running
        }
    }

    /// True once something was done for the run: what its start waited for matters no more.
    pub(crate) fn has_begun(&self) -> bool {
        self.attempt.is_some()
            || self.errands > 0
            || self.preparation.workspace != WorkspaceState::Unmade
    }

    pub(crate) fn is_prepared(&self) -> bool {
        !self.spec.needs_preparation() || self.preparation.before_run == Done::Well
    }
}

impl Attempt {
    pub fn is(&self, turn: u32, number: u32) -> bool {
        self.turn == turn && self.number == number
    }

    /// True if this message came after it was meant to start, and it does not have it yet.
    pub fn may_take(&self, message: u64) -> bool {
        message > self.messages && !self.taken.contains(&message)
    }

    /// True if it has taken this message in the middle of its turn.
    pub fn has_taken(&self, message: u64) -> bool {
        self.taken.contains(&message)
    }

    pub fn step(&self) -> Step {
        Step::Attempt { turn: self.turn, attempt: self.number }
    }
}

impl Settling {
    /// True once nothing but the turn's status decides what follows.
    pub(crate) fn is_complete(&self, run: &Run) -> bool {
        run.next_call().is_none()
            && self.after_turn != Done::NotYet
            && matches!(emit::decide(run, self), Emit::Nothing)
            && !self.needs_person
    }
}

impl Previous {
    pub(crate) fn new(
        turn: u32,
        status: TurnStatus,
        summary: &str,
        next_task: Option<&String>,
        calls: &[ToolCall],
        refused: &[RefusedCall],
    ) -> Self {
        let result = |at: usize, call: &ToolCall| {
            let refusal = refused.iter().find(|it| usize::try_from(it.call) == Ok(at))?;
            Some(CallResult {
                name: call.name.clone(),
                key: call.key.clone().unwrap_or_default(),
                outcome: CallOutcome::Refused {
                    reason_code: refusal.reason_code.clone(),
                    why: refusal.why.clone(),
                },
                made: None,
            })
        };
        Self {
            turn,
            status,
            summary: summary.to_owned(),
            next_task: next_task.cloned(),
            calls: calls.to_vec(),
            results: calls.iter().enumerate().map(|(at, call)| result(at, call)).collect(),
            failed_checks: Vec::new(),
        }
    }
}
