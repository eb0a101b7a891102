//! A daemon met an attempt alive that another daemon had launched.

use crate::handle::Draft;
use crate::{Fact, Moment};

pub(super) fn handle(draft: &mut Draft, turn: u32, attempt: u32, epoch: u64, moment: &Moment) {
    if draft.run().live().is_some_and(|live| live.is(turn, attempt)) {
        draft.push(moment.now, Fact::AttemptAdopted { turn, attempt, epoch });
    }
}
