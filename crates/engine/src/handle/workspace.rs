//! News of the workspace: made, refused, or discarded again.

use crate::handle::Draft;
use crate::run::WorkspaceState;
use crate::{Context, Fact, State, finish};

pub(super) fn made(draft: &mut Draft, created: bool, context: &Context) {
    if is_awaited(draft) {
        draft.push(context.now, Fact::WorkspacePrepared { created });
    }
}

pub(super) fn refused(draft: &mut Draft, why: &str, context: &Context) {
    if is_awaited(draft) {
        draft.push(context.now, Fact::WorkspaceRefused { why: why.to_owned() });
    }
}

pub(super) fn discarded(draft: &mut Draft, problem: Option<&String>, context: &Context) {
    let is_finishing = matches!(draft.run().state, State::Finishing { .. });
    if is_finishing && finish::is_half_made(draft.run()) {
        draft.push(context.now, Fact::WorkspaceDiscarded { problem: problem.cloned() });
    }
}

fn is_awaited(draft: &Draft) -> bool {
    let run = draft.run();
    run.state == State::Preparing && run.preparation.workspace == WorkspaceState::Unmade
}
