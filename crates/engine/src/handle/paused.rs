//! A person wants the run to rest. What runs just now goes on to its end; nothing new is started.

use crate::handle::Draft;
use crate::{Actor, Context, Fact, Order};

pub(super) fn handle(draft: &mut Draft, order: &Order, context: &Context) {
    let run = draft.run();
    // A second person's pause is an order of its own: a resume that did not see it does not take it back.
    let is_news = !run.is_paused || order.id.is_some();
    if run.orders.has(order) || !is_news || !run.may_pause(order.answers) {
        return;
    }
    let (actor, all, now) = (Actor::User, false, false);
    let order = Order { answers: None, ..order.clone() };
    draft.push(context.now, Fact::PauseRequested { actor, all, now, order });
}
