//! A person wants the run to stop. The order is durable before anything is signalled.

use crate::handle::Draft;
use crate::{Actor, Context, Fact, Order, Run, StepState, StopMode};

/// What a stop is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Run,
    /// With all below it.
    Tree,
}

pub(super) fn handle(
    draft: &mut Draft,
    mode: StopMode,
    scope: Scope,
    order: &Order,
    context: &Context,
) {
    let run = draft.run();
    let is_an_order = order.id.is_some() && run.is_open();
    if run.orders.has(order) || !(is_an_order || is_news(run, mode)) {
        return;
    }
    let (actor, order) = (Actor::User, Order { answers: None, ..order.clone() });
    let tree = scope == Scope::Tree;
    draft.push(context.now, Fact::StopRequested { mode, actor, tree, order });
}

/// Asking again without an id changes nothing, unless it asks for more, or reaches what was not asked before: a hook that
/// began since, whom that left behind, or what would not go.
fn is_news(run: &Run, mode: StopMode) -> bool {
    let takes_back = run.stop.is_some_and(|asked| asked > mode);
    let asks_for_more = run.stop.is_none_or(|asked| asked < mode);
    let reaches = |state: &StepState| {
        let is_there = state.is_live() || state.has_survivors();
        state.stop_incomplete || (is_there && state.stop.is_none_or(|asked| asked < mode))
    };
    let attempt = run.attempt.as_ref().is_some_and(|it| reaches(&it.state));
    let errand = run.errand.as_ref().is_some_and(|it| reaches(&it.state));
    run.is_open() && !takes_back && (asks_for_more || attempt || errand)
}
