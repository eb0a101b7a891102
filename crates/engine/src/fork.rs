//! A fork: another run with the journal of this one up to the end of a turn, and with the files of that turn.
//!
//! The events of the prefix are copied as they are, with their numbers and times; `Forked` is the seam. What was spent
//! before the seam is shown and charged to the parent alone. The parent's journal is only read.

use serde::{Deserialize, Serialize};

use crate::handle::{Decided, Draft};
use crate::run::{CallOutcome, Claim, Clock, Counters, Preparation, Removal};
use crate::{
    Actor, Cause, Condition, Context, Event, Fact, Illegal, Point, Reason, ReasonCode, Run, RunId,
    RunSpec, Snapshot, State, Time, advance, line, pause_all,
};

/// Where a forked run comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fork {
    pub run: RunId,
    /// The last turn that it has of that run; 0 is none.
    pub turn: u32,
    /// The number of the last event that it has of that run's journal.
    pub seq: u64,
    /// The snapshot that its workspace begins with.
    pub point: Point,
    /// True if the fork has a task of its own, whatever the last turn of the prefix wanted next.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_task: bool,
    /// The agent's conversation at that turn, if the agent can go on with a copy of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionMark>,
    /// Why there is none, for an agent that has conversations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<String>,
}

/// Where a conversation of an agent stood at the end of a turn: what a copy of it up to there is made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionMark {
    pub kind: String,
    /// The agent's own name of the conversation.
    pub id: String,
    /// The agent's own name of the last turn in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// How long the agent's own file of it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The turn of the run that it began in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_in: Option<u32>,
}

/// Whether the files of the parent's turn are in the workspace of a fork.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Planted {
    /// It is no fork.
    #[default]
    NotDue,
    Due,
    Done,
    Failed {
        why: String,
    },
}

/// Why a run cannot be forked there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CannotFork {
    NoSnapshot,
    /// A child that it had at that time has not settled by then.
    Child(RunId),
    /// The end of a call was not observed by then.
    UnknownCall(String),
    /// It does not fold with what is asked of the fork.
    Illegal(Illegal),
}

/// The events of a run up to the snapshot of a turn, and that snapshot.
pub fn prefix(events: &[Event], turn: u32) -> Option<(&[Event], &Snapshot)> {
    let shows = |event: &Event| match &event.fact {
        Fact::SnapshotTaken { turn: of, snapshot } => match snapshot.cause {
            Cause::Base | Cause::Turn | Cause::Found => *of == turn,
            Cause::Wreck => false,
        },
        _ => false,
    };
    let at = events.iter().position(shows)?;
    let Fact::SnapshotTaken { snapshot, .. } = &events[at].fact else { return None };
    Some((&events[..=at], snapshot))
}

/// Says why a run that stands at the end of its prefix cannot be forked there.
pub fn refuse_fork(run: &Run) -> Result<(), CannotFork> {
    let open = run.children.iter().find(|(_, child)| child.end.is_none());
    if let Some((child, _)) = open {
        return Err(CannotFork::Child(child.clone()));
    }
    if let Some(key) = run.call_in_doubt() {
        return Err(CannotFork::UnknownCall(key.to_owned()));
    }
    let results = run.previous.iter().flat_map(|previous| previous.results.iter().flatten());
    let unknown = results.into_iter().find(|it| it.outcome == CallOutcome::Unknown);
    unknown.map_or(Ok(()), |call| Err(CannotFork::UnknownCall(call.name.clone())))
}

/// The first events of a fork: the parent's prefix under another spec, the seam, and what follows at once.
pub fn decide_fork(
    id: &RunId,
    spec: RunSpec,
    prefix: &[Event],
    context: &Context,
) -> Result<Decided, Illegal> {
    let fork = spec.fork.clone().expect("a fork says where it comes from");
    let (first, rest) = prefix.split_first().ok_or(Illegal::Empty)?;
    let Fact::RunCreated { line, .. } = &first.fact else {
        return Err(Illegal::NotCreated { kind: first.fact.kind() });
    };
    let fact = Fact::RunCreated { spec: Box::new(spec), line: line.clone() };
    let first = Event { seq: 1, at: first.at, fact };
    let mut run = Run::created(id, &first)?;
    for event in rest {
        run.apply_in_place(event)?;
    }
    let mut draft = Draft::new(&run);
    line::follow(&mut draft, context);
    draft.push(context.now, Fact::Forked { from_run: fork.run.clone(), turn: fork.turn });
    pause_all::follow(&mut draft, context);
    advance::advance(&mut draft, context);
    let decided = draft.into_decided();
    let events = std::iter::once(first).chain(rest.iter().cloned()).chain(decided.events).collect();
    Ok(Decided { events, ..decided })
}

impl Run {
    /// The turns that it has made itself.
    pub fn own_turns(&self) -> u32 {
        let inherited = self.spec.fork.as_ref().filter(|_| self.is_forked);
        self.turns_committed - inherited.map_or(0, |fork| fork.turn).min(self.turns_committed)
    }

    /// True of the first attempt of a fork.
    pub fn is_first_of_fork(&self, turn: u32, attempt: u32) -> bool {
        let fork = self.spec.fork.as_ref().filter(|_| self.is_forked);
        fork.is_some_and(|fork| turn == fork.turn + 1) && attempt == 1
    }

    /// From here on it is a run of its own: what it knows stays, what it was about to do does not.
    pub(crate) fn fork_here(&mut self, from: &RunId, seq: u64, at: Time) {
        // The prefix of a fork that was forked has a seam too, and that one is not its own.
        self.is_forked = self.spec.fork.as_ref().is_some_and(|fork| fork.run == *from);
        self.state = State::Queued;
        self.why = Reason {
            reason: "forked".to_owned(),
            reason_code: ReasonCode::Created.into(),
            evidence: Vec::new(),
            actor: Actor::User,
        };
        (self.since, self.state_seq, self.created_at) = (at, seq, at);
        (self.started_at, self.ended_at) = (None, None);
        self.clock = Clock::default();
        self.preparation = Preparation::default();
        self.errand = None;
        self.settling = None;
        self.claim = None::<Claim>;
        self.digest = None;
        self.inherited = std::mem::take(&mut self.spend);
        self.counters = Counters::default();
        self.orders = crate::Orders::default();
        (self.is_paused, self.is_paused_with_all, self.is_released) = (false, false, false);
        (self.has_cleaned_up, self.stops_tree) = (false, false);
        self.removal = Removal::default();
        (self.stop, self.limit, self.decision) = (None, None, None);
        self.neared.clear();
        self.condition = Condition::healthy(at);
        self.children.clear();
        self.held = crate::Held::default();
        self.build = self.spec.build.clone();
        self.watches = vec![crate::Watch::default(); self.spec.watches.len()];
        self.heartbeat = crate::Heartbeat::default();
        self.recovered = None;
        if let Some(attempt) = &mut self.attempt {
            attempt.is_settled = true;
        }
        if self.spec.fork.as_ref().is_some_and(|fork| fork.has_task) {
            self.task = self.spec.task.clone();
        }
        let known = &mut self.snapshots;
        known.planted = Planted::Due;
        known.has_rested = true;
        known.tried = self.turns_committed;
        (known.bytes, known.failed) = (0, None);
        (known.undo, known.asked, known.back) = (crate::Undo::Nothing, None, None);
    }
}
