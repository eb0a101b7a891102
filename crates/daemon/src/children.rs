//! News from a child run to its parent: the child was made, the child has ended, there never was such a child. Each is
//! in the parent's journal once.
//!
//! Nothing is queued. What a parent has to hear follows from the runs in the store and from the parent's own journal.
//! If the daemon dies in between, the next one finds the missing news when it loads. The parent's journal refuses
//! news that it has.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{
    By, ChildEnd, DEEPEST, Input, Order, Room, Row, Run, RunId, RunSpec, StopMode, Unheard, Word,
    cut,
};
use outlast_store::{Error, Journal};
use outlast_wire::api::{PROCESS_BOUND, PROCESS_LABEL};
use outlast_wire::codes::Code;
use outlast_wire::hook;

use crate::lanes::blocking;
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::tail;

/// How long a child that was meant to be made may not exist before it is said that it never will: a client whose
/// answer was lost asks again for as long.
const UNMADE_GRACE: Duration = Duration::from_secs(60);

/// How much of what a child said and wrote its parent is told: characters of the one, bytes of the other.
const SUMMARY: usize = 2000;
const TAIL: usize = 2000;

/// Why a run may not become the child of this one for the runs above it, if so. Blocks.
pub(crate) fn refuse_depth(supervisor: &Supervisor, parent: &RunId) -> Result<(), Refusal> {
    let store = &*supervisor.ground.store;
    let unreadable = |error: Error| Refusal::new(Code::JournalUnusable, error.to_string());
    if ancestors(store, parent).map_err(unreadable)?.len() + 1 > DEEPEST {
        let message = format!("run {parent} has {DEEPEST} runs above it");
        return Err(Refusal::new(Code::TooDeep, message).hint("make it a child of one further up"));
    }
    Ok(())
}

/// Why a run has to stay, if it has to: for its children, or for a parent that does not know of its end yet.
pub(crate) fn refuse_removal(supervisor: &Supervisor, id: &RunId) -> Result<(), Refusal> {
    let unreadable = |error: Error| Refusal::new(Code::JournalUnusable, error.to_string());
    let children = supervisor.ground.store.children(id).map_err(unreadable)?;
    let live: Vec<&str> =
        children.iter().filter(|row| !row.has_ended()).map(|row| row.id.as_str()).collect();
    if let [first, ..] = live[..] {
        let message = format!("run {id} has children that go on: {}", live.join(", "));
        return Err(Refusal::new(Code::HasChildren, message).hint(format!("outlast stop {first}")));
    }
    // A run that cannot be read can be removed too.
    let row = supervisor.ground.store.row(id).ok().flatten();
    let is_unheard = row.is_some_and(|row| {
        let parent = row.parent.as_ref().and_then(|parent| supervisor.handle(parent));
        parent.is_some_and(|it| it.snapshot.borrow().run.unheard(&row) == Some(Unheard::Ended))
    });
    if is_unheard {
        let message = format!("the parent of run {id} is just being told of its end");
        return Err(Refusal::new(Code::Busy, message).hint("ask again"));
    }
    Ok(())
}

/// The news that a parent has of a child that was made.
pub(crate) fn made(child: &RunId, spec: &RunSpec) -> Input {
    let (key, granted) = (own_key(spec.parent.as_ref(), spec.key.as_ref()), spec.tree.room);
    Input::ChildMade { child: child.clone(), key, granted }
}

/// The key as it was asked for, without the parent that the store keeps it with.
fn own_key(parent: Option<&RunId>, key: Option<&String>) -> Option<String> {
    let key = key?;
    let own = parent.and_then(|parent| key.strip_prefix(parent.as_str())?.strip_prefix('/'));
    Some(own.unwrap_or(key).to_owned())
}

/// Has these children of a run stopped, with all below them. Does not wait for them.
pub(crate) fn stop(
    supervisor: &Arc<Supervisor>,
    parent: &RunId,
    children: Vec<RunId>,
    mode: StopMode,
) {
    if children.is_empty() {
        return;
    }
    // One order for each child, however often a daemon gives it.
    let order =
        Order { id: Some(format!("with:{parent}")), by: Some(By::Daemon), ..Order::default() };
    let supervisor = supervisor.clone();
    #[expect(clippy::disallowed_methods, reason = "ends once the children's journals have it")]
    let _told = tokio::spawn(async move {
        let orders = children.iter().map(|child| {
            let news = Input::StopTreeAsked { mode, order: order.clone() };
            tell(&supervisor, child, news)
        });
        futures_util::future::join_all(orders).await;
    });
}

/// Stops the background processes of a run that has ended, but for those that are to go on.
pub(crate) fn stop_bound(supervisor: &Arc<Supervisor>, parent: &RunId) {
    let bound = supervisor.ground.store.children(parent).map(|rows| {
        let is_bound = |row: &Row| {
            row.labels.get(PROCESS_LABEL).is_some_and(|it| it == PROCESS_BOUND) && !row.has_ended()
        };
        rows.into_iter().filter(is_bound).map(|row| row.id).collect::<Vec<_>>()
    });
    match bound {
        Ok(bound) => stop(supervisor, parent, bound, StopMode::Gracefully),
        Err(error) => {
            tracing::error!(run = %parent, %error, "cannot look for its background processes");
        }
    }
}

/// Stops the background processes among these runs whose parents ended while no daemon was there.
fn stop_orphaned(supervisor: &Arc<Supervisor>, runs: &[Run]) -> Result<(), Error> {
    for run in runs.iter().filter(|run| !run.has_ended()) {
        let is_bound =
            run.spec.labels.get(PROCESS_LABEL).is_some_and(|label| label == PROCESS_BOUND);
        let Some(parent) = run.spec.parent.as_ref().filter(|_| is_bound) else { continue };
        let has_ended = supervisor.ground.store.row(parent)?.is_none_or(|row| row.has_ended());
        if has_ended {
            stop(supervisor, parent, vec![run.id.clone()], StopMode::Gracefully);
        }
    }
    Ok(())
}

/// Has the parent of an ended run hear of it. Does not wait for the parent.
pub(crate) fn ended(supervisor: &Arc<Supervisor>, run: Arc<Run>) {
    let Some(parent) = run.spec.parent.clone() else { return };
    let supervisor = supervisor.clone();
    #[expect(clippy::disallowed_methods, reason = "ends once the parent's journal has it")]
    let _told = tokio::spawn(async move {
        hook!("daemon.child-ended");
        tell(&supervisor, &parent, end_of(&supervisor, &run)).await;
    });
}

/// Has the runs that were just loaded hear of what happened to their children while no daemon was there.
pub(crate) fn catch_up(supervisor: &Arc<Supervisor>, parents: &[Run]) -> Result<(), Error> {
    stop_orphaned(supervisor, parents)?;
    let mut unheard: Vec<(RunId, Row)> = Vec::new();
    for parent in parents.iter().filter(|run| !run.has_ended()) {
        let unmade = unmade_of(&*supervisor.ground.store, parent)?;
        look_for_unmade(supervisor, &parent.id, unmade);
        let children = supervisor.ground.store.children(&parent.id)?;
        let news = children.into_iter().filter(|row| parent.unheard(row).is_some());
        unheard.extend(news.map(|row| (parent.id.clone(), row)));
    }
    if unheard.is_empty() {
        return Ok(());
    }
    let supervisor = supervisor.clone();
    #[expect(clippy::disallowed_methods, reason = "ends once the parents' journals have it all")]
    let _told = tokio::spawn(async move {
        for (parent, row) in unheard {
            let replayed = supervisor.ground.replay(&row.id);
            let news = match replayed {
                Ok(run) if row.has_ended() => end_of(&supervisor, &run),
                Ok(run) => made(&row.id, &run.spec),
                Err(_) if row.has_ended() => end_by(&row),
                // What it was given cannot be read; it is found again once it can be.
                Err(_) => continue,
            };
            tell(&supervisor, &parent, news).await;
        }
    });
    Ok(())
}

/// Children of a run that its journal has and the store has not: after a while, they never will be.
pub(crate) fn look_for_unmade(supervisor: &Arc<Supervisor>, parent: &RunId, children: Vec<RunId>) {
    if children.is_empty() {
        return;
    }
    let (supervisor, parent) = (supervisor.clone(), parent.clone());
    #[expect(clippy::disallowed_methods, reason = "ends after one look")]
    let _looked = tokio::spawn(async move {
        tokio::time::sleep(UNMADE_GRACE).await;
        for child in children {
            unmake(&supervisor, &parent, &child).await;
        }
    });
}

/// Tells a parent that a child does not exist, if that is so and no task is just making it.
async fn unmake(supervisor: &Arc<Supervisor>, parent: &RunId, child: &RunId) {
    let Some(_claim) = supervisor.claim(child) else { return };
    unmake_claimed(supervisor, parent, child).await;
}

/// The same, by the task that has the claim.
pub(crate) async fn unmake_claimed(supervisor: &Arc<Supervisor>, parent: &RunId, child: &RunId) {
    let (asker, id) = (supervisor.clone(), child.clone());
    let is_absent = blocking(move || {
        // What cannot be read may be there, and a directory may be all that is left of it.
        Ok(asker.ground.store.row(&id)?.is_none() && asker.strays.get(&id).is_none())
    });
    match is_absent.await {
        Ok(true) => {
            tell(supervisor, parent, Input::ChildUnmade { child: child.clone() }).await;
        }
        Ok(false) => {}
        Err(error) => tracing::error!(run = %child, %error, "cannot look for a child"),
    }
}

/// The live children of a run that the store does not have. Blocks.
fn unmade_of(store: &dyn Journal, parent: &Run) -> Result<Vec<RunId>, Error> {
    let mut unmade = Vec::new();
    for child in parent.live_child_ids() {
        if store.row(child)?.is_none() {
            unmade.push(child.clone());
        }
    }
    Ok(unmade)
}

/// What the store knows the key of a child by: keys of two parents are two keys.
pub(crate) fn scoped(parent: &RunId, key: &str, tries: u32) -> String {
    if tries > 1 { format!("{parent}/{key}#{tries}") } else { format!("{parent}/{key}") }
}

/// The run above all others that this one belongs to, as far as they are still known. Blocks.
pub(crate) fn root(store: &dyn Journal, run: &Run) -> Result<RunId, Error> {
    let Some(parent) = &run.spec.parent else { return Ok(run.id.clone()) };
    Ok(ancestors(store, parent)?.pop().unwrap_or_else(|| parent.clone()))
}

/// The runs that this one is below of, the nearest first. Blocks.
pub(crate) fn above(store: &dyn Journal, run: &RunId) -> Result<Vec<RunId>, Error> {
    ancestors(store, run)
}

/// Those above a run, the nearest first. A parent is there before its child, so this has an end.
fn ancestors(store: &dyn Journal, run: &RunId) -> Result<Vec<RunId>, Error> {
    let mut above = Vec::new();
    let mut next = store.row(run)?.and_then(|row| row.parent);
    while let Some(parent) = next.filter(|_| above.len() < DEEPEST) {
        next = store.row(&parent)?.and_then(|row| row.parent);
        above.push(parent);
    }
    Ok(above)
}

async fn tell(supervisor: &Supervisor, parent: &RunId, news: Input) {
    // A parent without a conductor has ended, or cannot be read: its children are found when it can be.
    if let Some(handle) = supervisor.handle(parent) {
        let _gone = handle.tell(news).await;
        hook!("daemon.parent-told");
    }
}

fn end_of(supervisor: &Supervisor, run: &Run) -> Input {
    let row = run.row();
    let mut text = headline(&row, Some(&run.why.reason));
    let summary = run.previous.as_ref().map(|it| it.summary.trim()).unwrap_or_default();
    if !summary.is_empty() {
        text.push_str("\n\n");
        text.extend(summary.chars().take(SUMMARY));
    }
    let last = run.attempt.as_ref();
    let written = last.map(|last| {
        let dir = supervisor.ground.layout.run(run.id.as_str()).attempt(last.turn, last.number);
        tail::of_output(&dir, TAIL)
    });
    if let Some(written) = written.filter(|written| !written.trim().is_empty()) {
        text.push_str("\n\nThe last lines that it wrote:\n");
        text.push_str(written.trim_end());
    }
    let summary = cut(summary).unwrap_or_default();
    let (granted, settlement) = (run.spec.tree.room, Some(run.settlement()));
    Input::ChildEnded(Box::new(ChildEnd { granted, settlement, summary, ..news(&row, text) }))
}

/// Of a child that cannot be read, only what the list says of it. What it used is not known.
fn end_by(row: &Row) -> Input {
    Input::ChildEnded(Box::new(news(row, headline(row, None))))
}

fn news(row: &Row, text: String) -> ChildEnd {
    let state = row.state.verdict().expect("only the end of a run is told");
    ChildEnd {
        child: row.id.clone(),
        key: own_key(row.parent.as_ref(), row.key.as_ref()),
        state,
        reason_code: row.reason_code.clone(),
        granted: Room::default(),
        settlement: None,
        exit: row.exit,
        summary: String::new(),
        text,
    }
}

/// `Run k3m… (tests) has failed: exit code 1`
fn headline(row: &Row, why: Option<&String>) -> String {
    let name = row.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let code = row.reason_code.as_ref().map(Word::as_str);
    let why = why.map(String::as_str).or(code).filter(|why| !why.is_empty());
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("Run {}{name}, a child of this one, has ended as {}{why}.", row.id, row.state.word())
}
