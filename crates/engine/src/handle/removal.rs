//! The workspace of an ended run is to go; whether it did, and what its hook said, are separate facts.

use crate::handle::Draft;
use crate::run::Removal;
use crate::{Actor, Fact, Moment};

pub(super) fn asked(draft: &mut Draft, moment: &Moment) {
    let run = draft.run();
    let is_there = !matches!(run.removal, Removal::Asked | Removal::Removed);
    if run.ended_at.is_some() && is_there {
        draft.push(moment.now, Fact::RemovalRequested { actor: Actor::User });
    }
}

pub(super) fn removed(draft: &mut Draft, bytes: u64, moment: &Moment) {
    if draft.run().removal == Removal::Asked {
        draft.push(moment.now, Fact::WorkspaceRemoved { bytes });
    }
}

pub(super) fn kept(draft: &mut Draft, why: &str, moment: &Moment) {
    if draft.run().removal == Removal::Asked {
        draft.push(moment.now, Fact::WorkspaceKept { why: why.to_owned() });
    }
}
