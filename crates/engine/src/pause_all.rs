//! `pause --all`: every run rests while it is in force, and goes on when it is taken back.
//!
//! Asked with every piece of news, so a run that was not told when it was given follows it with the next.

use crate::handle::Draft;
use crate::{Actor, Context, Fact, OnInterrupt, Order, PauseAll, Run, State};

pub(crate) fn follow(draft: &mut Draft, context: &Context) {
    let (actor, all, order) = (Actor::User, true, word(draft.run(), context));
    match context.pause_all {
        PauseAll::On if !draft.run().is_paused_with_all && can_rest(draft.run()) => {
            draft.push(context.now, Fact::PauseRequested { actor, all, now: false, order });
        }
        PauseAll::Off if draft.run().is_paused_with_all && !draft.run().has_ended() => {
            draft.push(context.now, Fact::ResumeRequested { actor, all, order });
        }
        PauseAll::On | PauseAll::Off => {}
    }
}

/// Ends the attempt that is alive, to be made again when everything goes on. Only of a run that takes up again
/// by itself what was interrupted: any other goes on to the end of its turn.
pub(crate) fn end_now(draft: &mut Draft, context: &Context) {
    let run = draft.run();
    let is_news = run.live().is_some_and(|live| live.state.stop.is_none());
    let may_go_on = matches!(run.spec.on_interrupt, OnInterrupt::Resume | OnInterrupt::Restore);
    if context.pause_all == PauseAll::On && is_news && may_go_on && can_rest(run) {
        let (actor, all, now, order) = (Actor::User, true, true, word(run, context));
        draft.push(context.now, Fact::PauseRequested { actor, all, now, order });
    }
}

/// The word that is followed: its id and its giver. A client may have used the same id for an order to this run
/// alone; in this journal the id is that order's.
fn word(run: &Run, context: &Context) -> Order {
    let word = context.word.as_deref().cloned().unwrap_or_default();
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
