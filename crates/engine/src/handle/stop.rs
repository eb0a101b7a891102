//! A person wants the run to stop. The order is durable before anything is signalled.

use crate::handle::Draft;
use crate::{Actor, Fact, Held, Moment, Order, Run, StopMode};

pub(super) fn handle(draft: &mut Draft, mode: StopMode, order: &Order, moment: &Moment) {
    let run = draft.run();
    let is_an_order = order.id.is_some() && run.is_open();
    if run.orders.has(order) || !(is_an_order || is_news(run, mode)) {
        return;
    }
    let (actor, order) = (Actor::User, Order { answers: None, ..order.clone() });
    draft.push(moment.now, Fact::StopRequested { mode, actor, order });
}

/// Asking again without an id changes nothing, unless it asks for more, or reaches what was not asked before: a hook that
/// began since, whom that left behind, or what would not go.
fn is_news(run: &Run, mode: StopMode) -> bool {
    let takes_back = run.stop.is_some_and(|asked| asked > mode);
    let asks_for_more = run.stop.is_none_or(|asked| asked < mode);
    let reaches = |held: &Held| {
        let is_there = held.is_live() || held.has_survivors();
        held.stop_incomplete || (is_there && held.stop.is_none_or(|asked| asked < mode))
    };
    let attempt = run.attempt.as_ref().is_some_and(|it| reaches(&it.held));
    let errand = run.errand.as_ref().is_some_and(|it| reaches(&it.held));
    run.is_open() && !takes_back && (asks_for_more || attempt || errand)
}
