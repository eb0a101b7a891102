//! `restore`: the workspace of a run at rest, or of one that has ended, becomes what a turn left.
//!
//! The order is in the journal before anything is changed, and what is found is kept first. A person's order only.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{CannotRestore, Cause, Fact, Input, Run, RunId, Verb};
use outlast_wire::api::{RestoreRun, RestoredView};
use outlast_wire::codes::Code;

use super::callers::{Caller, Right};
use super::diff::Known;
use super::find::{by_name, snapshot_of};
use super::orders::{Given, said};
use super::raise::told;
use super::tell::{not_taken, order_id};
use crate::lanes::blocking;
use crate::refusal::{Answer, Refusal};
use crate::supervisor::Supervisor;

/// Two errands, each with its own bound of ten minutes.
const DONE_WITHIN: Duration = Duration::from_secs(1300);
const PAGE: usize = 1000;

/// Has the run take the order, unless it has taken it before, and answers once it is carried out.
pub(crate) async fn restore(
    supervisor: Arc<Supervisor>,
    caller: Caller,
    id: RunId,
    asked: RestoreRun,
) -> Answer<RestoredView> {
    let restored = ordered(&supervisor, caller, &id, asked).await;
    by_name(&supervisor, &id, restored).await
}

async fn ordered(
    supervisor: &Arc<Supervisor>,
    caller: Caller,
    id: &RunId,
    asked: RestoreRun,
) -> Answer<RestoredView> {
    let said = said(supervisor, &asked.turn)?;
    let given = Given { id: order_id(asked.id.clone())?, seq: None, verb: Verb::Restore, said };
    let claim = supervisor.claim_soon(id).await;
    let before = snapshot_of(supervisor, id).await?.run;
    if !given.is_taken(&before)? {
        if claim.is_none() {
            let refusal = Refusal::new(Code::Busy, format!("run {id} is being changed"));
            return Err(refusal.hint("ask again"));
        }
        refuse(&before, asked.turn)?;
        refuse_shared(supervisor, &before)?;
        let by = caller.may(supervisor, Right::Raise, id).await?;
        let (reader, run) = (supervisor.clone(), id.clone());
        let point = blocking(move || Known::read(&reader, &run)?.point(&run, asked.turn)).await?;
        let order = given.order(by, None);
        // A person's word: it is carried out also while the daemon resumes nothing.
        supervisor.restarts.release(id);
        let input = Input::RestoreAsked { back_to: asked.turn, point: Box::new(point), order };
        let after = told(supervisor, &before, input, &given.id).await?;
        if !given.is_taken(&after)? {
            refuse(&after, asked.turn)?;
            return Err(not_taken(id));
        }
    }
    drop(claim);
    until_done(supervisor, id).await?;
    let (reader, run) = (supervisor.clone(), id.clone());
    blocking(move || result(&reader, &run, &given.id)).await
}

async fn until_done(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<()> {
    let Some(handle) = supervisor.handle(id) else { return Ok(()) };
    let mut snapshot = handle.snapshot;
    let done = async {
        // A conductor that is gone has nothing more to say.
        drop(snapshot.wait_for(|seen| seen.run.snapshots.asked.is_none()).await);
    };
    tokio::time::timeout(DONE_WITHIN, done).await.map_err(|_elapsed| {
        Refusal::new(Code::TimedOut, format!("run {id} is still being put back"))
            .hint(format!("outlast events {id} -f"))
    })
}

/// What the journal says became of the order. Blocks.
fn result(supervisor: &Supervisor, id: &RunId, order: &str) -> Answer<RestoredView> {
    let (mut is_ordered, mut after) = (false, 0);
    loop {
        let page = supervisor.ground.store.events(id, after, PAGE)?;
        for event in &page {
            match &event.fact {
                Fact::RestoreRequested { order: taken, .. } => {
                    is_ordered = taken.id.as_deref() == Some(order);
                }
                Fact::WorkspaceRestored {
                    back_to: Some(turn),
                    to,
                    wreck,
                    written,
                    removed,
                    kept,
                    ..
                } if is_ordered => {
                    return Ok(RestoredView {
                        run: id.0.clone(),
                        turn: *turn,
                        to: to.clone(),
                        wreck: wreck.clone(),
                        written: *written,
                        removed: *removed,
                        kept: kept.clone(),
                    });
                }
                Fact::SnapshotFailed { cause: None | Some(Cause::Wreck), why, .. }
                    if is_ordered =>
                {
                    let message = format!(
                        "the workspace of run {id} was not put back, or only a part of it: {why}"
                    );
                    return Err(Refusal::new(Code::RestoreFailed, message).hint(format!(
                        "the same order again does the rest; what is there now:\noutlast diff {id}"
                    )));
                }
                _ => {}
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.seq,
            _ => break,
        }
    }
    let message = format!("run {id} was not put back: it was ended before");
    Err(Refusal::new(Code::RestoreFailed, message).hint(format!("outlast show {id}")))
}

/// A later run of the same name works where the earlier one did.
fn refuse_shared(supervisor: &Supervisor, run: &Run) -> Answer<()> {
    let is_there = |other: &Run| other.id != run.id && other.spec.dir == run.spec.dir;
    let handles = supervisor.handles();
    let other = handles.iter().find(|(_, handle)| is_there(&handle.snapshot.borrow().run));
    let Some((other, _)) = other else { return Ok(()) };
    let message = format!("run {other} works in the workspace of run {} now", run.id);
    Err(Refusal::new(Code::RunIsLive, message)
        .hint(format!("once it has ended:\noutlast wait {other}\noutlast stop {other}")))
}

fn refuse(run: &Run, turn: u32) -> Answer<()> {
    let Err(why) = run.refuse_restore() else { return Ok(()) };
    let id = &run.id;
    Err(match why {
        CannotRestore::Inplace => {
            let message = format!("run {id} works in place, where a person works too");
            Refusal::new(Code::NotRestorable, message)
                .hint(format!("look at what it changed:\noutlast diff {id}"))
        }
        CannotRestore::NoSnapshots => {
            Refusal::new(Code::NoSnapshot, format!("run {id} has no snapshots"))
                .hint("`workspace: { snapshot: on }` in its loop file makes them")
        }
        CannotRestore::AtWork => {
            let state = run.state.name().word();
            let message = format!("run {id} is {state}, and goes back only while it rests");
            Refusal::new(Code::RunIsLive, message)
                .hint(format!("outlast pause {id}\noutlast stop {id}"))
        }
        CannotRestore::IsEnding => Refusal::new(Code::IsEnding, format!("run {id} is being ended"))
            .hint(format!("outlast wait {id}")),
        CannotRestore::Survivors => {
            let message = format!("processes of run {id} are left, and may write to its files");
            Refusal::new(Code::RunIsLive, message).hint(format!("outlast stop --now {id}"))
        }
        CannotRestore::WorkspaceGone => {
            let message = format!("the workspace of run {id} is gone: {}", run.spec.dir);
            Refusal::new(Code::NotRestorable, message)
                .hint(format!("start anew from that turn:\noutlast fork {id} --at {turn}"))
        }
        CannotRestore::UnderWay => {
            Refusal::new(Code::Busy, format!("run {id} is being put back already"))
                .hint("ask again")
        }
    })
}
