//! What follows from the state of a run by itself: the rules of the loop.
//!
//! Asked after every piece of news, one step at a time, until nothing more follows.

use crate::handle::Draft;
use crate::{
    Actor, Exit, Fact, Limit, Moment, Outcome, Reason, Run, State, StateName, Time, TurnOutcome,
    TurnStatus, Verdict, WaitCause, limits, retry,
};

/// The longest chain of steps that one piece of news can set off, with room to spare.
const STEPS: usize = 8;

type Step = Vec<(Time, Fact)>;

pub(crate) fn advance(draft: &mut Draft, moment: &Moment) {
    for _ in 0..STEPS {
        let Some(step) = next_step(draft.run(), moment) else { return };
        for (at, fact) in step {
            draft.push(at, fact);
        }
    }
    unreachable!("no news sets off {STEPS} steps");
}

fn next_step(run: &Run, moment: &Moment) -> Option<Step> {
    match &run.state {
        State::Finishing { .. } | State::Ended { .. } => None,
        _ if limits::is_reached(run, moment.now) => {
            Some(vec![(moment.now, Fact::LimitReached { limit: Limit::RunTimeout })])
        }
        _ if run.stop.is_some() || run.limit.is_some() => finish_when_gone(run, moment),
        State::Queued => Some(start_turn(run, moment, reason("a slot is free", "slot_free"))),
        State::Running => settle(run, moment),
        State::Waiting { cause: WaitCause::Backoff, since, until } => {
            let is_due = until.is_none_or(|until| moment.now >= until) || moment.now < *since;
            let is_free = is_due && !run.has_survivors();
            is_free.then(|| start_turn(run, moment, reason("the delay is over", "backoff_over")))
        }
        State::Preparing | State::Verifying | State::Blocked => None,
    }
}

/// A run that is to be ended is finished once nothing of it is alive.
fn finish_when_gone(run: &Run, moment: &Moment) -> Option<Step> {
    if run.live().is_some() || run.has_survivors() {
        return None;
    }
    let (verdict, mut why) = match (run.stop, run.limit) {
        (Some(_), _) => (Verdict::Stopped, reason("stopped on request", "stopped")),
        (None, Some(limit)) => (Verdict::Exhausted, reason("the run's time is over", limit.word())),
        (None, None) => unreachable!("asked only when one of them is set"),
    };
    if run.stop.is_some() {
        why.actor = Actor::User;
    }
    // An attempt that was ended is the end of the run; one that failed long ago is not.
    let ended_at = run.attempt.as_ref().and_then(|attempt| attempt.end.as_ref()).map(|(_, at)| *at);
    let at = ended_at.filter(|_| run.state == State::Running).unwrap_or(moment.now);
    Some(vec![finish(run, at, verdict, why)])
}

/// What the end of an attempt means for its run.
fn settle(run: &Run, moment: &Moment) -> Option<Step> {
    let attempt = run.attempt.as_ref().expect("a running run has started a turn");
    let (outcome, at) = attempt.end.as_ref()?;
    if let Outcome::Exited { code: 0 } = outcome {
        let committed = Fact::TurnCommitted {
            turn: attempt.turn,
            attempt: attempt.number,
            status: TurnStatus::Done,
            outcome: TurnOutcome::MeaningfulCompletion,
        };
        return Some(vec![
            (*at, committed),
            finish(run, *at, Verdict::Completed, reason("done", "done")),
        ]);
    }
    let (verdict, why) = verdict_of(outcome);
    match retry::delay_ms(run, outcome) {
        Some(delay_ms) => Some(vec![(*at, wait(run, moment.now.plus_ms(delay_ms), why))]),
        None => Some(vec![finish(run, *at, verdict, why)]),
    }
}

/// What a run that is not tried again ends as.
fn verdict_of(outcome: &Outcome) -> (Verdict, Reason) {
    match outcome {
        Outcome::Exited { code } => {
            (Verdict::Failed, reason(&format!("exit code {code}"), "exit_code"))
        }
        Outcome::Signaled { signal } => {
            (Verdict::Failed, reason(&format!("killed by signal {signal}"), "signaled"))
        }
        Outcome::NeverStarted { why, .. } => {
            (Verdict::Failed, reason(&format!("never started: {why}"), "never_started"))
        }
        Outcome::TimedOut { exit } => {
            (Verdict::Exhausted, limit_reason("the turn's time is over", Limit::TurnTimeout, *exit))
        }
        Outcome::Stalled { exit } => {
            (Verdict::Exhausted, limit_reason("silent for too long", Limit::StallWindow, *exit))
        }
        Outcome::Stopped { .. } => (Verdict::Stopped, reason("stopped on request", "stopped")),
        Outcome::Interrupted { by } => {
            (Verdict::Failed, reason(&format!("interrupted by a {by}"), "interrupted"))
        }
        Outcome::Lost => (Verdict::Failed, reason("nobody saw how it ended", "lost")),
    }
}

fn start_turn(run: &Run, moment: &Moment, why: Reason) -> Step {
    let (turn, attempt) = match &run.attempt {
        Some(last) if last.turn > run.turns_committed => (last.turn, last.number + 1),
        Some(_) | None => (run.turns_committed + 1, 1),
    };
    let running = StateName::Running;
    let changed = Fact::StateChanged {
        from: run.state.name(),
        to: running,
        why,
        cause: None,
        until: None,
        verdict: None,
    };
    vec![
        (moment.now, changed),
        (moment.now, Fact::TurnStarted { turn, attempt, boot: moment.boot.clone() }),
    ]
}

fn wait(run: &Run, until: Time, why: Reason) -> Fact {
    Fact::StateChanged {
        from: run.state.name(),
        to: StateName::Waiting,
        why,
        cause: Some(WaitCause::Backoff),
        until: Some(until),
        verdict: None,
    }
}

fn finish(run: &Run, at: Time, verdict: Verdict, mut why: Reason) -> (Time, Fact) {
    why.evidence = evidence(run);
    let from = run.state.name();
    let to = StateName::Finishing;
    (at, Fact::StateChanged { from, to, why, cause: None, until: None, verdict: Some(verdict) })
}

/// Where the verdict can be looked up.
fn evidence(run: &Run) -> Vec<String> {
    run.attempt.iter().map(|last| format!("attempt t{}.a{}", last.turn, last.number)).collect()
}

fn limit_reason(text: &str, limit: Limit, exit: Option<Exit>) -> Reason {
    let how = match exit {
        Some(Exit::Code(code)) => format!(" (it then exited with code {code})"),
        Some(Exit::Signal(signal)) => format!(" (ended by signal {signal})"),
        None => String::new(),
    };
    reason(&format!("{text}{how}"), limit.word())
}

fn reason(text: &str, code: &str) -> Reason {
    Reason {
        reason: text.to_owned(),
        reason_code: code.to_owned(),
        evidence: Vec::new(),
        actor: Actor::Engine,
    }
}
