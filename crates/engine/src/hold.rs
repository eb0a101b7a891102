//! The word for all: everything rests while it holds, and goes on when it is taken back.
//!
//! Asked with every piece of news, so whoever was not told when it was said follows it with the next.

use crate::handle::Draft;
use crate::{Actor, Fact, Hold, Moment, Run, State};

pub(crate) fn follow(draft: &mut Draft, moment: &Moment) {
    let (actor, all) = (Actor::User, true);
    match moment.hold {
        Hold::On if !draft.run().is_held && can_rest(draft.run()) => {
            draft.push(moment.now, Fact::PauseRequested { actor, all });
        }
        Hold::Off if draft.run().is_held && !draft.run().has_ended() => {
            draft.push(moment.now, Fact::ResumeRequested { actor, all });
        }
        Hold::On | Hold::Off => {}
    }
}

/// What is being ended is not kept from it.
fn can_rest(run: &Run) -> bool {
    let is_ending = run.stop.is_some() || run.limit.is_some();
    !is_ending && !matches!(run.state, State::Finishing { .. } | State::Ended { .. })
}
