//! Why a state changes, and the events that say so.

use serde::{Deserialize, Serialize};

use crate::advance::Facts;
use crate::{
    BlockReason, Context, Exit, Fact, Impediment, Limit, Outcome, Purpose, ReasonCode, Run,
    StateName, Time, Verdict, WaitCause, Word,
};

/// Why a state changed: a sentence for people, a word for scripts, what it rests on, and who did it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub reason: String,
    pub reason_code: Word<ReasonCode>,
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

pub(crate) fn of(text: &str, code: ReasonCode) -> Reason {
    Reason {
        reason: text.to_owned(),
        reason_code: code.into(),
        evidence: Vec::new(),
        actor: Actor::Engine,
    }
}

/// Why a run rests until a person acts.
pub(crate) fn block(text: &str, reason: BlockReason) -> Reason {
    of(text, reason.into())
}

pub(crate) fn to_state(run: &Run, to: StateName, why: Reason) -> Fact {
    let from = run.state.name();
    Fact::StateChanged { from, to, why, cause: None, until: None, verdict: None }
}

pub(crate) fn waiting(run: &Run, cause: WaitCause, until: Option<Time>, why: Reason) -> Fact {
    let (from, to) = (run.state.name(), StateName::Waiting);
    Fact::StateChanged { from, to, why, cause: Some(cause.written()), until, verdict: None }
}

pub(crate) fn finishing(run: &Run, at: Time, verdict: Verdict, mut why: Reason) -> (Time, Fact) {
    if why.evidence.is_empty() {
        why.evidence = evidence(run);
    }
    let (from, to) = (run.state.name(), StateName::Finishing);
    (at, Fact::StateChanged { from, to, why, cause: None, until: None, verdict: Some(verdict) })
}

pub(crate) fn blocked(run: &Run, context: &Context, mut why: Reason) -> Facts {
    if why.evidence.is_empty() {
        why.evidence = evidence(run);
    }
    vec![(context.now, to_state(run, StateName::Blocked, why))]
}

/// In characters: enough to know it by.
const LONGEST_COMMAND: usize = 200;

/// The intent to run a command of the host.
pub(crate) fn errand(run: &Run, context: &Context, purpose: Purpose) -> Facts {
    let turn = run.attempt.as_ref().map_or(0, |last| last.turn);
    let errand = run.errands + 1;
    let boot = context.boot.clone();
    let command = purpose.command(&run.spec).chars().take(LONGEST_COMMAND).collect();
    vec![(context.now, Fact::ErrandStarted { errand, purpose, command, turn, boot })]
}

/// Where it can be looked up.
fn evidence(run: &Run) -> Vec<String> {
    run.attempt.iter().map(|last| format!("attempt t{}.a{}", last.turn, last.number)).collect()
}

pub(crate) fn errand_evidence(run: &Run) -> Vec<String> {
    run.errand
        .iter()
        .map(|last| format!("errand e{} ({})", last.number, last.purpose.label()))
        .collect()
}

/// What a run that is not tried again ends as.
pub(crate) fn verdict_of(outcome: &Outcome) -> (Verdict, Reason) {
    match outcome {
        Outcome::Exited { code } => {
            // By the convention of all shells; the command may be one of a script.
            let meaning = match code {
                126 => ": a command could not be executed",
                127 => ": a command was not found",
                _ => "",
            };
            (Verdict::Failed, of(&format!("exit code {code}{meaning}"), ReasonCode::ExitCode))
        }
        Outcome::Signaled { signal } => {
            (Verdict::Failed, of(&format!("killed by signal {signal}"), ReasonCode::Signaled))
        }
        Outcome::NeverStarted { why, .. } => {
            (Verdict::Failed, of(&format!("never started: {why}"), ReasonCode::NeverStarted))
        }
        Outcome::BadResponse { why, .. } => {
            (Verdict::Failed, of(&format!("bad response: {why}"), ReasonCode::BadResponse))
        }
        Outcome::Impeded { by, why, .. } => {
            let code = match by {
                Impediment::Provider => ReasonCode::RateLimit,
                Impediment::Login => ReasonCode::AuthExpired,
                Impediment::Approval => ReasonCode::NeedsApproval,
                Impediment::Question => ReasonCode::NeedsInput,
            };
            (Verdict::Failed, of(why, code))
        }
        Outcome::TimedOut { exit } => {
            (Verdict::Exhausted, limit("the turn's time is over", Limit::TurnTimeout, *exit))
        }
        Outcome::Stalled { exit } => {
            (Verdict::Exhausted, limit("silent for too long", Limit::StallWindow, *exit))
        }
        Outcome::Stopped { .. } => {
            (Verdict::Stopped, of("stopped on request", ReasonCode::Stopped))
        }
        Outcome::Interrupted { by } => {
            (Verdict::Failed, of(&format!("interrupted by a {by}"), ReasonCode::Interrupted))
        }
        Outcome::Lost => (Verdict::Failed, of("its end was not observed", ReasonCode::Lost)),
    }
}

fn limit(text: &str, limit: Limit, exit: Option<Exit>) -> Reason {
    let how = match exit {
        Some(Exit::Code(code)) => format!(" (it then exited with code {code})"),
        Some(Exit::Signal(signal)) => format!(" (ended by signal {signal})"),
        None => String::new(),
    };
    of(&format!("{text}{how}"), limit.code())
}
