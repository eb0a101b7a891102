//! The workspace of an ended run is to go; whether it did, and what its hook said, are separate facts.

use crate::handle::Draft;
use crate::run::Removal;
use crate::{Actor, Context, Fact};

pub(super) fn asked(draft: &mut Draft, context: &Context) {
    let run = draft.run();
    let is_there = !matches!(run.removal, Removal::Asked | Removal::Removed);
    if run.ended_at.is_some() && is_there {
        draft.push(context.now, Fact::RemovalRequested { actor: Actor::User });
    }
}

pub(super) fn removed(draft: &mut Draft, bytes: u64, context: &Context) {
    if draft.run().removal == Removal::Asked {
        draft.push(context.now, Fact::WorkspaceRemoved { bytes });
    }
}

pub(super) fn kept(draft: &mut Draft, why: &str, context: &Context) {
    if draft.run().removal == Removal::Asked {
        draft.push(context.now, Fact::WorkspaceKept { why: why.to_owned() });
    }
}
