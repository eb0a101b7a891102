//! Somebody wants the run to stop. The order is durable before anything is signalled.

use crate::handle::Draft;
use crate::{Actor, Fact, Held, Moment, Run, StopMode};

pub(super) fn handle(draft: &mut Draft, mode: StopMode, moment: &Moment) {
    if is_news(draft.run(), mode) {
        draft.push(moment.now, Fact::StopRequested { mode, actor: Actor::User });
    }
}

/// Asking again changes nothing, unless it asks for more, or reaches what was not asked before: a hook that
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
