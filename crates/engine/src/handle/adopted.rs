//! A daemon met a step alive that another daemon had launched.

use crate::handle::Draft;
use crate::{Fact, Moment, Step};

pub(super) fn handle(draft: &mut Draft, step: Step, epoch: u64, moment: &Moment) {
    // Who holds an errand is nobody's history.
    let Step::Attempt { turn, attempt } = step else { return };
    if draft.run().live().is_some_and(|live| live.is(turn, attempt)) {
        draft.push(moment.now, Fact::AttemptAdopted { turn, attempt, epoch });
    }
}
