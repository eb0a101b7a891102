//! The workspace of an ended run is removed: through the run's own journal, so that the hook before it, its
//! result and that of the removal are facts like all others.

use std::ops::ControlFlow;
use std::sync::Arc;

use outlast_engine::{Input, Removal, Run, RunId, Strategy, Time, Verdict, WorkspaceState};
use outlast_store::{Error, Filter};
use tokio::sync::watch;

use crate::conductor;
use crate::mailbox::Handle;
use crate::mailbox::Snapshot;
use crate::supervisor::Supervisor;
use crate::workspace;
use outlast_conduct::fenced_run::FencedRun;

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Removed {
    /// Or never this run's alone.
    Gone,
    Kept {
        why: String,
    },
}

/// True if the run has a workspace of its own that is still there.
pub(crate) fn has_workspace(run: &Run) -> bool {
    let is_own = run.spec.workspace.strategy != Strategy::Inplace;
    let is_made = matches!(run.preparation.workspace, WorkspaceState::Ready { .. });
    is_own && is_made && run.removal != Removal::Removed
}

/// How long the workspace of an ended run is kept; `None` is for ever.
pub(crate) fn kept_until(run: &Run) -> Option<Time> {
    let outlast_engine::State::Ended { verdict } = run.state else { return None };
    let retain = run.spec.workspace.retain;
    let keep_ms = match verdict {
        Verdict::Completed => retain.completed_ms,
        Verdict::Failed => retain.failed_ms,
        Verdict::Stopped => retain.stopped_ms,
        Verdict::Exhausted => retain.exhausted_ms,
    };
    Some(run.ended_at?.plus_ms(keep_ms?))
}

/// Why it cannot go, if it cannot; blocks.
pub(crate) fn obstacle(supervisor: &Supervisor, run: &Run) -> Option<String> {
    let dir = supervisor.ground.layout.run(run.id.as_str());
    let stands = workspace::stands(&run.spec, &dir).map_err(|why| why.to_string());
    stands.and_then(|()| workspace::may_remove(&run.spec).map_err(|why| why.to_string())).err()
}

/// True if its directory is another run's as well, by its name: of one that goes on, or of a later one that
/// has it now. Blocks.
pub(crate) fn is_shared(supervisor: &Supervisor, run: &Run) -> Result<bool, Error> {
    let is_same = |other: &Run| other.id != run.id && other.spec.dir == run.spec.dir;
    let of_open = |(_, handle): &(RunId, Handle)| is_same(&handle.snapshot.borrow().run);
    if supervisor.handles().iter().any(of_open) {
        return Ok(true);
    }
    let Some(name) = &run.spec.name else { return Ok(false) };
    let all = Filter { all: true, ..Filter::default() };
    let mut has_heir = false;
    supervisor.ground.store.visit_rows(&all, &mut |row| {
        if row.id == run.id || row.created_at < run.created_at {
            return ControlFlow::Break(());
        }
        // What cannot be read may need it.
        let needs_it = |other: Run| is_same(&other) && has_workspace(&other);
        has_heir = row.name.as_ref() == Some(name)
            && supervisor.ground.replay(&row.id).map_or(true, needs_it);
        if has_heir { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(has_heir)
}

/// The way to a run whose workspace is being removed, by us or by what a daemon before us had begun.
pub(crate) fn under_way(supervisor: &Supervisor, id: &RunId) -> Option<Handle> {
    let is_asked = |run: &Run| run.ended_at.is_some() && run.removal == Removal::Asked;
    supervisor.handle(id).filter(|handle| is_asked(&handle.snapshot.borrow().run))
}

/// Removes it; blocks until it is gone or stays.
pub(crate) fn remove(supervisor: &Arc<Supervisor>, id: &RunId) -> Result<Removed, String> {
    if let Some(handle) = under_way(supervisor, id) {
        tokio::runtime::Handle::current().block_on(until_over(handle.snapshot));
    }
    let run = supervisor.ground.replay(id)?;
    if !has_workspace(&run) || is_shared(supervisor, &run).map_err(|error| error.to_string())? {
        return Ok(Removed::Gone);
    }
    // Before its hook: the hook must not clean up what is going to stay.
    if let Some(why) = obstacle(supervisor, &run) {
        return Ok(Removed::Kept { why });
    }
    if supervisor.handle(id).is_some() || run.is_open() {
        return Ok(Removed::Kept { why: "something of the run is still alive".to_owned() });
    }
    tokio::runtime::Handle::current().block_on(conducted(supervisor, run));
    match supervisor.ground.replay(id)?.removal {
        Removal::Removed => Ok(Removed::Gone),
        Removal::Kept { why } => Ok(Removed::Kept { why }),
        Removal::Asked | Removal::NotAsked => {
            Ok(Removed::Kept { why: "its removal has not come to an end".to_owned() })
        }
    }
}

/// Gives the run a conductor for as long as its removal takes.
async fn conducted(supervisor: &Arc<Supervisor>, run: Run) {
    let seat = FencedRun::new(run, supervisor.ground.epoch);
    until_over(conductor::start(supervisor, seat, Some(Input::RemovalAsked)).snapshot).await;
}

async fn until_over(mut snapshot: watch::Receiver<Snapshot>) {
    let is_over = |removal: &Removal| matches!(removal, Removal::Removed | Removal::Kept { .. });
    // A conductor that is gone has nothing more to say.
    drop(snapshot.wait_for(|seen| is_over(&seen.run.removal)).await);
    while snapshot.changed().await.is_ok() {}
}
