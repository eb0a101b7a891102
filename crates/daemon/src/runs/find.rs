//! Which run is meant, and how it is now.

use std::sync::Arc;

use outlast_engine::{Row, Run, RunId};
use outlast_store::{Filter, Journal, Resolved};
use outlast_wire::api::RunView;
use outlast_wire::codes::Code;

use crate::children;
use crate::conversation;
use crate::lanes::blocking;
use crate::mailbox::Snapshot;
use crate::output;
use crate::refusal::{Answer, Refusal};
use crate::runs::names::{called, is_plain};
use crate::runs::{room, waiting};
use crate::sight::Sight;
use crate::supervisor::{Supervisor, strays};
use crate::tail;
use crate::view::{self, Beside};
use crate::world::peers;

/// The only live run; the newest of all if none is live.
const ONLY: &str = "@only";
/// So many live runs are named where one was meant.
const MOST_LIVE: usize = 5;

/// The run that is meant: by its id, its name or the start of its id, or by one of the words for a run without naming
/// it.
pub(crate) async fn resolve(supervisor: &Arc<Supervisor>, text: &str) -> Answer<RunId> {
    if text == Resolved::LAST || text == ONLY {
        let (store, is_last) = (supervisor.ground.store.clone(), text == Resolved::LAST);
        return blocking(move || if is_last { newest(&*store) } else { only(&*store) }).await;
    }
    let exact = RunId(text.to_owned());
    if supervisor.handle(&exact).is_some() {
        return Ok(exact);
    }
    let store = supervisor.ground.store.clone();
    let asked = text.to_owned();
    match blocking(move || Ok(store.resolve(&asked)?)).await? {
        Resolved::One(id) => Ok(id),
        Resolved::None if let Some(stray) = supervisor.strays.resolve(text) => {
            Err(strays::refusal(&stray))
        }
        Resolved::None if let Some(entry) = supervisor.triggers.table.entry(text) => {
            let kind = entry.brief.source.kind();
            let refusal = Refusal::unknown_run(format!("{text} is a {kind} that has no runs"));
            Err(refusal.hint(format!("outlast ps -a --trigger {text}")))
        }
        Resolved::None if text.len() < Resolved::SHORTEST_PREFIX => {
            let refusal = Refusal::unknown_run(format!("there is no run {text}"));
            let hint = format!(
                "the start of an id needs {} characters or more:\noutlast ps -a",
                Resolved::SHORTEST_PREFIX
            );
            Err(refusal.hint(hint))
        }
        Resolved::None => Err(Refusal::unknown_run(format!("there is no run {text}"))),
        Resolved::Many(some) => {
            let ids: Vec<&str> = some.iter().map(RunId::as_str).collect();
            let message = format!("{text} is ambiguous: {}", ids.join(", "));
            Err(Refusal::new(Code::AmbiguousRun, message).hint("outlast ps -a"))
        }
    }
}

fn newest(store: &dyn Journal) -> Answer<RunId> {
    store.newest()?.ok_or_else(|| {
        Refusal::new(Code::UnknownRun, "there are no runs".to_owned()).hint("outlast run COMMAND")
    })
}

fn only(store: &dyn Journal) -> Answer<RunId> {
    let mut live: Vec<Row> = store.rows(&Filter::default())?;
    live.retain(|row| row.state.verdict().is_none());
    match live.as_slice() {
        [] => newest(store),
        [row] => Ok(row.id.clone()),
        many => {
            let names = many.iter().map(|row| row.name.as_deref().unwrap_or(row.id.as_str()));
            let names: Vec<&str> = names.take(MOST_LIVE).collect();
            let more = if many.len() > names.len() { ", …" } else { "" };
            let (count, names) = (many.len(), names.join(", "));
            let message = format!("{count} runs are live, name one: {names}{more}");
            Err(Refusal::new(Code::AmbiguousRun, message)
                .hint("name one of them, or @last for the newest:\noutlast ps"))
        }
    }
}

/// The run as it is now: from its conductor if it has one, else from the store.
pub(crate) async fn snapshot_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<Snapshot> {
    if let Some(handle) = supervisor.handle(id) {
        let snapshot = handle.snapshot.borrow().clone();
        return Ok(snapshot);
    }
    let (reader, wanted) = (supervisor.clone(), id.clone());
    let run = blocking(move || {
        reader.ground.replay(&wanted).map_err(|message| {
            let refusal = Refusal::new(
                Code::UnreadableRun,
                format!("run {wanted} cannot be read: {message}"),
            );
            let hint = format!(
                "look at what is wrong, or remove it:\noutlast doctor\noutlast rm {wanted}"
            );
            refusal.hint(hint).run(&wanted)
        })
    });
    Ok(Snapshot { trouble: supervisor.trouble_of(id), ..Snapshot::of(&run.await?) })
}

/// A refusal with the run named as its user names it, since rules know a run by its id; of one that a limit ended, with
/// what lets it go on.
pub(crate) async fn by_name<T>(
    supervisor: &Arc<Supervisor>,
    id: &RunId,
    answer: Answer<T>,
) -> Answer<T> {
    let Err(refusal) = answer else { return answer };
    let Ok(Snapshot { run, .. }) = snapshot_of(supervisor, id).await else { return Err(refusal) };
    let reader = supervisor.clone();
    let known =
        blocking(move || Ok((called(&*reader.ground.store, &run)?, room::of(&reader, &run))));
    // A journal that cannot be read has no other name for the run.
    let Ok((called, more)) = known.await else { return Err(refusal) };
    let again = format!("outlast rerun {id}");
    let refusal = match more.filter(|_| refusal.hint.as_deref() == Some(again.as_str())) {
        Some(more) => refusal.hint(format!("outlast raise {id} {more}")),
        None => refusal,
    };
    Err(if is_plain(&called) { refusal.naming(id, &called) } else { refusal })
}

pub(crate) async fn view_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<RunView> {
    let has_conductor = supervisor.handle(id).is_some();
    let Snapshot { run, shim_pid, trouble, sight } = snapshot_of(supervisor, id).await?;
    let is_known = has_conductor && sight == Sight::Known;
    let is_checked = is_known || !run.is_open() || trouble.is_some();
    let supervisor = supervisor.clone();
    blocking(move || {
        let last = run.attempt.as_ref();
        let dir = last.map(|last| {
            supervisor.ground.layout.run(run.id.as_str()).attempt(last.turn, last.number)
        });
        let (output_bytes, last_output_at) = dir.as_ref().map_or((0, None), output::extent);
        let last_line = dir.as_ref().and_then(tail::last_line);
        let scope = shim_pid.and_then(peers::scope_of);
        let notices = view::notices(supervisor.ground.store.notice_counts(&run.id)?);
        let root = root_of(&supervisor, &run)?;
        let run_dir = supervisor.ground.layout.run(run.id.as_str());
        let handle = supervisor.handle(&run.id);
        let activity =
            handle.and_then(|it| it.agent.look(&run, &run_dir, &supervisor.ground.world));
        let beside = Beside {
            shim_pid,
            scope,
            output_bytes,
            last_output_at,
            last_line,
            trouble,
            waiting: waiting::of(&supervisor, &run),
            notices,
            activity,
            root,
            called: called(&*supervisor.ground.store, &run)?,
            more_room: room::of(&supervisor, &run),
            afresh: conversation::why_afresh(&run, &run_dir),
        };
        let view = view::run(&run, beside, supervisor.ground.world.now());
        Ok(if is_checked { view } else { view::checking(view) })
    })
    .await
}

/// The run above all others that this one belongs to; itself if it belongs to none.
fn root_of(supervisor: &Supervisor, run: &Run) -> Answer<String> {
    if run.spec.parent.is_none() {
        return Ok(run.id.0.clone());
    }
    Ok(children::root(&*supervisor.ground.store, run)?.0)
}
