//! News of the workspace: made, refused, or discarded again.

use crate::handle::Draft;
use crate::run::Place;
use crate::{Fact, Moment, State, finish};

pub(super) fn made(draft: &mut Draft, created: bool, moment: &Moment) {
    if is_awaited(draft) {
        draft.push(moment.now, Fact::WorkspacePrepared { created });
    }
}

pub(super) fn refused(draft: &mut Draft, why: &str, moment: &Moment) {
    if is_awaited(draft) {
        draft.push(moment.now, Fact::WorkspaceRefused { why: why.to_owned() });
    }
}

pub(super) fn discarded(draft: &mut Draft, problem: Option<&String>, moment: &Moment) {
    let is_finishing = matches!(draft.run().state, State::Finishing { .. });
    if is_finishing && finish::is_half_made(draft.run()) {
        draft.push(moment.now, Fact::WorkspaceDiscarded { problem: problem.cloned() });
    }
}

fn is_awaited(draft: &Draft) -> bool {
    let run = draft.run();
    run.state == State::Preparing && run.preparation.workspace == Place::Unmade
}
