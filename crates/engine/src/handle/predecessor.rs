//! The run has ended after which this one is to start. Brought again after every restart until the journal has it.

use crate::handle::Draft;
use crate::{Context, Fact, RunId, Verdict};

pub(super) fn handle(draft: &mut Draft, ended: &RunId, state: Verdict, context: &Context) {
    let run = draft.run();
    let is_awaited = run.spec.start.after.as_ref().is_some_and(|after| after.run == *ended);
    if run.has_ended() || run.predecessor.is_some() || !is_awaited {
        return;
    }
    draft.push(context.now, Fact::PredecessorEnded { run: ended.clone(), state });
}
