//! News from a child run to its parent: the child was made, the child has ended. Each is in the parent's journal
//! once.
//!
//! Nothing is queued. What a parent has to hear follows from the runs in the store and from the parent's own journal.
//! If the daemon dies in between, the next one finds the missing news when it loads. The parent's journal refuses
//! news that it has.

use std::sync::Arc;

use outlast_engine::{ChildEnd, DEEPEST, Input, MOST_CHILDREN, Row, Run, RunId, Unheard, Word};
use outlast_store::{Error, Journal};
use outlast_wire::codes::Code;
use outlast_wire::hook;

use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::tail;

/// How much of what a child said and wrote its parent is told: characters of the one, bytes of the other.
const SUMMARY: usize = 2000;
const TAIL: usize = 2000;

/// Why a run may not become the child of this one, if so. Blocks.
pub(crate) fn refuse_parent(supervisor: &Supervisor, parent: &RunId) -> Result<(), Refusal> {
    let store = &*supervisor.ground.store;
    let unreadable = |error: Error| Refusal::new(Code::JournalUnusable, error.to_string());
    let ended = store.row(parent).map_err(unreadable)?.filter(|row| row.state.verdict().is_some());
    if let Some(row) = ended {
        let message = format!("run {parent} has ended: {}", row.state.word());
        return Err(
            Refusal::new(Code::HasEnded, message).hint("only a run that goes on has children")
        );
    }
    if ancestors(store, parent).map_err(unreadable)?.len() + 1 > DEEPEST {
        let message = format!("run {parent} has {DEEPEST} runs above it");
        return Err(Refusal::new(Code::TooDeep, message).hint("make it a child of one further up"));
    }
    if store.children(parent).map_err(unreadable)?.len() >= MOST_CHILDREN {
        let message = format!("run {parent} has {MOST_CHILDREN} children");
        return Err(Refusal::new(Code::TooManyChildren, message)
            .hint("`outlast rm` forgets those that have ended"));
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
        return Err(Refusal::new(Code::HasChildren, message)
            .hint(format!("`outlast stop {first}` ends one")));
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
pub(crate) fn made(child: &RunId, key: Option<&String>) -> Input {
    Input::ChildMade { child: child.clone(), key: key.cloned() }
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
    let mut unheard: Vec<(RunId, Row)> = Vec::new();
    for parent in parents.iter().filter(|run| !run.has_ended()) {
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
            let news = if row.has_ended() {
                supervisor
                    .ground
                    .replay(&row.id)
                    .map_or_else(|_| end_by(&row), |run| end_of(&supervisor, &run))
            } else {
                made(&row.id, row.key.as_ref())
            };
            tell(&supervisor, &parent, news).await;
        }
    });
    Ok(())
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
    news(&row, text)
}

/// Of a child that cannot be read, only what the list says of it.
fn end_by(row: &Row) -> Input {
    news(row, headline(row, None))
}

fn news(row: &Row, text: String) -> Input {
    let state = row.state.verdict().expect("only the end of a run is told");
    Input::ChildEnded(Box::new(ChildEnd {
        child: row.id.clone(),
        key: row.key.clone(),
        state,
        reason_code: row.reason_code.clone(),
        text,
    }))
}

/// `Run k3m… (tests) has failed: exit code 1`
fn headline(row: &Row, why: Option<&String>) -> String {
    let name = row.name.as_ref().map_or_else(String::new, |name| format!(" ({name})"));
    let code = row.reason_code.as_ref().map(Word::as_str);
    let why = why.map(String::as_str).or(code).filter(|why| !why.is_empty());
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    format!("Run {}{name}, a child of this one, has ended as {}{why}.", row.id, row.state.word())
}
