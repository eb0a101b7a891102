//! Orders: what a client wants of a run, who it was, and which event it answers.
//!
//! Recognises an order that comes again and says what became of a question. Decides nothing about runs.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Decision, Fact, Impediment, Outcome, Run, RunId, StopMode};

/// How many orders a run remembers. One that comes again later is refused by the event it is bound to, so it
/// is never carried out a second time.
const REMEMBERED: usize = 256;

/// No id of an order is longer, in bytes.
pub const LONGEST_ORDER_ID: usize = 200;

/// What an order carries besides its verb. Journals from before orders had ids hold none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Chosen by the client: the same id is the same order.
    #[serde(rename = "order", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// In the journal: the number of the event that the order answers. In an input: what its giver has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<u64>,
    /// A digest of what the order says. Under an id that was used before, another digest is another order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// Who gave an order, as far as the daemon can tell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum By {
    /// A process of this user that belongs to no run.
    User {
        uid: u32,
        /// By which way the person came, as that process says: `web`, `web:anna`, `link:phone`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
    },
    /// A process inside a run.
    Run { run: RunId },
    /// A command that the daemon runs for a sink or a trigger.
    Daemon,
}

/// What a run asks of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The number of the event that asked it or that blocked the run: an answer names it.
    pub seq: u64,
    pub turn: u32,
    pub kind: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Whether what a turn has to say may leave the run: a yes or a no.
    Approval,
    /// Whether the agent may use a tool.
    Permission,
    /// What the model wants to know.
    Question,
    /// Anything else that a person has to look at.
    Block,
}

impl Asked {
    pub fn word(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Block => "block",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Answer(Decision),
    Resume,
    Pause,
    Stop(StopMode),
    Raise,
    Restore,
    /// What became of a call whose end was not observed.
    Resolve {
        was_made: bool,
    },
}

impl Verb {
    /// What has been done by it, for people.
    pub fn done(self) -> &'static str {
        match self {
            Self::Answer(Decision::Approve) => "approved",
            Self::Answer(Decision::Deny) => "denied",
            Self::Answer(Decision::Reply) => "answered with a text",
            Self::Resume => "resumed",
            Self::Pause => "paused",
            Self::Stop(_) => "stopped",
            Self::Raise => "raised",
            Self::Restore => "put back",
            Self::Resolve { was_made: true } => "resolved as made",
            Self::Resolve { was_made: false } => "resolved as to be made again",
        }
    }
}

/// An order that the journal has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The number of its event.
    pub seq: u64,
    pub verb: Verb,
    pub order: Order,
}

impl Taken {
    /// True if it is this order that was taken. An order from before digests were kept is known by its verb.
    pub fn is(&self, verb: Verb, said: &str) -> bool {
        self.verb == verb && self.order.said.as_deref().is_none_or(|taken| taken == said)
    }
}

/// The last orders that a run has taken, the oldest first. Shared, since a run is copied with every step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders(Arc<VecDeque<Taken>>);

impl Orders {
    /// The order under this id, if it is among those that are remembered.
    pub fn get(&self, id: &str) -> Option<&Taken> {
        self.0.iter().find(|taken| taken.order.id.as_deref() == Some(id))
    }

    pub(crate) fn has(&self, order: &Order) -> bool {
        order.id.as_deref().is_some_and(|id| self.get(id).is_some())
    }

    /// What was answered to the question that this event asked, if it is open no longer.
    pub fn answer_to(&self, seq: u64) -> Option<&Taken> {
        let answers = |taken: &&Taken| taken.order.answers == Some(seq);
        // A resume names the last thing that it released, and released what was there before, too.
        let covers = |taken: &&Taken| {
            taken.verb == Verb::Resume && taken.order.answers.is_some_and(|last| last > seq)
        };
        self.0.iter().find(answers).or_else(|| self.0.iter().find(covers))
    }

    /// The first order after this event that let the run go on.
    pub fn release_after(&self, seq: u64) -> Option<&Taken> {
        let lets_go = |taken: &&Taken| matches!(taken.verb, Verb::Answer(_) | Verb::Resume);
        self.0.iter().filter(lets_go).find(|taken| taken.seq > seq)
    }

    pub(crate) fn take(&mut self, seq: u64, fact: &Fact) {
        let Some((verb, order)) = given(fact) else { return };
        let taken = Taken { seq, verb, order: order.clone() };
        let all = Arc::make_mut(&mut self.0);
        if all.len() >= REMEMBERED {
            all.pop_front();
        }
        all.push_back(taken);
    }
}

/// The order that a fact is, if it is one that was given to this run alone. A denied emission is a part of
/// the answer that follows it.
pub(crate) fn given(fact: &Fact) -> Option<(Verb, &Order)> {
    match fact {
        Fact::Answered { decision, order, .. } => Some((Verb::Answer(*decision), order)),
        Fact::ResumeRequested { all: false, order, .. } => Some((Verb::Resume, order)),
        Fact::PauseRequested { all: false, order, .. } => Some((Verb::Pause, order)),
        Fact::StopRequested { mode, order, .. } => Some((Verb::Stop(*mode), order)),
        Fact::LimitsRaised { order, .. } => Some((Verb::Raise, order)),
        Fact::RestoreRequested { order, .. } => Some((Verb::Restore, order)),
        Fact::CallResolved { was_made, order, .. } => {
            Some((Verb::Resolve { was_made: *was_made }, order))
        }
        _ => None,
    }
}

impl Run {
    /// What a person is asked, while it is open. A question keeps its number when the process that asked it has ended
    /// and the run rests for it.
    pub fn asks(&self) -> Option<Question> {
        let turn = self.attempt.as_ref().map_or(0, |attempt| attempt.turn);
        if let Some(open) = self.open_question() {
            return Some(Question { seq: open.seq, turn, kind: open.kind() });
        }
        if !self.state.is_blocked() || self.is_released {
            return None;
        }
        if let Some(parked) = self.parked_question() {
            return Some(Question { seq: parked.seq, turn, kind: parked.kind() });
        }
        let kind = match self.ended_impeded_by() {
            Some(Impediment::Approval) => Asked::Permission,
            Some(Impediment::Question) => Asked::Question,
            _ if self.needs_decision() => Asked::Approval,
            _ => Asked::Block,
        };
        Some(Question { seq: self.state_seq, turn, kind })
    }

    /// What kept the last attempt from a turn that has not committed.
    fn ended_impeded_by(&self) -> Option<Impediment> {
        let attempt = self.attempt.as_ref().filter(|it| it.turn > self.turns_committed)?;
        match attempt.state.end.as_ref()? {
            (Outcome::Impeded { by, .. }, _) => Some(*by),
            _ => None,
        }
    }

    /// The number of the last event that a resume releases whose giver has seen events up to `seen`: the
    /// pause, or the block unless that asks for a decision. What came later stays.
    pub fn releases(&self, seen: Option<u64>) -> Option<u64> {
        let pause = self.is_paused.then_some(self.paused_seq);
        let is_released_by = |it: &Question| matches!(it.kind, Asked::Block | Asked::Question);
        let is_blocked = self.state.is_blocked();
        let block =
            self.asks().filter(|it| is_blocked && is_released_by(it)).map(|_| self.state_seq);
        let was_seen = |seq: &u64| seen.is_none_or(|seen| *seq <= seen);
        [pause, block].into_iter().flatten().filter(was_seen).max()
    }

    /// True if a pause may be taken whose giver has seen events up to `seen`: not while the run is being
    /// ended, and not after a resume that the giver did not know of.
    pub fn may_pause(&self, seen: Option<u64>) -> bool {
        !self.is_being_ended() && seen.is_none_or(|seen| self.resumed_seq <= seen)
    }

    /// True once a stop, a limit or the end leaves no room for a rest.
    pub fn is_being_ended(&self) -> bool {
        self.stop.is_some() || self.limit.is_some() || self.has_ended()
    }
}
