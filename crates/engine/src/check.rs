//! The invariants of a journal, in one list with four users: the simulator, the crash tests, the soak
//! and `outlast doctor`.
//!
//! The legality table already refuses most of what must not be; this says again, independently and over
//! the whole history, what a reader of a journal may rely on.

use std::collections::{BTreeMap, BTreeSet};

use crate::audit::Audit;
use crate::order::{self, Verb};
use crate::{
    BlockReason, Cause, Event, Exit, Fact, Hook, Illegal, Order, Outcome, Purpose, Run, RunId,
    StateName, ToolClass, Verdict, Wants, Word,
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
    let mut violations: Vec<Violation> = audited(id, events);
    let mut history = History::default();
    for event in events {
        violations.extend(history.order(event));
        violations.extend(history.next(&event.fact));
        violations.extend(history.call(event));
    }
    violations
}

/// Folds the journal, and holds the run's pots against it after each event.
fn audited(id: &RunId, events: &[Event]) -> Vec<Violation> {
    let mut audit = Audit::default();
    let mut violations = Vec::new();
    let Some(first) = events.first() else { return vec![Illegal::Empty.into()] };
    let mut run = match Run::created(id, first) {
        Ok(run) => run,
        Err(illegal) => return vec![illegal.into()],
    };
    violations.extend(audit.next(&run, first));
    for event in &events[1..] {
        if let Err(illegal) = run.apply_in_place(event) {
            violations.push(illegal.into());
            return violations;
        }
        violations.extend(audit.next(&run, event));
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
    /// Calls under keys.
    calls: BTreeMap<String, Call>,
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
    /// Commits of snapshots, and the one that was made last if it is a wreck.
    snapshots: BTreeSet<String>,
    wreck: Option<String>,
    /// A fork whose files are not there yet.
    is_planted_next: bool,
}

/// A call under a key.
struct Call {
    class: ToolClass,
    /// The number of the last intent.
    begun: u64,
    /// How often it was about to be made since it last had a result; what never started does not count.
    tries: u32,
    /// False if the last time never started: then only the earlier ones are in doubt.
    is_open: bool,
    end: Option<Exit>,
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
            Verb::Pause | Verb::Stop(_) | Verb::Raise | Verb::Restore | Verb::Resolve { .. } => {
                None
            }
        }
    }

    /// What came before is another run's: its turns and snapshots stay, and nothing of it is alive.
    fn fork(&mut self) {
        let committed = std::mem::take(&mut self.committed);
        let snapshots = std::mem::take(&mut self.snapshots);
        let completed_calls = std::mem::take(&mut self.completed_calls);
        let calls = std::mem::take(&mut self.calls);
        let last_outcome = self.last_outcome.take();
        let (attempts, ran) = (std::mem::take(&mut self.attempts), std::mem::take(&mut self.ran));
        let is_planted_next = true;
        *self = Self {
            attempts,
            ran,
            committed,
            last_outcome,
            completed_calls,
            calls,
            snapshots,
            is_planted_next,
            ..Self::default()
        };
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
            Fact::LimitsRaised { .. } => {
                // An exhausted run is open again, and is tidied up again at its next end.
                if std::mem::take(&mut self.ended) {
                    self.stop_or_limit = false;
                    self.has_cleaned_up = false;
                }
                None
            }
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
            Fact::QuestionAsked { turn, attempt, .. }
            | Fact::QuestionWithdrawn { turn, attempt, .. } => {
                let is_live = self.attempts.get(&(*turn, *attempt)) == Some(&false);
                (!is_live).then(|| violation(*turn, *attempt, "asked without being alive"))
            }
            Fact::SnapshotTaken { snapshot, .. } => {
                self.snapshots.insert(snapshot.commit.clone());
                self.wreck = (snapshot.cause == Cause::Wreck).then(|| snapshot.commit.clone());
                None
            }
            Fact::Forked { .. } => {
                self.fork();
                None
            }
            Fact::WorkspaceRestored { to, wreck, .. } => {
                let is_new = std::mem::take(&mut self.is_planted_next) && wreck.is_empty();
                let is_kept = is_new || self.wreck.take().as_ref() == Some(wreck);
                let is_known = self.snapshots.contains(to);
                match (is_kept, is_known) {
                    (false, _) => Some(Violation::Run("went back without keeping what was there")),
                    (true, false) => Some(Violation::Run("went back to what is no snapshot of it")),
                    (true, true) => None,
                }
            }
            Fact::SnapshotFailed { .. }
            | Fact::RestoreRequested { .. }
            | Fact::RunCreated { .. }
            | Fact::ClockSet { .. }
            | Fact::StateChanged { .. }
            | Fact::Segment { .. }
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
            | Fact::CallBegun { .. }
            | Fact::NoteTaken { .. }
            | Fact::TerminalOpened { .. }
            | Fact::CallEnded { .. }
            | Fact::CallResolved { .. }
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
            | Fact::PredecessorEnded { .. }
            | Fact::UsageReported { .. }
            | Fact::HeartbeatTold { .. } => None,
        }
    }

    /// A call has one result, and none is made again that has completed or may do harm.
    fn call(&mut self, event: &Event) -> Option<Violation> {
        let wrong = |what| Some(Violation::Run(what));
        match &event.fact {
            Fact::CallBegun { asked, .. } => {
                let before = self.calls.remove(&asked.key);
                let doubts = before.as_ref().filter(|call| call.end.is_none());
                let tries = doubts.map_or(0, |call| call.tries) + 1;
                let (class, begun) = (asked.class, event.seq);
                let call = Call { class, begun, tries, is_open: true, end: None };
                self.calls.insert(asked.key.clone(), call);
                match before {
                    Some(Call { end: Some(Exit::Code(0)), .. }) => {
                        wrong("made a call again that has completed")
                    }
                    Some(Call { class: ToolClass::Unsafe, end: None, .. }) => {
                        wrong("made a call again that may have been made and may do harm")
                    }
                    Some(_) | None => None,
                }
            }
            Fact::CallEnded { key, begun, exit, .. } => match self.calls.get_mut(key) {
                Some(call) if call.is_open && call.begun == *begun => {
                    (call.end, call.is_open) = (*exit, false);
                    // What never started may be made, whatever its class; an earlier time is still in doubt.
                    if exit.is_none() {
                        call.tries -= 1;
                        if call.tries == 0 {
                            self.calls.remove(key);
                        }
                    }
                    None
                }
                Some(_) | None => wrong("took a second result of a call, or one of no call"),
            },
            Fact::CallResolved { key, was_made, .. } => match self.calls.remove(key) {
                Some(call) if call.end.is_none() => {
                    if *was_made {
                        let end = Some(Exit::Code(0));
                        self.calls.insert(key.clone(), Call { end, ..call });
                    }
                    None
                }
                Some(_) | None => wrong("had a call resolved that was not in doubt"),
            },
            _ => None,
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
