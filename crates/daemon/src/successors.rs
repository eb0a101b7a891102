//! Runs that start after another run: they hear of its end.
//!
//! Told when the run before ends, and looked for whenever a run gets a conductor, so no restart loses it. What follows
//! from the news is decided by the engine.

use std::sync::Arc;

use outlast_engine::{Input, Run, RunId, State, Verdict};

use crate::supervisor::Supervisor;

/// Has those hear of it that start after this run.
pub(crate) fn ended(supervisor: &Arc<Supervisor>, run: &Run) {
    let State::Ended { verdict } = run.state else { return };
    for (id, handle) in supervisor.handles() {
        if awaits(&handle.snapshot.borrow().run).is_some_and(|before| *before == run.id) {
            tell(supervisor, id, run.id.clone(), verdict);
        }
    }
}

/// Has a run hear of the end of the one before it, if that has ended.
pub(crate) fn look(supervisor: &Arc<Supervisor>, run: &Run) {
    let Some(before) = awaits(run) else { return };
    let verdict = match supervisor.ground.store.row(before) {
        Ok(Some(row)) if row.has_ended() => row.state.verdict(),
        Ok(Some(_)) => None,
        // A run that was removed had ended, and did not leave word of how.
        Ok(None) => Some(Verdict::Stopped),
        Err(error) => {
            tracing::error!(run = %run.id, %error, "cannot look for the run before it");
            None
        }
    };
    if let Some(verdict) = verdict {
        tell(supervisor, run.id.clone(), before.clone(), verdict);
    }
}

/// The run that this one still has to hear of.
fn awaits(run: &Run) -> Option<&RunId> {
    let is_waiting = run.predecessor.is_none() && !run.has_ended();
    run.spec.start.after.as_ref().filter(|_| is_waiting).map(|after| &after.run)
}

fn tell(supervisor: &Arc<Supervisor>, id: RunId, run: RunId, state: Verdict) {
    let supervisor = supervisor.clone();
    #[expect(clippy::disallowed_methods, reason = "ends once the successor's journal has it")]
    let _told = tokio::spawn(async move {
        // A run without a conductor looks for itself when it gets one.
        if let Some(handle) = supervisor.handle(&id) {
            let _gone = handle.tell(Input::PredecessorEnded { run, state }).await;
        }
    });
}
