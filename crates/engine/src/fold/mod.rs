//! How each event changes a run. Decides nothing: what is legal is the legality table's business.

mod errands;
mod people;

use std::sync::Arc;

use crate::legal::{self, Illegal};
use crate::run::{
    Attempt, Claim, Clock, Counters, Done, Emission, Preparation, Previous, Recovered, Removal,
    Settling, WorkspaceState,
};
use crate::state::{is_ticking, state_of};
use crate::{
    AgentQuestion, AgentQuestions, BootId, Charge, Child, Condition, Errand, Event, Fact,
    Impediment, Inbox, Limit, Message, Outcome, Process, Reason, ReasonCode, Run, RunId,
    SettledChild, Spend, State, StepState, StopMode, Survivor, Time, TurnStatus, limits,
};

#[cfg(debug_assertions)]
thread_local! {
    static FOLDED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// How many events this thread has folded: for a test, in debug builds only.
#[cfg(debug_assertions)]
#[doc(hidden)]
pub fn folded() -> u64 {
    FOLDED.with(std::cell::Cell::get)
}

impl Run {
    /// Folds a journal. The first event must be `RunCreated`, and each must be legal after the one before.
    pub fn replay<'a>(
        id: &RunId,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> Result<Self, Illegal> {
        let mut events = events.into_iter();
        let first = events.next().ok_or(Illegal::Empty)?;
        let mut run = Self::created(id, first)?;
        for event in events {
            run.apply_in_place(event)?;
        }
        Ok(run)
    }

    /// The run that its first event makes.
    pub fn created(id: &RunId, event: &Event) -> Result<Self, Illegal> {
        let Fact::RunCreated { spec, line } = &event.fact else {
            return Err(Illegal::NotCreated { kind: event.fact.kind() });
        };
        if event.seq != 1 {
            return Err(Illegal::Seq { expected: 1, found: event.seq });
        }
        let why = Reason {
            reason: "created".to_owned(),
            reason_code: ReasonCode::Created.into(),
            evidence: Vec::new(),
            actor: crate::Actor::User,
        };
        Ok(Self {
            id: id.clone(),
            seq: 1,
            seen_at: event.at,
            spec: Arc::new((**spec).clone()),
            state: State::Queued,
            why,
            since: event.at,
            state_seq: 1,
            created_at: event.at,
            started_at: None,
            ended_at: None,
            clock: Clock::default(),
            line: line.clone(),
            preparation: Preparation::default(),
            attempt: None,
            errand: None,
            errands: 0,
            turns_committed: 0,
            settling: None,
            claim: None,
            task: spec.task.clone(),
            previous: None,
            digest: None,
            inbox: Inbox::default(),
            spend: Spend::default(),
            inherited: Spend::default(),
            is_forked: false,
            counters: Counters::default(),
            calls: Arc::default(),
            keyed: crate::KeyedCalls::default(),
            notes: crate::AgentNotes::default(),
            orders: crate::Orders::default(),
            is_paused: false,
            paused_seq: 0,
            resumed_seq: 0,
            decision: None,
            is_paused_with_all: false,
            is_released: false,
            has_cleaned_up: false,
            removal: Removal::default(),
            stop: None,
            limit: None,
            predecessor: None,
            neared: std::collections::BTreeSet::new(),
            condition: Condition::healthy(event.at),
            children: std::collections::BTreeMap::new(),
            held: crate::Held::default(),
            build: spec.build.clone(),
            stops_tree: false,
            watches: vec![crate::Watch::default(); spec.watches.len()],
            heartbeat: crate::Heartbeat::default(),
            recovered: None,
            snapshots: crate::Snapshots::default(),
        })
    }

    /// The run after one more event, or why there can be no such event now.
    pub fn apply(mut self, event: &Event) -> Result<Self, Illegal> {
        self.apply_in_place(event)?;
        Ok(self)
    }

    pub(crate) fn apply_in_place(&mut self, event: &Event) -> Result<(), Illegal> {
        if event.seq != self.seq + 1 {
            return Err(Illegal::Seq { expected: self.seq + 1, found: event.seq });
        }
        legal::check(self, &event.fact)?;
        self.seq = event.seq;
        self.fold(event);
        #[cfg(debug_assertions)]
        FOLDED.with(|folded| folded.set(folded.get() + 1));
        Ok(())
    }

    fn fold(&mut self, event: &Event) {
        let at = event.at;
        if !matches!(event.fact, Fact::ClockSet { .. }) {
            self.seen_at = self.seen_at.max(at);
        }
        self.orders.take(event.seq, &event.fact);
        match &event.fact {
            Fact::RunCreated { .. } => {
                unreachable!("the legality table refuses a second RunCreated")
            }
            Fact::ClockSet { line } => self.go_by(line),
            Fact::RunRecovered { turns_committed, errands, missing, has_ended } => {
                self.take_up(*turns_committed, *errands, missing, at);
                self.has_cleaned_up |= has_ended;
            }
            Fact::JournalRestored { known_until } => {
                self.clock.used_ms = self.clock.used_ms(*known_until);
                self.clock.ticking_since.iter_mut().for_each(|since| *since = at);
            }
            Fact::StateChanged { to, why, cause, until, verdict, .. } => {
                self.state_seq = event.seq;
                self.change_state(state_of(*to, why, *cause, at, *until, *verdict), why, at);
            }
            Fact::Segment { to, .. } => self.build = Some(to.clone()),
            Fact::TurnStarted { turn, attempt, boot, messages } => {
                self.begin_attempt(*turn, *attempt, boot, *messages);
            }
            Fact::ToolsOffered { .. } | Fact::AttemptAdopted { .. } => {}
            Fact::AttemptStarted { pid, start, workspace, .. } => {
                self.started_at.get_or_insert(at);
                if workspace.is_some() {
                    self.digest.clone_from(workspace);
                }
                self.the_attempt().state.process = Some(Process { pid: *pid, start: *start, at });
            }
            Fact::AttemptOrphaned { .. } => self.the_attempt().state.is_orphaned = true,
            Fact::AttemptEnded { outcome, output_bytes, survivors, charge, .. } => {
                self.end_attempt(outcome, at, *output_bytes, survivors, charge.as_ref());
            }
            Fact::TreeEmptied { .. } => self.the_attempt().state.emptied(),
            Fact::StopIncomplete { survivors, .. } => {
                self.the_attempt().state.would_not_go(survivors);
            }
            Fact::TurnCommitted { .. } => self.commit(&event.fact),
            Fact::WorkspacePrepared { created } => {
                self.preparation.workspace = WorkspaceState::Ready { created: *created };
            }
            Fact::WorkspaceRefused { why } => {
                self.preparation.workspace = WorkspaceState::Refused { why: why.clone() };
            }
            Fact::WorkspaceDiscarded { .. } => {
                self.preparation.workspace = WorkspaceState::Discarded;
            }
            Fact::ErrandStarted { errand, purpose, boot, .. } => {
                self.begin_errand(*errand, purpose, boot);
            }
            Fact::ErrandEnded { outcome, output_bytes, tail, survivors, .. } => {
                self.end_errand(outcome, at, *output_bytes, tail, survivors);
            }
            Fact::SnapshotTaken { turn, snapshot } => self.snapshot_taken(*turn, snapshot),
            Fact::SnapshotFailed { cause, code, why, .. } => {
                self.snapshot_failed(*cause, code, why);
            }
            Fact::RestoreRequested { back_to, point, .. } => self.ask_restore(*back_to, point),
            Fact::Forked { from_run, .. } => self.fork_here(from_run, event.seq, at),
            Fact::WorkspaceRestored { written, removed, .. } => {
                self.workspace_restored(*written, *removed);
            }
            Fact::TerminalOpened { .. } => {}
            Fact::ErrandEmptied { .. } => self.the_errand().state.emptied(),
            Fact::ErrandIncomplete { survivors, .. } => {
                self.the_errand().state.would_not_go(survivors);
            }
            Fact::CallAnswered { call, key, .. } => self.answer_call(*call, key),
            Fact::CallBegun { .. } | Fact::CallEnded { .. } | Fact::CallResolved { .. } => {
                self.keyed.fold(event);
            }
            Fact::NoteTaken { turn, attempt, note, what, text } => {
                self.notes.take(crate::AgentNote {
                    id: note.clone(),
                    turn: *turn,
                    attempt: *attempt,
                    kind: *what,
                    text: text.clone(),
                });
            }
            Fact::Emitted { .. } | Fact::EmissionDenied { .. } => {
                if let Some(settling) = &mut self.settling {
                    settling.emission = Emission::Settled;
                }
            }
            Fact::MessageReceived { message, from, text, .. } => self.inbox.receive(Message {
                seq: event.seq,
                id: message.clone(),
                from: from.clone(),
                text: text.clone(),
                at,
            }),
            Fact::PauseRequested { all: false, .. } => {
                self.is_paused = true;
                self.paused_seq = event.seq;
                self.wind(at);
            }
            Fact::PauseRequested { all: true, now, .. } => {
                self.is_paused_with_all = true;
                self.wind(at);
                if *now {
                    self.the_attempt().state.order_stop(StopMode::Gracefully);
                }
            }
            Fact::ResumeRequested { all: true, .. } => {
                self.is_paused_with_all = false;
                self.wind(at);
            }
            Fact::ResumeRequested { all: false, order, .. } => {
                self.resumed_seq = event.seq;
                self.resume(order.answers, at);
            }
            Fact::QuestionAsked { question, tool, text, .. } => {
                let (seq, id, answer) = (event.seq, question.clone(), None);
                let (tool, text) = (tool.clone(), text.clone());
                self.the_attempt().asked.ask(AgentQuestion { seq, id, tool, text, answer });
            }
            Fact::QuestionWithdrawn { question, .. } => self.the_attempt().asked.withdraw(question),
            Fact::MessagesGiven { messages, .. } => self.the_attempt().taken.extend(messages),
            Fact::Answered { decision, text, order, .. } => {
                self.answer(*decision, text.as_ref(), order.answers);
            }
            Fact::RemovalRequested { .. } => self.removal = Removal::Asked,
            Fact::WorkspaceRemoved { .. } => self.removal = Removal::Removed,
            Fact::WorkspaceKept { why } => self.removal = Removal::Kept { why: why.clone() },
            Fact::StopRequested { mode, tree, .. } => {
                self.stops_tree |= tree;
                self.order_stop(*mode);
            }
            Fact::LimitReached { limit } => self.limit = Some(*limit),
            Fact::LimitsRaised { limits, .. } => self.raise(limits),
            Fact::PredecessorEnded { state, .. } => self.predecessor = Some(*state),
            Fact::RunEnded { .. } => self.ended_at = Some(at),
            Fact::ChildSpawned { child, key, digest, try_number, granted } => {
                self.held.reserve(granted);
                let number = u32::try_from(self.children.len() + 1).unwrap_or(u32::MAX);
                let (key, digest) = (key.clone(), digest.clone());
                let (try_number, granted, end) = (*try_number, *granted, None);
                let known = Child { number, key, digest, try_number, granted, end };
                self.children.insert(child.clone(), known);
            }
            Fact::ChildSettled {
                child, state, reason_code, charged, spend_unknown, exit, ..
            } => {
                let known = self.children.get_mut(child).expect("the legality table asks for it");
                self.held.settle(known, *charged, !spend_unknown);
                known.end = Some(SettledChild {
                    verdict: *state,
                    reason_code: reason_code.clone(),
                    cursor: self.held.settled,
                    charged: *charged,
                    known: !spend_unknown,
                    exit: *exit,
                });
            }
            Fact::OutputMatched { watch, offset, suppressed, .. } => {
                if let Some(watch) = self.watch_mut(*watch) {
                    watch.tell(at, *offset, *suppressed);
                }
            }
            Fact::WatchDisabled { watch, .. } => {
                if let Some(watch) = self.watch_mut(*watch) {
                    watch.is_disabled = true;
                }
            }
            Fact::HeartbeatTold { output_bytes, .. } => {
                self.heartbeat = crate::Heartbeat { told_at: Some(at), bytes: *output_bytes };
            }
            Fact::HealthDegraded { health, since, why } => {
                self.condition = Condition { health: *health, since: *since, why: why.clone() };
            }
            Fact::HealthRecovered { .. } => self.condition = Condition::healthy(at),
            Fact::LimitNeared { limit: Limit::Budget, .. } => {}
            Fact::LimitNeared { limit, .. } => {
                self.neared.insert(*limit);
            }
            Fact::UsageReported { charge, .. } => self.note_usage(charge),
        }
    }

    /// Goes on where the run's directory is. What this journal knew of the turns in between is over.
    fn take_up(&mut self, turns_committed: u32, errands: u32, missing: &[String], at: Time) {
        if turns_committed > self.turns_committed {
            self.attempt = None;
            self.settling = None;
            self.previous = None;
        }
        self.turns_committed = turns_committed;
        self.errands = errands;
        self.errand = None;
        self.claim = None;
        self.is_paused = false;
        self.is_paused_with_all = false;
        // How long it was at work in between is known of its attempts alone.
        self.clock.ticking_since = None;
        self.recovered = Some(Recovered { at, missing: missing.to_vec(), awaits_look: true });
    }

    fn change_state(&mut self, to: State, why: &Reason, at: Time) {
        // What is left of a turn is only its status, and that is what the run now acts on.
        if self.state == State::Running
            && self.settling.as_ref().is_some_and(|it| it.is_complete(self))
        {
            self.settling = None;
        }
        match &to {
            State::Verifying if self.claim.is_none() => self.claim = Some(Claim::default()),
            State::Blocked { .. } if self.claim.is_some_and(|claim| claim.has_failed) => {
                self.claim = None;
            }
            State::Running => {
                self.claim = None;
                self.preparation.before_run = Done::Well;
            }
            _ => {}
        }
        // While a run rests, or is verified, others may change its workspace.
        self.snapshots.has_rested |= matches!(
            to,
            State::Waiting { .. } | State::Blocked { .. } | State::Verifying | State::Queued
        );
        if let Some(attempt) = &mut self.attempt {
            attempt.is_settled |= !attempt.state.is_live() && to != State::Running;
        }
        self.is_released = false;
        if matches!(to, State::Finishing { .. }) {
            self.snapshots.asked = None;
            // How it was doing matters no longer.
            self.condition = Condition::healthy(at);
        }
        self.state = to;
        self.why = why.clone();
        self.wind(at);
        self.since = at;
    }

    /// Has the run's clock go or stand, as from `at` on it should.
    fn wind(&mut self, at: Time) {
        self.clock.used_ms = self.clock.used_ms(at);
        let is_waiting = matches!(self.state, State::Waiting { .. });
        // Nor does time count that a run waits for its start.
        let rests = is_waiting && (self.is_to_rest() || !self.has_begun());
        let is_ticking = is_ticking(&self.state) && !rests && !self.awaits_look();
        self.clock.ticking_since = is_ticking.then_some(at);
    }

    fn awaits_look(&self) -> bool {
        self.recovered.as_ref().is_some_and(|it| it.awaits_look)
    }

    fn begin_attempt(&mut self, turn: u32, number: u32, boot: &BootId, messages: u64) {
        let last = self.attempt.take();
        let is_same_turn = last.as_ref().is_some_and(|last| last.turn == turn);
        if !is_same_turn {
            self.counters.attempts = 0;
            self.counters.free_attempts = 0;
        }
        let last = last.filter(|_| is_same_turn);
        let asked_before = last.as_ref().map(|last| last.asked.clone()).unwrap_or_default();
        let after = last.and_then(|last| last.state.end).map(|end| end.0);
        match &after {
            Some(Outcome::Stalled { .. }) => self.counters.stall_restarts += 1,
            Some(outcome) if outcome.is_by_pause() => {}
            // A limit or an order ended these, and a person let the run go on.
            Some(Outcome::Impeded { .. } | Outcome::TimedOut { .. } | Outcome::Stopped { .. }) => {}
            Some(_) => self.counters.crash_restarts += 1,
            None => {}
        }
        self.settling = None;
        self.look_anew();
        self.attempt = Some(Attempt {
            turn,
            number,
            state: StepState::new(boot),
            after,
            messages,
            decision: self.decision.take(),
            asked: AgentQuestions::default(),
            asked_before,
            taken: Vec::new(),
            reported: None,
            is_settled: false,
        });
    }

    /// The output of another attempt begins at its first byte.
    fn look_anew(&mut self) {
        self.watches.iter_mut().for_each(|watch| watch.offset = 0);
        self.heartbeat.bytes = 0;
    }

    fn end_attempt(
        &mut self,
        outcome: &Outcome,
        at: Time,
        output_bytes: u64,
        survivors: &[Survivor],
        charge: Option<&Charge>,
    ) {
        let counts_stalls = self.spec.limits.max_stall_restarts.is_some();
        match outcome {
            Outcome::NeverStarted { code, .. } if code.is_ours() => {
                self.counters.free_attempts += 1;
            }
            Outcome::Stalled { .. } if counts_stalls => {
                self.counters.stalls += 1;
            }
            // That was a person's doing.
            outcome if outcome.is_by_pause() => {}
            Outcome::Impeded { by: Impediment::Provider, until: None, .. } => {
                self.counters.impeded += 1;
            }
            Outcome::Impeded { .. } => {}
            _ => self.counters.attempts += 1,
        }
        if !matches!(outcome, Outcome::Impeded { .. }) {
            self.counters.impeded = 0;
        }
        let process = self.the_attempt().state.process;
        // When an end came that was not seen is not known, so the time up to it is not counted.
        let is_unseen = matches!(outcome, Outcome::Lost | Outcome::Interrupted { .. });
        let is_known = !is_unseen || outcome.is_by_pause();
        if let Some(process) = process.filter(|_| self.awaits_look() && is_known) {
            self.clock.used_ms += at.ms_since(process.at);
        }
        if process.is_some() {
            let reported = self.the_attempt().reported.take();
            self.spend.replace(reported.as_ref(), charge, self.spec.unreported());
        }
        self.the_attempt().state.ended(outcome, at, output_bytes, survivors);
    }

    /// A live attempt has said what it has used up so far.
    fn note_usage(&mut self, charge: &Charge) {
        let before = self.the_attempt().reported.replace(*charge);
        self.spend.exchange(before.as_ref(), charge);
    }

    fn commit(&mut self, committed: &Fact) {
        let Fact::TurnCommitted {
            turn,
            status,
            summary,
            next_task,
            tool_calls,
            refused,
            wait,
            workspace,
            progress,
            ..
        } = committed
        else {
            unreachable!("asked for a TurnCommitted")
        };
        let now = Previous::new(*turn, *status, summary, next_task.as_ref(), tool_calls, refused);
        let is_progress = progress.unwrap_or_else(|| {
            limits::is_progress(self, &now, workspace.as_deref(), wait.is_some())
        });
        self.snapshots.judged = Some(crate::snapshot::Judged {
            before: self.counters.no_progress,
            asks_anew: limits::asks_anew(self, &now, wait.is_some()),
        });
        self.counters.no_progress = if is_progress { 0 } else { self.counters.no_progress + 1 };
        if *status != TurnStatus::Done {
            self.counters.failed_claims = 0;
        }
        self.counters.stalls = 0;
        self.turns_committed += 1;
        self.snapshots.point = None;
        let id = self.id.clone();
        self.notes.turn_is_over(*turn);
        self.keyed.turn_is_over(|turn| format!("{id}/t{turn}/"), *turn);
        let attempt = self.the_attempt();
        attempt.is_settled = true;
        let (given, taken) = (attempt.messages, std::mem::take(&mut attempt.taken));
        self.inbox.take(given, &taken);
        if next_task.is_some() {
            self.task.clone_from(next_task);
        }
        self.digest.clone_from(workspace);
        // A turn that cannot go on has nothing done for it.
        let gives_up = matches!(status, TurnStatus::Blocked | TurnStatus::Failed);
        let calls = if gives_up { Vec::new() } else { tool_calls.clone() };
        self.previous = Some(Previous {
            results: if gives_up { Vec::new() } else { now.results.clone() },
            ..now
        });
        self.settling = Some(Settling {
            turn: *turn,
            status: *status,
            calls,
            wait: *wait,
            after_turn: if self.spec.hooks.after_turn.is_some() {
                Done::NotYet
            } else {
                Done::Well
            },
            emission: Emission::Undecided,
            needs_person: false,
        });
    }

    fn the_attempt(&mut self) -> &mut Attempt {
        self.attempt
            .as_mut()
            .expect("the legality table asks for an attempt before anything happens to it")
    }

    pub(super) fn the_errand(&mut self) -> &mut Errand {
        self.errand
            .as_mut()
            .expect("the legality table asks for an errand before anything happens to it")
    }
}
