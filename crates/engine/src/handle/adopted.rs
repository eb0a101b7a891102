//! A daemon met a step alive that another daemon had launched.

use crate::handle::Draft;
use crate::{Context, Fact, Step};

pub(super) fn handle(draft: &mut Draft, step: Step, epoch: u64, context: &Context) {
    // Which daemon watches an errand is no part of a history.
    let Step::Attempt { turn, attempt } = step else { return };
    if draft.run().live().is_some_and(|live| live.is(turn, attempt)) {
        draft.push(context.now, Fact::AttemptAdopted { turn, attempt, epoch });
    }
}
