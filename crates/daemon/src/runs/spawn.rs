//! Children by key: what an asker for a child of a run gets.
//!
//! `create::make` with a parent comes here first, so the CLI, the API and every other client get the same. The parent's
//! conductor decides, in one append: whether there is a child under the key, what the new child is given, and that it
//! is meant to be made. Only then the child is made, under the id that the parent's journal has. The answers:
//!
//! - the child under the key goes on or has completed: that child, `existed`, and nothing runs;
//! - it failed: another is made, up to `tries` runs under one key, then the last failure is the answer;
//! - its end was not observed: refused with `in_doubt`, unless `lost` says `again` or `keep`;
//! - it was asked to do something else: refused with `key_conflict`;
//! - it has ended and was removed since: what its parent knows of it, `removed`, and nothing runs;
//! - it was meant to be made and the daemon died: it is made now, under the same id.
//!
//! For clients of the socket: `POST /v1/runs` with `parent`, `key` and `tree{tries, lost, …}` spawns,
//! `GET /v1/runs/{run}/children` lists with results in the order delivered (`cursor`), `GET /v1/runs/{child}` is its
//! state and summary, `GET /v1/runs/{child}/output` what it wrote, and `POST /v1/runs/{child}/stop` stops it.
//! Inside the daemon: [`admit`], [`children_of`], [`child_view`].

use std::collections::HashSet;
use std::sync::Arc;

use outlast_engine::{
    Admission, Again, Amounts, CannotSpawn, Channel, Child, Fact, Input, Limits, Lost, OnEnd,
    ReasonCode, Room, RoomWanted, Run, RunId, RunSpec, SpawnAsk, Strategy, Unreported, Want, Word,
};
use outlast_wire::api::{AskedTree, ChildView, CreateRun, Created, TreeAmounts};
use outlast_wire::codes::Code;
use outlast_wire::hook;
use sha2::{Digest, Sha256};

use super::find::snapshot_of;
use super::tell::tell;
use crate::children;
use crate::lanes::blocking;
use crate::refusal::{Answer, Refusal, bad_request};
use crate::supervisor::Supervisor;

const MOST_TRIES: u32 = 100;
/// So many events are read at once where one is looked for.
const EVENTS_AT_ONCE: usize = 512;

/// What a request asks for a run and those below it; a loop file may say the rest.
pub(super) fn room(asked: &AskedTree) -> Room {
    Room {
        turns: asked.max_turns,
        runs: asked.max_runs,
        depth: asked.max_depth,
        width: asked.max_width,
        ..Room::default()
    }
}

/// What a request says of the children of a run that ends.
pub(super) fn on_end(asked: &AskedTree) -> Answer<Option<OnEnd>> {
    let Some(word) = asked.children.as_deref() else { return Ok(None) };
    let policy = OnEnd::of(word).ok_or_else(|| {
        bad_request(format!("{word:?} is no policy for children"))
            .hint(format!("one of {}", OnEnd::WORDS.join(", ")))
    })?;
    Ok(Some(policy))
}

/// The question that a parent is asked for a child.
pub(super) fn ask(child: &RunId, asked: &CreateRun, spec: &RunSpec) -> Answer<SpawnAsk> {
    Ok(SpawnAsk {
        child: child.clone(),
        key: asked.key.clone(),
        digest: digest(asked, spec),
        wants: wants(asked, spec),
        again: again(asked)?,
    })
}

fn again(asked: &CreateRun) -> Answer<Again> {
    let AskedTree { tries, lost, .. } = &asked.tree;
    if (tries.is_some() || lost.is_some()) && (asked.key.is_none() || asked.parent.is_none()) {
        let refusal = Refusal::new(Code::NoEffect, "--tries and --lost are about a child's key");
        return Err(refusal.hint("name the work with --parent RUN --key KEY"));
    }
    let usual = Again::default();
    let tries = tries.unwrap_or(usual.tries);
    if !(1..=MOST_TRIES).contains(&tries) {
        return Err(bad_request(format!("{tries} is no number of runs under one key"))
            .hint(format!("1 to {MOST_TRIES}")));
    }
    let lost = match lost.as_deref() {
        None => usual.lost,
        Some(word) => Lost::of(word).ok_or_else(|| {
            let words = Lost::ALL.map(Lost::word).join(", ");
            bad_request(format!("{word:?} does not say what to do")).hint(format!("one of {words}"))
        })?,
    };
    Ok(Again { tries, lost })
}

/// Of what the child is asked to do. Its limits and its environment may differ from one asking to the next.
fn digest(asked: &CreateRun, spec: &RunSpec) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update(bytes.len().to_be_bytes());
        hash.update(bytes);
    };
    part(spec.agent.kind.as_bytes());
    spec.agent.command.iter().for_each(|word| part(word.as_bytes()));
    part(b"");
    part(spec.task.as_deref().unwrap_or_default().as_bytes());
    part(spec.workflow.as_ref().map_or("", |file| file.sha256.as_str()).as_bytes());
    // A directory of its own is named after the run.
    let dir = if spec.workspace.strategy == Strategy::Inplace { spec.dir.as_str() } else { "" };
    part(dir.as_bytes());
    part(asked.stdin.as_ref().map_or(&b""[..], |stdin| stdin.as_os_str().as_bytes()));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A plain command takes no tokens and no money, unless it asks for some.
fn wants(asked: &CreateRun, spec: &RunSpec) -> RoomWanted {
    let is_plain = spec.unreported() == Unreported::Nothing;
    let want = |asked: Option<u64>, limit: Option<u64>| match (asked, limit) {
        (Some(asked), limit) => Want::AtMost(limit.map_or(asked, |limit| asked.min(limit))),
        (None, _) if is_plain => Want::Usually(0),
        (None, Some(limit)) => Want::AtMost(limit),
        (None, None) => Want::Half,
    };
    let turns = spec.limits.max_turns.filter(|_| spec.workflow.is_some()).map(u64::from);
    // What the flags and the file ask for together.
    let room = &spec.tree.room;
    let turns = match (room.turns, turns) {
        (Some(asked), _) => Want::AtMost(asked),
        (None, Some(turns)) => Want::Usually(turns),
        (None, None) if is_plain => Want::Usually(1),
        (None, None) => Want::Half,
    };
    RoomWanted {
        turns,
        tokens: want(asked.limits.max_tokens, spec.limits.max_tokens),
        cost_usd_micros: want(asked.limits.max_cost_usd_micros, spec.limits.max_cost_usd_micros),
        runs: room.runs,
        depth: room.depth,
        width: room.width,
    }
}

/// What the parent says.
pub(crate) enum Admitted {
    /// The child is meant to be made, under the id that was asked for.
    Make { granted: Room, try_number: u32 },
    /// This child has the key, or the id. One that its parent knows to have been made is never made again.
    Same(RunId),
    /// The id was used up by a child that was never made.
    UsedUp,
}

/// Asks the parent for the child, and has it write down what follows.
pub(crate) async fn admit(
    supervisor: &Arc<Supervisor>,
    parent: &RunId,
    ask: SpawnAsk,
) -> Answer<Admitted> {
    let before = snapshot_of(supervisor, parent).await?.run;
    if let Some(known) = of_id(&before, &ask.child) {
        return Ok(known);
    }
    let admission = before.admit(&ask).map_err(|why| refusal(&before, &ask, &why))?;
    if let Admission::Same(child) = admission {
        return Ok(Admitted::Same(child));
    }
    let (asker, above) = (supervisor.clone(), parent.clone());
    blocking(move || children::refuse_depth(&asker, &above)).await?;
    let after = tell(supervisor, parent, Input::SpawnAsked(Box::new(ask.clone()))).await?;
    hook!("daemon.child-announced");
    if let Some(known) = of_id(&after, &ask.child) {
        return Ok(known);
    }
    match after.admit(&ask) {
        Ok(Admission::Same(child)) => Ok(Admitted::Same(child)),
        Ok(Admission::New { .. }) => Err(super::tell::not_taken(parent)),
        Err(why) => Err(refusal(&after, &ask, &why)),
    }
}

/// What a parent that knows of this id says.
fn of_id(parent: &Run, id: &RunId) -> Option<Admitted> {
    let child = parent.children.get(id)?;
    Some(match &child.end {
        Some(end) if end.is_unmade() => Admitted::UsedUp,
        Some(_) => Admitted::Same(id.clone()),
        // It may have been removed since, and a run that has ended gets no children.
        None if parent.has_ended() => Admitted::Same(id.clone()),
        None => Admitted::Make { granted: child.granted, try_number: child.try_number },
    })
}

/// The spec of a child with what its parent has given it.
pub(super) fn bounded(mut spec: RunSpec, key: Option<&str>, granted: Room, tries: u32) -> RunSpec {
    let some = |given: Option<u64>| given.filter(|given| *given > 0);
    let lower = |limit: Option<u64>, given: Option<u64>| match (limit, some(given)) {
        (Some(limit), Some(given)) => Some(limit.min(given)),
        (limit, given) => limit.or(given),
    };
    let limits = spec.limits;
    spec.limits = Limits {
        max_tokens: lower(limits.max_tokens, granted.tokens),
        max_cost_usd_micros: lower(limits.max_cost_usd_micros, granted.cost_usd_micros),
        ..limits
    };
    spec.tree.room = granted;
    spec.key =
        key.zip(spec.parent.as_ref()).map(|(key, parent)| children::scoped(parent, key, tries));
    spec
}

/// The children of a run, in the order in which they were asked for.
pub(crate) async fn children_of(
    supervisor: &Arc<Supervisor>,
    run: &RunId,
) -> Answer<Vec<ChildView>> {
    let parent = snapshot_of(supervisor, run).await?.run;
    let mut children: Vec<ChildView> = parent.children.iter().map(view).collect();
    children.sort_by_key(|child| child.number);
    let (supervisor, run) = (supervisor.clone(), run.clone());
    blocking(move || {
        let rows = supervisor.ground.store.children(&run)?;
        let there: HashSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        for child in children.iter_mut().filter(|child| was_made(child)) {
            // A row that cannot be read is not in the list.
            child.removed = !there.contains(child.id.as_str())
                && matches!(supervisor.ground.store.row(&RunId(child.id.clone())), Ok(None));
        }
        Ok(children)
    })
    .await
}

/// True of a child that has ended and was a run.
fn was_made(child: &ChildView) -> bool {
    let is_unmade = child.reason_code.as_ref().is_some_and(|code| *code == ReasonCode::NotMade);
    child.state.is_some() && !is_unmade
}

/// What a parent knows of a child that has been removed: how it ended and what it said last. Its output is gone.
pub(super) async fn removed(
    supervisor: &Arc<Supervisor>,
    parent: Option<&RunId>,
    child: &RunId,
) -> Answer<Created> {
    let known = child_view(supervisor, parent, child).await;
    let Some((parent, mut view)) = parent.zip(known.filter(|view| view.state.is_some())) else {
        let message = format!("the run above run {child} has ended, and run {child} is not there");
        return Err(
            Refusal::new(Code::HasEnded, message).hint("only a run that goes on has children")
        );
    };
    view.removed = true;
    view.summary = summary_of(supervisor, parent, child).await?;
    let state = view.state.as_ref().map_or("", Word::as_str);
    let warnings = vec![format!(
        "run {child} has ended as {state} and was removed, and its output with it; it is not run again"
    )];
    let (id, child) = (child.0.clone(), Some(view));
    Ok(Created { id, existed: true, warnings, waiting: None, envelope: None, child })
}

/// What a child said last, as the journal of its parent has it.
async fn summary_of(
    supervisor: &Arc<Supervisor>,
    parent: &RunId,
    child: &RunId,
) -> Answer<Option<String>> {
    let (store, parent, child) = (supervisor.ground.store.clone(), parent.clone(), child.clone());
    blocking(move || {
        let mut after = 0;
        loop {
            let page = store.events(&parent, after, EVENTS_AT_ONCE)?;
            let Some(last) = page.last() else { return Ok(None) };
            after = last.seq;
            let found = page.iter().find_map(|event| match &event.fact {
                Fact::ChildSettled { child: of, summary, .. } if *of == child => Some(summary),
                _ => None,
            });
            if let Some(summary) = found {
                return Ok(Some(summary.clone()).filter(|summary| !summary.is_empty()));
            }
        }
    })
    .await
}

/// What the parent of a run knows of it; nothing of a run that is no child, or whose parent is gone.
pub(crate) async fn child_view(
    supervisor: &Arc<Supervisor>,
    parent: Option<&RunId>,
    child: &RunId,
) -> Option<ChildView> {
    let parent = snapshot_of(supervisor, parent?).await.ok()?.run;
    parent.children.get_key_value(child).map(view)
}

fn view((id, child): (&RunId, &Child)) -> ChildView {
    let end = child.end.as_ref();
    ChildView {
        id: id.0.clone(),
        number: child.number,
        key: child.key.clone(),
        try_number: child.try_number,
        state: end.map(|end| end.verdict.name().into()),
        reason_code: end.and_then(|end| end.reason_code.clone()),
        cursor: end.map(|end| end.cursor),
        exit: end.and_then(|end| end.exit),
        in_doubt: end.is_some_and(outlast_engine::SettledChild::is_in_doubt),
        reserved: amounts(&child.granted.reserved()),
        charged: end.map(|end| amounts(&end.charged)),
        spend_known: end.map(|end| end.known),
        removed: false,
        summary: None,
    }
}

fn amounts(amounts: &Amounts) -> TreeAmounts {
    let Amounts { turns, tokens, cost_usd_micros, runs } = *amounts;
    TreeAmounts { turns, tokens, cost_usd_micros, runs }
}

fn refusal(parent: &Run, ask: &SpawnAsk, why: &CannotSpawn) -> Refusal {
    let id = &parent.id;
    let key = ask.key.as_deref().unwrap_or_default();
    match why {
        CannotSpawn::HasEnded(verdict) => {
            let message = format!("run {id} has ended: {}", verdict.name().word());
            Refusal::new(Code::HasEnded, message).hint("only a run that goes on has children")
        }
        CannotSpawn::IsEnding => Refusal::new(Code::IsEnding, format!("run {id} is being ended"))
            .hint("only a run that goes on has children"),
        CannotSpawn::Conflict(child) => {
            let message = format!(
                "run {child} has key {key:?} below run {id} and is a different command, directory or task"
            );
            let hint = format!("use another --key, or look at that run:\noutlast show {child}");
            Refusal::new(Code::KeyConflict, message).hint(hint).run(child)
        }
        CannotSpawn::InDoubt(child) => {
            let message = format!(
                "the end of run {child}, which has key {key:?} below run {id}, was not observed"
            );
            let hint = "look at what it did; then ask with --lost again to make another, or --lost keep to leave it at that";
            Refusal::new(Code::InDoubt, message).hint(hint).run(child)
        }
        CannotSpawn::TooDeep => {
            let message = format!("run {id} may have no runs below it");
            Refusal::new(Code::TooDeep, message)
                .hint("--tree-depth of a run above it says how deep its tree may be")
        }
        CannotSpawn::TooWide(most) => {
            let message =
                format!("{most} children of run {id} go on, and it may have no more at once");
            Refusal::new(Code::TooWide, message)
                .hint(format!("wait until one has ended:\noutlast tree {id}"))
        }
        CannotSpawn::TooMany => {
            let message = format!("run {id} has {} children", outlast_engine::MOST_CHILDREN);
            Refusal::new(Code::TooManyChildren, message)
                .hint("let one of its children make the rest")
        }
        CannotSpawn::Spent { channel, pot } => {
            let (what, flag) = words(*channel);
            let total = pot.total.unwrap_or(0);
            let (reserved, committed) = (pot.reserved, pot.committed());
            let message = format!(
                "run {id} has no {what} left to give to a child: of {total}, {committed} are used and {reserved} reserved"
            );
            Refusal::new(Code::TreeSpent, message)
                .hint(format!("give each child less with {flag}, or wait until one has ended"))
        }
    }
}

fn words(channel: Channel) -> (&'static str, &'static str) {
    match channel {
        Channel::Turns => ("turns", "--tree-turns"),
        Channel::Tokens => ("tokens", "--max-tokens"),
        Channel::Money => ("money (in millionths of a dollar)", "--max-cost"),
        Channel::Runs => ("runs", "--tree-runs"),
    }
}
