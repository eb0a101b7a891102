//! What follows from the state of a run by itself: the rules of the loop.
//!
//! Asked after every piece of news, one step at a time, until nothing more follows. What each state comes
//! to has its own file; this one says which of them is asked.

use crate::handle::{Draft, recovered};
use crate::{
    Context, Fact, Limit, ReasonCode, Run, State, Time, finish, limits, prepare, reason, rest,
    rewind, settle, verify,
};

/// The longest chain of steps that one piece of news can set off, with room to spare: a turn has at most 64
/// calls, each of which can be answered at once.
const STEPS: usize = 256;

/// What happens next, all at once.
pub(crate) type Facts = Vec<(Time, Fact)>;

pub(crate) fn advance(draft: &mut Draft, context: &Context) {
    for _ in 0..STEPS {
        let Some(facts) = next(draft.run(), context) else { return };
        for (at, fact) in facts {
            draft.push(at, fact);
        }
    }
    unreachable!("no news sets off {STEPS} steps");
}

fn next(run: &Run, context: &Context) -> Option<Facts> {
    match by_itself(run, context) {
        Some(facts) if recovered::is_for_person(run, &facts) => Some(recovered::rest(run, context)),
        // Its turn to start may be long in coming, and it would not start then.
        None if run.state == State::Queued && recovered::awaits_look(run) => {
            Some(recovered::rest(run, context))
        }
        facts => facts,
    }
}

fn by_itself(run: &Run, context: &Context) -> Option<Facts> {
    match &run.state {
        State::Ended { .. } if run.snapshots.asked.is_some() => rewind::next(run, context),
        State::Ended { .. } => finish::remove(run, context),
        State::Finishing { .. } => finish::clean_up(run, context),
        _ if limits::is_time_over(run, context.now) => {
            Some(vec![(context.now, Fact::LimitReached { limit: Limit::RunTimeout })])
        }
        _ if limits::over_mid_turn(run, context).is_some() => limits::over_mid_turn(run, context)
            .map(|limit| vec![(context.now, Fact::LimitReached { limit })]),
        _ if run.stop.is_some() || run.limit.is_some() => finish::when_gone(run, context),
        State::Blocked { .. } | State::Waiting { .. } if run.snapshots.asked.is_some() => {
            rewind::next(run, context)
        }
        State::Blocked { .. } if run.is_released => {
            rest::go_on(run, context, reason::of("a person lets it go on", ReasonCode::Released))
        }
        State::Blocked { .. } => None,
        State::Queued => {
            rest::go_on(run, context, reason::of("a slot is free", ReasonCode::SlotFree))
        }
        State::Waiting { .. } => rest::wait_on(run, context),
        State::Preparing => prepare::next(run, context),
        State::Running => settle::next(run, context),
        State::Verifying => verify::next(run, context),
    }
}
