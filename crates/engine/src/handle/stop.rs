//! Somebody wants the run to stop. The order is durable before anything is signalled.

use crate::handle::Draft;
use crate::{Actor, Fact, Moment, Run, StopMode};

pub(super) fn handle(draft: &mut Draft, mode: StopMode, moment: &Moment) {
    if is_news(draft.run(), mode) {
        draft.push(moment.now, Fact::StopRequested { mode, actor: Actor::User });
    }
}

/// Asking again changes nothing, unless it asks for more, or for another try at what would not go.
fn is_news(run: &Run, mode: StopMode) -> bool {
    let tried_in_vain = run.attempt.as_ref().is_some_and(|attempt| attempt.stop_incomplete);
    let asks_for_more = run.stop.is_none_or(|asked| asked < mode);
    let takes_back = run.stop.is_some_and(|asked| asked > mode);
    run.is_open() && !takes_back && (asks_for_more || tried_in_vain)
}
