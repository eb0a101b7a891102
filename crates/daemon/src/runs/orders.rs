//! Orders to a run: answer, resume, pause, stop.
//!
//! Each has an id and counts once. An order that was given is in the journal; an order that was not taken is
//! refused with the reason, after the journal was asked and not before.

use std::sync::Arc;

use outlast_agents::must_answer;
use outlast_engine::{Asked, By, Decision, Input, Order, Run, RunId, Step, StopMode, Taken, Verb};
use outlast_wire::api::RunView;
use outlast_wire::codes::Code;
use outlast_wire::words::TroubleCode;
use serde::Serialize;

use super::callers::{Caller, Right};
use super::find::{by_name, resolve, snapshot_of, view_of};
use super::tell::{not_taken, refuse_ended, refuse_full, tell};
use crate::recovery;
use crate::refusal::{Answer, Refusal};
use crate::steps::GRACE_MS;
use crate::supervisor::Supervisor;

/// What is true of a stop that found no room in the journal.
pub(crate) fn not_written(mut error: Refusal) -> Refusal {
    if error.code == Code::DiskFull {
        let hint =
            "its processes are ended even so, and the order is written down once there is space";
        error.hint = Some(hint.to_owned());
    }
    error
}

/// The run that is to be stopped. One that the journal has forgotten is rebuilt first, and then stopped as any other.
pub(crate) async fn to_stop(
    supervisor: &Arc<Supervisor>,
    caller: &Caller,
    run: &str,
    mode: StopMode,
) -> Answer<RunId> {
    let forgotten = supervisor.strays.resolve(run);
    let is_stray = forgotten.is_some();
    let id = match forgotten {
        Some(stray) => stray,
        None => resolve(supervisor, run).await?,
    };
    caller.clone().may(supervisor, Right::Steer, &id).await?;
    let trouble = supervisor.quarantined().remove(&id);
    let grace_ms = match mode {
        StopMode::Gracefully => GRACE_MS,
        StopMode::Now => 0,
    };
    match trouble {
        Some(trouble) if trouble.code == TroubleCode::Unwritable => {
            supervisor.end_alive(&id, grace_ms, |_| true).await?;
            let message = format!(
                "nothing of run {id} is alive, and its journal takes no more: {}",
                trouble.message
            );
            let refusal = Refusal::new(Code::UnwritableRun, message);
            return Err(refusal.hint(format!("outlast rm {id}")));
        }
        Some(trouble) if trouble.code != recovery::BEHIND => {
            let message = format!("run {id} cannot be read: {}", trouble.message);
            return Err(Refusal::new(Code::UnreadableRun, message));
        }
        None if !is_stray => return Ok(id),
        Some(_) | None => {}
    }
    // What they were for only the lost journal knew.
    supervisor.end_alive(&id, grace_ms, |step| matches!(step, Step::Errand { .. })).await?;
    supervisor.recover(&id).await?;
    Ok(id)
}

/// An order as its client gave it.
pub(crate) struct Given {
    pub(crate) id: String,
    pub(crate) seq: Option<u64>,
    pub(crate) verb: Verb,
    /// A digest of what it says.
    pub(crate) said: String,
}

/// A digest of what an order says, its id aside: the same id with another digest is another order. Keyed, since an answer
/// may hold a secret, which no journal has.
pub(crate) fn said(supervisor: &Supervisor, body: &impl Serialize) -> Answer<String> {
    let json = serde_json::to_string(body).expect("plain data");
    Ok(supervisor.ground.tokens.digest(&json)?)
}

impl Given {
    /// Has the run take the order, unless it has taken it before. `refuse` says why a run in this state does not
    /// take it: asked before, to save the way, and again if the journal does not have it. A refusal names the run as
    /// its user does, and what lets a run go on that a limit ended.
    pub(crate) async fn give(
        self,
        supervisor: &Arc<Supervisor>,
        caller: Caller,
        run: &RunId,
        refuse: impl Fn(&Run, Option<u64>) -> Answer<()>,
        input: impl FnOnce(Order) -> Input,
    ) -> Answer<RunView> {
        let given = self.given(supervisor, caller, run, refuse, input).await;
        by_name(supervisor, run, given).await
    }

    async fn given(
        self,
        supervisor: &Arc<Supervisor>,
        caller: Caller,
        run: &RunId,
        refuse: impl Fn(&Run, Option<u64>) -> Answer<()>,
        input: impl FnOnce(Order) -> Input,
    ) -> Answer<RunView> {
        let before = snapshot_of(supervisor, run).await?.run;
        if !self.is_taken(&before)? {
            // Without a number the order is for what is open now, and for nothing that comes after.
            let open = match self.verb {
                Verb::Answer(_) => before.asks().map(|it| it.seq),
                Verb::Resume => before.releases(None),
                Verb::Pause
                | Verb::Stop(_)
                | Verb::Raise
                | Verb::Restore
                | Verb::Resolve { .. } => None,
            };
            // Nothing that is still to come can have been seen.
            let seq = match self.verb {
                Verb::Resume => self.seq.map(|seen| seen.min(before.seq())).or(open),
                Verb::Answer(_)
                | Verb::Pause
                | Verb::Stop(_)
                | Verb::Raise
                | Verb::Restore
                | Verb::Resolve { .. } => self.seq.or(open),
            };
            refuse(&before, seq)?;
            let right = match self.verb {
                Verb::Answer(_) | Verb::Resolve { .. } => Right::Answer,
                Verb::Resume if before.state.is_blocked() => Right::Answer,
                Verb::Resume | Verb::Pause | Verb::Stop(_) => Right::Steer,
                Verb::Raise | Verb::Restore => Right::Raise,
            };
            let by = caller.may(supervisor, right, run).await?;
            if matches!(self.verb, Verb::Answer(_) | Verb::Resume) {
                // A person's word is no resume after a restart.
                supervisor.restarts.release(run);
            }
            let order = self.order(by, seq);
            let after = tell(supervisor, run, input(order)).await?;
            if !self.is_taken(&after)? {
                refuse(&after, seq)?;
                return Err(not_taken(run));
            }
        }
        view_of(supervisor, run).await
    }

    pub(super) fn order(&self, by: Option<By>, answers: Option<u64>) -> Order {
        Order { id: Some(self.id.clone()), by, answers, said: Some(self.said.clone()) }
    }

    /// True if the journal has this order. The same id with another verb or other words is another order, and refused.
    pub(super) fn is_taken(&self, run: &Run) -> Answer<bool> {
        match run.orders.get(&self.id) {
            Some(taken) if taken.is(self.verb, &self.said) => Ok(true),
            Some(taken) => {
                let done = format!("{} (event {})", taken.verb.done(), taken.seq);
                Err(id_conflict(run, &self.id, &done))
            }
            None if run.inbox.has_had(&self.id) => {
                Err(id_conflict(run, &self.id, "sent a message"))
            }
            None => Ok(false),
        }
    }
}

pub(crate) fn refuse_answer(run: &Run, decision: Decision, seq: Option<u64>) -> Answer<()> {
    let Some(open) = run.asks().filter(|open| seq.is_none_or(|seq| seq == open.seq)) else {
        return Err(not_open(run, seq));
    };
    match (open.kind, decision) {
        (Asked::Approval, Decision::Reply) => Err(needs_decision(&run.id)),
        (Asked::Approval, Decision::Approve | Decision::Deny) => Ok(()),
        // An agent that waits is told at once; no inbox has to have room for it.
        (Asked::Permission | Asked::Question, _) if run.open_question().is_some() => Ok(()),
        (Asked::Permission | Asked::Question | Asked::Block, _) => refuse_full(run),
    }
}

/// Why there is no such question now: it was answered, another is asked, or none.
fn not_open(run: &Run, seq: Option<u64>) -> Refusal {
    let asked = seq.or((run.state.is_blocked()).then_some(run.state_seq));
    if let Some((seq, taken)) = asked.and_then(|seq| Some((seq, run.orders.answer_to(seq)?))) {
        return already_answered(run, seq, taken);
    }
    if let Err(ended) = refuse_ended(run) {
        return ended;
    }
    match (run.asks(), seq) {
        (Some(open), Some(seq)) => {
            let message =
                format!("run {} asks something else now: event {}, not {seq}", run.id, open.seq);
            Refusal::new(Code::StaleOrder, message).hint(format!("outlast show {}", run.id))
        }
        _ => {
            let state = run.state.name().word();
            let message = format!("run {} is {state}, not blocked, and asks nothing", run.id);
            // A command that runs once reads no message.
            let hint = match reads_no_message(run) {
                true => format!("outlast show {}", run.id),
                false => {
                    format!("leave a message for its next turn:\noutlast send {} 'TEXT'", run.id)
                }
            };
            Refusal::new(Code::NotBlocked, message).hint(hint)
        }
    }
}

pub(crate) fn refuse_resume(run: &Run, seq: Option<u64>) -> Answer<()> {
    if !run.has_ended() && run.releases(seq).is_some() {
        return Ok(());
    }
    refuse_ended(run)?;
    if let (Some(since), Some(seq)) = (run.releases(None), seq) {
        let message =
            format!("run {} was paused or blocked since, by event {since}, after {seq}", run.id);
        let hint = format!("outlast show {}", run.id);
        return Err(Refusal::new(Code::StaleOrder, message).hint(hint));
    }
    let is_decided = |kind: Asked| matches!(kind, Asked::Approval | Asked::Permission);
    if run.state.is_blocked() && run.asks().is_some_and(|open| is_decided(open.kind)) {
        return Err(needs_decision(&run.id));
    }
    if run.is_paused_with_all && !run.state.is_blocked() {
        let message = format!("run {} is paused with every other run", run.id);
        let hint = "outlast resume --all";
        return Err(Refusal::new(Code::Held, message).hint(hint));
    }
    if run.state.is_blocked()
        && let Some(taken) = run.orders.answer_to(run.state_seq)
    {
        return Err(already_answered(run, run.state_seq, taken));
    }
    let state = run.state.name().word();
    let message = format!("run {} is {state}, neither paused nor blocked", run.id);
    let hint = match seq.and_then(|seq| run.orders.release_after(seq)) {
        Some(taken) => format!("it was {}{} (event {})", taken.verb.done(), by(taken), taken.seq),
        None => "there is nothing to resume".to_owned(),
    };
    Err(Refusal::new(Code::NotPaused, message).hint(hint))
}

pub(crate) fn refuse_pause(run: &Run, seq: Option<u64>) -> Answer<()> {
    refuse_ended(run)?;
    if is_at_its_only_turn(run) {
        let id = &run.id;
        let message =
            format!("{id} is a command that runs once, and has no next turn to pause before");
        let hint = format!("outlast stop {id}");
        return Err(Refusal::new(Code::NoNextTurn, message).hint(hint));
    }
    if run.is_being_ended() {
        let message = format!("run {} is being ended and cannot rest", run.id);
        let hint = format!("outlast show {}", run.id);
        return Err(Refusal::new(Code::IsEnding, message).hint(hint));
    }
    if run.may_pause(seq) {
        return Ok(());
    }
    let message = format!("run {} was resumed after what this order has seen", run.id);
    let hint = format!("outlast show {}", run.id);
    Err(Refusal::new(Code::StaleOrder, message).hint(hint))
}

/// True of a plain command at the last attempt that it has: nothing follows that could rest, or take a message.
pub(crate) fn is_at_its_only_turn(run: &Run) -> bool {
    is_at_its_last_attempt(run) && run.live().is_some() && !run.is_being_ended()
}

/// True of a plain command that no message reaches: it runs and has no other attempt, or has not been started yet.
pub(crate) fn reads_no_message(run: &Run) -> bool {
    let is_to_start = run.attempt.is_none() && !run.has_ended();
    is_at_its_only_turn(run) || (is_to_start && is_at_its_last_attempt(run))
}

fn is_at_its_last_attempt(run: &Run) -> bool {
    let spec = &run.spec;
    let is_command = spec.workflow.is_none() && !must_answer(spec);
    is_command && run.counters.attempts + 1 >= spec.retry.max_attempts
}

fn already_answered(run: &Run, seq: u64, taken: &Taken) -> Refusal {
    let done = taken.verb.done();
    let message = format!(
        "the question of run {} (event {seq}) has been answered: {done}{} (event {})",
        run.id,
        by(taken),
        taken.seq
    );
    Refusal::new(Code::AlreadyAnswered, message).hint(format!("outlast show {}", run.id))
}

/// Who gave an order, as it is added to what was done.
pub(super) fn by(taken: &Taken) -> String {
    match &taken.order.by {
        Some(By::User { uid, via: None }) => format!(" by user {uid}"),
        Some(By::User { uid, via: Some(via) }) => format!(" by user {uid} ({via})"),
        Some(By::Run { run }) => format!(" by run {run}"),
        Some(By::Daemon) => " by a command of the daemon".to_owned(),
        None => String::new(),
    }
}

fn id_conflict(run: &Run, id: &str, done: &str) -> Refusal {
    let message = format!("the id {id:?} is another order's, by which run {} was {done}", run.id);
    Refusal::new(Code::IdConflict, message).hint("choose a new id for each order")
}

fn needs_decision(id: &RunId) -> Refusal {
    Refusal::new(Code::NeedsDecision, format!("run {id} waits for a yes or a no"))
        .hint(format!("outlast answer {id} --approve\noutlast answer {id} --deny"))
}
