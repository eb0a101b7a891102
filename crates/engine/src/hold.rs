//! The word for all: everything rests while it holds, and goes on when it is taken back.
//!
//! Asked with every piece of news, so whoever was not told when it was said follows it with the next.

use crate::handle::Draft;
use crate::{Actor, Fact, Hold, Moment, OnInterrupt, Order, Run, State};

pub(crate) fn follow(draft: &mut Draft, moment: &Moment) {
    let (actor, all, order) = (Actor::User, true, word(draft.run(), moment));
    match moment.hold {
        Hold::On if !draft.run().is_held && can_rest(draft.run()) => {
            draft.push(moment.now, Fact::PauseRequested { actor, all, now: false, order });
        }
        Hold::Off if draft.run().is_held && !draft.run().has_ended() => {
            draft.push(moment.now, Fact::ResumeRequested { actor, all, order });
        }
        Hold::On | Hold::Off => {}
    }
}

/// Ends the attempt that is alive, to be made again when everything goes on. Only of a run that takes up again
/// by itself what was interrupted: any other goes on to the end of its turn.
pub(crate) fn end_now(draft: &mut Draft, moment: &Moment) {
    let run = draft.run();
    let is_news = run.live().is_some_and(|live| live.held.stop.is_none());
    let may_go_on = run.spec.on_interrupt == OnInterrupt::Resume;
    if moment.hold == Hold::On && is_news && may_go_on && can_rest(run) {
        let (actor, all, now, order) = (Actor::User, true, true, word(run, moment));
        draft.push(moment.now, Fact::PauseRequested { actor, all, now, order });
    }
}

/// The word that is followed: its id and its giver. A client may have used the same id for an order to this run
/// alone; in this journal the id is that order's.
fn word(run: &Run, moment: &Moment) -> Order {
    let word = moment.word.as_deref().cloned().unwrap_or_default();
    match run.orders.has(&word) {
        true => Order { id: None, ..word },
        false => word,
    }
}

/// What is being ended is not kept from it.
fn can_rest(run: &Run) -> bool {
    let is_ending = run.stop.is_some() || run.limit.is_some();
    !is_ending && !matches!(run.state, State::Finishing { .. } | State::Ended { .. })
}
