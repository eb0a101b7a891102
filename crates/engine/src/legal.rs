//! The legality table: which event may follow in which state.
//!
//! One place, asked by every append, every replay and every test. It decides nothing; it refuses.

use crate::{Attempt, Fact, Run, State, StateName};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    #[error("the journal is empty")]
    Empty,
    #[error("the journal begins with {kind}, not with RunCreated")]
    NotCreated { kind: &'static str },
    #[error("event {found} where {expected} was next")]
    Seq { expected: u64, found: u64 },
    #[error("{kind} is illegal while the run is {state}: {why}", state = state.word())]
    Fact { kind: &'static str, state: StateName, why: &'static str },
}

/// Says why `fact` may not happen to `run` now, if it may not.
pub(crate) fn check(run: &Run, fact: &Fact) -> Result<(), Illegal> {
    match objection(run, fact) {
        None => Ok(()),
        Some(why) => Err(Illegal::Fact { kind: fact.kind(), state: run.state.name(), why }),
    }
}

fn objection(run: &Run, fact: &Fact) -> Option<&'static str> {
    match fact {
        Fact::RunCreated { .. } => Some("a run is created once"),
        Fact::StateChanged { from, to, cause, verdict, .. } => first_of([
            unless(*from == run.state.name(), "it leaves a state the run is not in"),
            unless(may_follow(*from, *to), "there is no such transition"),
            unless(
                (*to == StateName::Waiting) == cause.is_some(),
                "waiting has a cause, and nothing else has",
            ),
            unless(
                (*to == StateName::Finishing) == verdict.is_some(),
                "finishing has a verdict, and nothing else has",
            ),
            unless(is_promised_end(run, *to), "a run ends as it was finishing to"),
            unless(!is_end_or_rest(*to) || run.live().is_none(), "an attempt is alive"),
        ]),
        Fact::TurnStarted { turn, attempt, .. } => first_of([
            unless(run.state == State::Running, "turns start while running"),
            unless(run.live().is_none(), "an attempt is alive"),
            unless(!run.has_survivors(), "the last attempt's tree is not empty"),
            unless(run.stop.is_none() && run.limit.is_none(), "the run is being ended"),
            unless(is_next(run, *turn, *attempt), "turns and attempts are numbered without gaps"),
        ]),
        Fact::AttemptStarted { turn, attempt, .. } => first_of([
            not_live(run, *turn, *attempt),
            unless(run.live().is_none_or(|live| live.process.is_none()), "an attempt starts once"),
        ]),
        Fact::AttemptAdopted { turn, attempt, .. } => not_current(run, *turn, *attempt),
        Fact::AttemptOrphaned { turn, attempt } => first_of([
            not_live(run, *turn, *attempt),
            unless(
                run.live().is_none_or(|live| live.process.is_some()),
                "only what has started can be orphaned",
            ),
            unless(run.live().is_none_or(|live| !live.is_orphaned), "it is orphaned already"),
        ]),
        Fact::AttemptEnded { turn, attempt, .. } => not_live(run, *turn, *attempt),
        Fact::TreeEmptied { turn, attempt } => first_of([
            not_current(run, *turn, *attempt),
            unless(run.has_survivors(), "there was nobody left"),
        ]),
        Fact::StopIncomplete { turn, attempt, survivors } => first_of([
            not_current(run, *turn, *attempt),
            unless(!survivors.is_empty(), "an incomplete stop names who is left"),
        ]),
        Fact::TurnCommitted { turn, attempt, .. } => first_of([
            not_current(run, *turn, *attempt),
            unless(run.live().is_none(), "the attempt is still alive"),
            unless(run.turns_committed + 1 == *turn, "a turn commits once, in order"),
            unless(run.state == State::Running, "turns commit while running"),
        ]),
        Fact::StopRequested { mode, .. } => first_of([
            unless(run.is_open(), "there is nothing left to stop"),
            unless(run.stop.is_none_or(|asked| asked <= *mode), "a stop is never taken back"),
        ]),
        Fact::LimitReached { .. } => first_of([
            unless(!run.has_ended(), "the run has ended"),
            unless(run.limit.is_none(), "a limit is reached once"),
        ]),
        Fact::RunEnded { state, .. } => first_of([
            unless(run.state == State::Ended { verdict: *state }, "it ends as the state it is in"),
            unless(run.ended_at.is_none(), "a run ends once"),
        ]),
    }
}

/// The transitions of the state diagram; a phase in which there is nothing to do is passed over.
fn may_follow(from: StateName, to: StateName) -> bool {
    use StateName::{Blocked, Finishing, Preparing, Queued, Running, Verifying, Waiting};
    match from {
        Queued => matches!(to, Preparing | Running | Waiting | Finishing),
        Preparing => matches!(to, Running | Waiting | Blocked | Finishing),
        Running => matches!(to, Waiting | Verifying | Blocked | Finishing),
        Waiting => matches!(to, Running | Preparing | Blocked | Finishing),
        Verifying => matches!(to, Running | Waiting | Blocked | Finishing),
        Blocked => matches!(to, Running | Preparing | Waiting | Finishing),
        Finishing => to.verdict().is_some(),
        StateName::Completed | StateName::Failed | StateName::Stopped | StateName::Exhausted => {
            false
        }
    }
}

fn is_promised_end(run: &Run, to: StateName) -> bool {
    match (&run.state, to.verdict()) {
        (State::Finishing { verdict, .. }, Some(end)) => *verdict == end,
        (_, Some(_)) => false,
        (_, None) => true,
    }
}

fn is_end_or_rest(to: StateName) -> bool {
    match to {
        StateName::Waiting | StateName::Blocked | StateName::Finishing | StateName::Queued => true,
        StateName::Completed | StateName::Failed | StateName::Stopped | StateName::Exhausted => {
            true
        }
        StateName::Preparing | StateName::Running | StateName::Verifying => false,
    }
}

/// The next try at the same turn while that is uncommitted, or else the first try at the next.
fn is_next(run: &Run, turn: u32, attempt: u32) -> bool {
    match &run.attempt {
        Some(last) if last.turn > run.turns_committed => {
            turn == last.turn && attempt == last.number + 1
        }
        Some(_) | None => turn == run.turns_committed + 1 && attempt == 1,
    }
}

fn not_live(run: &Run, turn: u32, attempt: u32) -> Option<&'static str> {
    let is_live = run.live().is_some_and(|live| live.is(turn, attempt));
    unless(is_live, "that attempt is not alive")
}

fn not_current(run: &Run, turn: u32, number: u32) -> Option<&'static str> {
    let is_current = run.attempt.as_ref().is_some_and(|current: &Attempt| current.is(turn, number));
    unless(is_current, "that is not the current attempt")
}

fn unless(condition: bool, objection: &'static str) -> Option<&'static str> {
    (!condition).then_some(objection)
}

fn first_of<const N: usize>(objections: [Option<&'static str>; N]) -> Option<&'static str> {
    objections.into_iter().flatten().next()
}
