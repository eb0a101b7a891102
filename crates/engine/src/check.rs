//! The invariants of a journal, in one list with four users: the simulator, the crash tests, the soak
//! and `outlast doctor`.
//!
//! The legality table already refuses most of what must not be; this says again, independently and over
//! the whole history, what a reader of a journal may rely on.

use std::collections::{BTreeMap, BTreeSet};

use crate::order::{self, Verb};
use crate::{
    BlockReason, Event, Fact, Hook, Illegal, Order, Outcome, Purpose, Run, RunId, StateName,
    Verdict, Wants, Word,
};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("does not replay: {0}")]
    Replay(#[from] Illegal),
    #[error("turn {turn} attempt {attempt} {what}")]
    Attempt { turn: u32, attempt: u32, what: &'static str },
    #[error("errand {errand} {what}")]
    Errand { errand: u32, what: &'static str },
    #[error("turn {turn} {what}")]
    Turn { turn: u32, what: &'static str },
    #[error("the run {0}")]
    Run(&'static str),
}

/// Everything that is wrong with a journal; empty for a sound one.
pub fn check(id: &RunId, events: &[Event]) -> Vec<Violation> {
    let mut violations: Vec<Violation> =
        Run::replay(id, events).err().map(Violation::Replay).into_iter().collect();
    let mut history = History::default();
    for event in events {
        violations.extend(history.order(event));
        violations.extend(history.next(&event.fact));
    }
    violations
}

#[derive(Default)]
struct History {
    /// Attempts that have been started, and whether they have ended.
    attempts: BTreeMap<(u32, u32), bool>,
    ran: BTreeSet<(u32, u32)>,
    committed: BTreeSet<u32>,
    last_outcome: Option<Outcome>,
    /// The errand that is alive.
    errand: Option<(u32, Purpose)>,
    /// Keys of calls that have completed.
    completed_calls: BTreeSet<String>,
    has_cleaned_up: bool,
    stop_or_limit: bool,
    /// Rebuilt from its directory, or its journal is older than it: neither says who asked for a stop.
    is_recovered: bool,
    /// The directory said how it had ended.
    had_ended: bool,
    ended: bool,
    /// Children, and whether they have settled.
    children: BTreeMap<RunId, bool>,
    /// Up to where each watch has told of an attempt.
    told: BTreeMap<(u32, u32, u32), u64>,
    disabled_watches: BTreeSet<u32>,
    /// Ids of orders.
    orders: BTreeSet<String>,
    question: Option<Question>,
    /// What agents have asked while they lived, by the number of the event, and whether it was answered.
    asked: BTreeMap<u64, bool>,
}

/// What a blocked run asks.
struct Question {
    seq: u64,
    wants_decision: bool,
    is_answered: bool,
    /// The answer was in a journal that was lost, as `RunRecovered` says.
    may_be_lost: bool,
}

impl History {
    /// Each order counts once, each question has one answer, and no run goes on without the answer to its own.
    fn order(&mut self, event: &Event) -> Option<Violation> {
        let wrong = |what| Some(Violation::Run(what));
        if let Fact::StateChanged { from, to, why, .. } = &event.fact {
            let left = self.question.take().filter(|_| *from == StateName::Blocked);
            if *to == StateName::Blocked {
                let reason = Word::<BlockReason>::of(why.reason_code.as_str());
                let wants_decision = reason.wants() == Wants::Decision;
                let (seq, is_answered, may_be_lost) = (event.seq, false, false);
                self.question = Some(Question { seq, wants_decision, is_answered, may_be_lost });
            }
            let goes_on = *to != StateName::Finishing;
            let has_answer = |left: &Question| left.is_answered || left.may_be_lost;
            let is_unanswered = left.is_some_and(|question| goes_on && !has_answer(&question));
            return is_unanswered.then_some(Violation::Run("went on without an answer"));
        }
        if let Fact::QuestionAsked { .. } = &event.fact {
            self.asked.insert(event.seq, false);
        }
        let (verb, order) = order::given(&event.fact)?;
        if order.id.as_ref().is_some_and(|id| !self.orders.insert(id.clone())) {
            return wrong("took one order twice");
        }
        match verb {
            Verb::Answer(_) => self.answered(order),
            Verb::Resume => self.resumed(order),
            Verb::Pause | Verb::Stop(_) => None,
        }
    }

    fn answered(&mut self, order: &Order) -> Option<Violation> {
        let wrong = |what| Some(Violation::Run(what));
        if let Some(is_answered) = order.answers.and_then(|seq| self.asked.get_mut(&seq)) {
            let was_answered = std::mem::replace(is_answered, true);
            // A run that rests for it goes on by it.
            self.question.iter_mut().for_each(|question| question.is_answered = true);
            return if was_answered { wrong("took two answers to one question") } else { None };
        }
        let Some(question) = &mut self.question else {
            return wrong("was answered without having asked");
        };
        let was_answered = std::mem::replace(&mut question.is_answered, true);
        match order.answers {
            Some(seq) if seq != question.seq => wrong("took an answer to another question"),
            Some(_) if was_answered => wrong("took two answers to one question"),
            // Answers from before they were bound to anything.
            Some(_) | None => None,
        }
    }

    fn resumed(&mut self, order: &Order) -> Option<Violation> {
        let question = self.question.as_mut()?;
        match order.answers {
            None => question.is_answered = true,
            Some(seq) if question.seq > seq || question.wants_decision => {}
            Some(seq) => {
                let was_answered = std::mem::replace(&mut question.is_answered, true);
                if was_answered && seq == question.seq {
                    return Some(Violation::Run("took two answers to one question"));
                }
            }
        }
        None
    }

    fn next(&mut self, fact: &Fact) -> Option<Violation> {
        match fact {
            Fact::TurnStarted { turn, attempt, .. } => self.turn_started(*turn, *attempt),
            Fact::AttemptStarted { turn, attempt, .. } => {
                let twice = !self.ran.insert((*turn, *attempt));
                twice.then(|| violation(*turn, *attempt, "was executed twice"))
            }
            Fact::AttemptEnded { turn, attempt, outcome, survivors, .. } => {
                self.attempt_ended(*turn, *attempt, outcome, survivors.len())
            }
            Fact::TurnCommitted { turn, attempt, .. } => self.turn_committed(*turn, *attempt),
            Fact::StopRequested { .. } | Fact::LimitReached { .. } => {
                self.stop_or_limit = true;
                None
            }
            Fact::RunEnded { state, .. } => self.run_ended(*state),
            Fact::ErrandStarted { errand, purpose, .. } => self.errand_started(*errand, purpose),
            Fact::ErrandEnded { errand, outcome, .. } => self.errand_ended(*errand, outcome),
            Fact::ChildSpawned { child, .. } => {
                let twice = self.children.insert(child.clone(), false).is_some();
                twice.then_some(Violation::Run("has a child twice"))
            }
            Fact::ChildSettled { child, .. } => {
                let was_live = self.children.insert(child.clone(), true) == Some(false);
                (!was_live)
                    .then_some(Violation::Run("heard twice of a child's end, or of no child"))
            }
            Fact::OutputMatched { turn, attempt, watch, offset, .. } => {
                let before = self.told.insert((*turn, *attempt, *watch), *offset);
                let is_news = before.is_none_or(|before| before < *offset);
                let is_told = is_news && !self.disabled_watches.contains(watch);
                (!is_told).then(|| violation(*turn, *attempt, "was told of again"))
            }
            Fact::WatchDisabled { watch, .. } => {
                let twice = !self.disabled_watches.insert(*watch);
                twice.then_some(Violation::Run("had a watch disabled twice"))
            }
            Fact::RunRecovered { turns_committed, has_ended, .. } => {
                self.is_recovered = true;
                self.had_ended |= has_ended;
                self.committed.extend(1..=*turns_committed);
                self.question.iter_mut().for_each(|question| question.may_be_lost = true);
                None
            }
            // The stop may have been asked for in the journal that was lost.
            Fact::JournalRestored { .. } => {
                self.is_recovered = true;
                None
            }
            Fact::MessagesGiven { turn, attempt, .. } => {
                let is_live = self.attempts.get(&(*turn, *attempt)) == Some(&false);
                (!is_live).then(|| violation(*turn, *attempt, "took messages without being alive"))
            }
            Fact::QuestionAsked { turn, attempt, .. } => {
                let is_live = self.attempts.get(&(*turn, *attempt)) == Some(&false);
                (!is_live).then(|| violation(*turn, *attempt, "asked without being alive"))
            }
            Fact::RunCreated { .. }
            | Fact::ClockSet { .. }
            | Fact::StateChanged { .. }
            | Fact::ToolsOffered { .. }
            | Fact::AttemptAdopted { .. }
            | Fact::AttemptOrphaned { .. }
            | Fact::TreeEmptied { .. }
            | Fact::StopIncomplete { .. }
            | Fact::WorkspacePrepared { .. }
            | Fact::WorkspaceRefused { .. }
            | Fact::WorkspaceDiscarded { .. }
            | Fact::ErrandEmptied { .. }
            | Fact::ErrandIncomplete { .. }
            | Fact::CallAnswered { .. }
            | Fact::Emitted { .. }
            | Fact::EmissionDenied { .. }
            | Fact::MessageReceived { .. }
            | Fact::PauseRequested { .. }
            | Fact::ResumeRequested { .. }
            | Fact::Answered { .. }
            | Fact::RemovalRequested { .. }
            | Fact::WorkspaceRemoved { .. }
            | Fact::WorkspaceKept { .. }
            | Fact::HealthDegraded { .. }
            | Fact::HealthRecovered { .. }
            | Fact::LimitNeared { .. }
            | Fact::UsageReported { .. }
            | Fact::HeartbeatTold { .. } => None,
        }
    }

    fn errand_started(&mut self, errand: u32, purpose: &Purpose) -> Option<Violation> {
        let wrong = |what| Some(Violation::Errand { errand, what });
        let is_clean_up = *purpose == Purpose::Hook { hook: Hook::AfterRun };
        let cleans_up_again = is_clean_up && std::mem::replace(&mut self.has_cleaned_up, true);
        let was_alive = self.errand.replace((errand, purpose.clone())).is_some();
        if was_alive {
            return wrong("was started while another was alive");
        }
        if self.attempts.values().any(|ended| !ended) {
            return wrong("was started while an attempt was alive");
        }
        if cleans_up_again {
            return wrong("cleans up a second time");
        }
        match purpose {
            Purpose::Tool { key, .. } if self.completed_calls.contains(key) => {
                wrong("makes a call again that has completed")
            }
            _ => None,
        }
    }

    fn errand_ended(&mut self, errand: u32, outcome: &Outcome) -> Option<Violation> {
        let Some((_, purpose)) = self.errand.take().filter(|(alive, _)| *alive == errand) else {
            return Some(Violation::Errand { errand, what: "ended without being alive" });
        };
        match (purpose, outcome) {
            (Purpose::Tool { key, .. }, Outcome::Exited { code: 0 }) => {
                self.completed_calls.insert(key);
            }
            // Nothing ran: it may still clean up.
            (Purpose::Hook { hook: Hook::AfterRun }, Outcome::NeverStarted { .. }) => {
                self.has_cleaned_up = false;
            }
            _ => {}
        }
        None
    }

    fn turn_started(&mut self, turn: u32, attempt: u32) -> Option<Violation> {
        let two_live = self.attempts.values().any(|ended| !ended);
        let again = self.attempts.insert((turn, attempt), false).is_some();
        if self.committed.contains(&turn) {
            return Some(Violation::Turn { turn, what: "was run again after it had committed" });
        }
        if self.stop_or_limit || self.ended {
            return Some(violation(turn, attempt, "was started while the run was being ended"));
        }
        if again {
            return Some(violation(turn, attempt, "was started twice"));
        }
        if self.errand.is_some() {
            return Some(violation(turn, attempt, "was started while an errand was alive"));
        }
        two_live.then(|| violation(turn, attempt, "was started while another was alive"))
    }

    fn attempt_ended(
        &mut self,
        turn: u32,
        attempt: u32,
        outcome: &Outcome,
        survivors: usize,
    ) -> Option<Violation> {
        self.last_outcome = Some(outcome.clone());
        let was_live = self.attempts.insert((turn, attempt), true) == Some(false);
        if !was_live {
            return Some(violation(turn, attempt, "ended without being alive"));
        }
        if outcome.exit().is_some() && !self.ran.contains(&(turn, attempt)) {
            return Some(violation(turn, attempt, "has an exit but never started"));
        }
        let claims_gone = matches!(
            outcome,
            Outcome::Stopped { .. } | Outcome::TimedOut { .. } | Outcome::Stalled { .. }
        );
        (claims_gone && survivors > 0)
            .then(|| violation(turn, attempt, "was said to be ended while processes were left"))
    }

    fn turn_committed(&mut self, turn: u32, attempt: u32) -> Option<Violation> {
        if !self.committed.insert(turn) {
            return Some(Violation::Turn { turn, what: "was committed twice" });
        }
        let has_ended = self.attempts.get(&(turn, attempt)) == Some(&true);
        (!has_ended).then(|| violation(turn, attempt, "was committed before it had ended"))
    }

    fn run_ended(&mut self, state: Verdict) -> Option<Violation> {
        let twice = std::mem::replace(&mut self.ended, true);
        if twice {
            return Some(Violation::Run("ended twice"));
        }
        if self.attempts.values().any(|ended| !ended) || self.errand.is_some() {
            return Some(Violation::Run("ended while something of it was alive"));
        }
        match state {
            Verdict::Completed if self.had_ended => None,
            Verdict::Completed if self.committed.is_empty() => {
                Some(Violation::Run("completed without a committed turn"))
            }
            Verdict::Completed if self.last_outcome == Some(Outcome::Lost) => {
                Some(Violation::Run("completed although its end was not observed"))
            }
            Verdict::Stopped if !self.stop_or_limit && !self.is_recovered => {
                Some(Violation::Run("stopped without having been asked to"))
            }
            Verdict::Completed | Verdict::Failed | Verdict::Stopped | Verdict::Exhausted => None,
        }
    }
}

fn violation(turn: u32, attempt: u32, what: &'static str) -> Violation {
    Violation::Attempt { turn, attempt, what }
}
