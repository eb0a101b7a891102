//! Somebody wants the run to rest. What runs just now goes on to its end; nothing new is started.

use crate::handle::Draft;
use crate::{Actor, Fact, Moment};

pub(super) fn handle(draft: &mut Draft, moment: &Moment) {
    let run = draft.run();
    let is_ending = run.stop.is_some() || run.limit.is_some() || run.has_ended();
    if !run.is_paused && !is_ending {
        draft.push(moment.now, Fact::PauseRequested { actor: Actor::User, all: false, now: false });
    }
}
