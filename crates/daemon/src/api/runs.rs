//! Runs: list, show, wait, remove.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use outlast_engine::{Row, Run, RunId, State as RunState, StateName};
use outlast_store::{Cursor, Filter, Remove, Resolved};
use outlast_wire::api::{FORGOTTEN_HEADER, HELD_HEADER, RunRow, RunView, Waited};
use serde::Deserialize;

use super::Daemon;
use super::callers::{Caller, Right};
use super::gc;
use super::pages::{self, Objects, Page, Shape};
use crate::children;
use crate::directory::Contents;
use crate::lanes::{Lane, blocking, in_lane};
use crate::mailbox::Snapshot;
use crate::output;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::removal::{self, Removed};

use crate::supervisor::Supervisor;
use crate::supervisor::strays::{self, Stray};
use crate::tail;
use crate::view::{self, Beside, Doing};
use crate::world::{files, orphans, peers};

/// One long poll; the client asks again.
const LONGEST_WAIT_MS: u64 = 60_000;

/// How many rows of a list are read and sent at a time.
const PAGE: usize = 1024;

#[utoipa::path(get, path = "/v1/runs",
    params(("all" = Option<bool>, Query, description = "ended runs too"), ("state" = Option<String>, Query), ("label" = Option<String>, Query, description = "K=V; may be given again"), ("trigger" = Option<String>, Query, description = "made by this trigger")),
    responses((status = 200, description = "an array; or one object a line, if `application/x-ndjson` is accepted", body = [RunRow])))]
pub(crate) async fn list(
    State(supervisor): Daemon,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Answer<Response> {
    let filter = filter(&query)?;
    let held_since = supervisor.held_since().map(view::rfc3339);
    let (forgotten, is_broken) =
        (supervisor.forgotten().len(), supervisor.ground.lineage.broken().is_some());
    let shape = Shape::wanted(&headers);
    let begin = Listing { shape, left: filter.most.unwrap_or(usize::MAX), before: None };
    let read = move |at: Listing| {
        let (supervisor, filter) = (supervisor.clone(), filter.clone());
        blocking(move || at.page(&supervisor, &filter))
    };
    let mut response = pages::answer(shape, begin, read);
    if let Some(since) = held_since.and_then(|since| since.parse().ok()) {
        response.headers_mut().insert(HELD_HEADER, since);
    }
    if forgotten > 0 || is_broken {
        response.headers_mut().insert(FORGOTTEN_HEADER, forgotten.into());
    }
    Ok(response)
}

/// How far a list has come.
struct Listing {
    shape: Shape,
    /// So many rows are still wanted.
    left: usize,
    before: Option<Cursor>,
}

impl Listing {
    fn page(self, supervisor: &Supervisor, filter: &Filter) -> Answer<Page<Self>> {
        let read = supervisor.ground.store.rows_page(filter, self.before, self.left.min(PAGE))?;
        let left = self.left - read.rows.len();
        let mut objects = Objects::new(self.shape);
        // What the journal has forgotten comes before all that it knows.
        if self.before.is_none() {
            for stray in supervisor.strays.passing(filter) {
                objects.push(&view::row(stray.row, Doing::unknown(stray.trouble)));
            }
        }
        for row in read.rows {
            let doing = doing(supervisor, &row);
            objects.push(&view::row(row, doing));
        }
        let next = read.next.filter(|_| left > 0);
        Ok(Page { objects, next: next.map(|before| Self { left, before: Some(before), ..self }) })
    }
}

/// How a run is doing: an open one from its conductor, and of any other there is nothing to say.
pub(super) fn doing(supervisor: &Supervisor, row: &Row) -> Doing {
    if !row.is_open {
        return Doing::default();
    }
    match (supervisor.handle(&row.id), supervisor.trouble_of(&row.id)) {
        (Some(handle), trouble) => {
            let run = handle.snapshot.borrow().run.clone();
            Doing::of(&run, trouble, supervisor.ground.world.now())
        }
        (None, Some(trouble)) => Doing::unknown(trouble),
        (None, None) => Doing::default(),
    }
}

fn filter(query: &[(String, String)]) -> Answer<Filter> {
    let mut filter = Filter::default();
    for (name, value) in query {
        match name.as_str() {
            "all" => filter.all = value == "true" || value == "1" || value.is_empty(),
            "state" => filter.state = Some(state_named(value)?),
            "label" => filter.labels.push(label(value)?),
            "trigger" => filter.trigger = Some(value.clone()),
            "most" => {
                filter.most = Some(
                    value.parse().map_err(|_| bad_request(format!("{value:?} is not a number")))?,
                );
            }
            other => return Err(bad_request(format!("there is no parameter {other:?}"))),
        }
    }
    // Whoever asks for an ended state means ended runs.
    filter.all |= filter.state.is_some_and(|state| state.verdict().is_some());
    Ok(filter)
}

fn state_named(word: &str) -> Answer<StateName> {
    use StateName::{
        Blocked, Completed, Exhausted, Failed, Finishing, Preparing, Queued, Running, Stopped,
        Verifying, Waiting,
    };
    let all = [
        Queued, Preparing, Running, Waiting, Verifying, Blocked, Finishing, Completed, Failed,
        Stopped, Exhausted,
    ];
    all.into_iter().find(|state| state.word() == word).ok_or_else(|| {
        let words: Vec<&str> = all.iter().map(|state| state.word()).collect();

        Refusal::new("bad_request", format!("{word:?} is not a state"))
            .hint(format!("one of {}", words.join(", ")))
    })
}

fn label(text: &str) -> Answer<(String, String)> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| bad_request(format!("label {text:?} is not of the form K=V")))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[utoipa::path(get, path = "/v1/runs/{run}", params(("run" = String, Path, description = "id, unique prefix of 3 or more, or name")),
    responses((status = 200, body = RunView)))]
pub(crate) async fn show(
    State(supervisor): Daemon,
    Path(run): Path<String>,
) -> Answer<Json<RunView>> {
    if let Some(stray) = supervisor.strays.resolve(&run).and_then(|id| supervisor.strays.get(&id)) {
        return in_lane(Lane::Surveys, move || preview(&supervisor, stray)).await;
    }
    let id = resolve(&supervisor, &run).await?;
    // A shim that does not answer is found out by asking it, and who looks wants to know.
    if let Some(handle) = supervisor.handle(&id) {
        handle.output.asked.notify_one();
    }
    Ok(Json(view_of(&supervisor, &id).await?))
}

/// A run that the journal does not know, as `recover` would rebuild it.
fn preview(supervisor: &Supervisor, stray: Stray) -> Answer<Json<RunView>> {
    let run = supervisor.rebuild(&stray.row.id)?.preview(&supervisor.ground.world);
    let root = run.spec.parent.as_ref().map_or_else(|| run.id.0.clone(), |parent| parent.0.clone());
    let beside = Beside { trouble: Some(stray.trouble), root, ..Beside::default() };
    Ok(Json(view::run(&run, beside, supervisor.ground.world.now())))
}

#[derive(Deserialize, utoipa::IntoParams)]
pub(crate) struct WaitQuery {
    timeout_ms: Option<u64>,
    /// `end`: until the run has ended or rests. `empty`: until nothing of it is alive either.
    #[serde(rename = "for")]
    until: Option<String>,
}

#[utoipa::path(get, path = "/v1/runs/{run}/wait", params(("run" = String, Path), WaitQuery), responses((status = 200, body = Waited)))]
pub(crate) async fn wait(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Answer<Json<Waited>> {
    let is_over: fn(&Run) -> bool = match query.until.as_deref() {
        None | Some("end") => rests,
        Some("empty") => |run| {
            (!run.is_open() && rests(run))
                || run.reason_code().as_deref() == Some("stop_incomplete")
        },
        Some(other) => {
            return Err(bad_request(format!("for={other} is neither `end` nor `empty`")));
        }
    };
    let id = resolve(&supervisor, &run).await?;
    let limit =
        Duration::from_millis(query.timeout_ms.unwrap_or(LONGEST_WAIT_MS).min(LONGEST_WAIT_MS));
    let mut timed_out = false;
    if let Some(handle) = supervisor.handle(&id) {
        let mut snapshot = handle.snapshot;
        let mut leaving = supervisor.ground.leaving();
        tokio::select! {
            // A conductor that is gone has nothing more to say: the journal has it.
            _ = snapshot.wait_for(|seen| is_over(&seen.run)) => {}
            _ = leaving.wait_for(Option::is_some) => timed_out = true,
            () = tokio::time::sleep(limit) => timed_out = true,
        }
    }
    Ok(Json(Waited { timed_out, run: view_of(&supervisor, &id).await? }))
}

/// True once the run goes no further by itself.
fn rests(run: &Run) -> bool {
    run.ended_at.is_some() || run.state == RunState::Blocked
}

#[derive(Deserialize, utoipa::IntoParams)]
pub(crate) struct RemoveQuery {
    /// Forget the run and leave its workspace where it is.
    keep_workspace: Option<bool>,
}

/// What a run worked in goes with it, unless work would be lost by that.
fn remove_workspace_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<()> {
    let is_open = supervisor.ground.store.row(id)?.is_none_or(|row| row.is_open);
    if is_open && removal::under_way(supervisor, id).is_none() {
        // Refused below, in the store's own words.
        return Ok(());
    }
    match gc::remove_workspace(supervisor, id)? {
        Removed::Gone => Ok(()),
        Removed::Kept { why } => {
            let refusal =
                Refusal::new("workspace_kept", format!("the workspace of {id} stays: {why}"));
            Err(refusal.hint(format!("`outlast rm --keep-workspace {id}` removes only the run")))
        }
    }
}

#[utoipa::path(delete, path = "/v1/runs/{run}", params(("run" = String, Path), RemoveQuery), responses((status = 204)))]
pub(crate) async fn remove(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<RemoveQuery>,
    caller: Caller,
) -> Answer<StatusCode> {
    if let Some(id) = supervisor.strays.resolve(&run) {
        caller.may(&supervisor, Right::Steer, &id).await?;
        return in_lane(Lane::Chores, move || remove_stray(&supervisor, &id)).await;
    }
    let id = resolve(&supervisor, &run).await?;
    caller.may(&supervisor, Right::Steer, &id).await?;
    let is_quarantined = supervisor.quarantined().contains_key(&id);
    let how = if is_quarantined { Remove::Any } else { Remove::Ended };
    let to_remove = supervisor.clone();
    in_lane(Lane::Removals, move || {
        if is_quarantined {
            refuse_alive(&to_remove, &id, |pids| format!("kill {}", pids.join(" ")))?;
        } else if !query.keep_workspace.unwrap_or(false) {
            remove_workspace_of(&to_remove, &id)?;
        }
        remove_run(&to_remove, &id, how)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// A directory that the journal does not know goes only because a person named it, and only if nothing of it
/// is alive.
fn remove_stray(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<StatusCode> {
    let Some(_claim) = supervisor.claim(id) else {
        return Err(Refusal::new("busy", format!("run {id} is being changed")).hint("ask again"));
    };
    refuse_alive(supervisor, id, |_| format!("`outlast stop {id}` ends it first"))?;
    std::fs::remove_dir_all(supervisor.ground.layout.run(id.as_str()).0)?;
    supervisor.strays.forget(id);
    supervisor.watchers.note(id);
    Ok(StatusCode::NO_CONTENT)
}

/// A run that cannot be read may still be running, and what runs is not to be forgotten.
fn refuse_alive(
    supervisor: &Supervisor,
    id: &RunId,
    hint: impl FnOnce(&[String]) -> String,
) -> Answer<()> {
    let dir = supervisor.ground.layout.run(id.as_str());
    let is_held = match Contents::read(&dir) {
        Ok(contents) => strays::is_alive(&dir, &contents),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    let alive = orphans::of_run(id)?;
    if alive.is_empty() && !is_held {
        return Ok(());
    }
    let names: Vec<String> =
        alive.iter().map(|one| format!("pid {} ({})", one.pid, one.command)).collect();
    let pids: Vec<String> = alive.iter().map(|one| one.pid.to_string()).collect();
    let message = format!("run {id} cannot be read and is alive: {}", names.join(", "));
    Err(Refusal::new("run_is_live", message).hint(hint(&pids)))
}

/// The journal first: a journal without its directory is a lie. The directory says before that its removal was
/// asked for, so that the next daemon can finish it.
pub(super) fn remove_run(supervisor: &Supervisor, id: &RunId, how: Remove) -> Answer<()> {
    children::refuse_removal(supervisor, id)?;
    let dir = supervisor.ground.layout.run(id.as_str());
    match files::write(&dir.removing(), b"") {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound && !is_full(&error) => {
            return Err(error.into());
        }
        Ok(()) | Err(_) => {}
    }
    if let Err(error) = supervisor.ground.store.remove(id, supervisor.ground.epoch, how) {
        files::remove(&dir.removing())?;
        return Err(error.into());
    }
    supervisor.release(id);
    supervisor.watchers.note(id);
    if how == Remove::Any {
        // One that could not be read was open until now.
        supervisor.triggers.desk.runs_may_have_ended();
    }
    match std::fs::remove_dir_all(dir.0) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Without the mark the directory is kept if this daemon dies in between, and shown by the next.
fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

/// The run that is meant.
pub(super) async fn resolve(supervisor: &Arc<Supervisor>, text: &str) -> Answer<RunId> {
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
        Resolved::None if text.len() < Resolved::SHORTEST_PREFIX => {
            let refusal = Refusal::unknown_run(format!("there is no run {text}"));
            let hint = format!(
                "the start of an id needs {} characters or more; `outlast ps -a` lists every run",
                Resolved::SHORTEST_PREFIX
            );
            Err(refusal.hint(hint))
        }
        Resolved::None => Err(Refusal::unknown_run(format!("there is no run {text}"))),
        Resolved::Many(some) => {
            let ids: Vec<&str> = some.iter().map(RunId::as_str).collect();
            let refusal =
                Refusal::new("ambiguous_run", format!("{text} is the start of several runs"));
            Err(refusal.hint(format!("for example {}", ids.join(", "))))
        }
    }
}

/// The run as it is now: from its conductor if it has one, else from the store.
pub(super) async fn snapshot_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<Snapshot> {
    if let Some(handle) = supervisor.handle(id) {
        let snapshot = handle.snapshot.borrow().clone();
        return Ok(snapshot);
    }
    let (reader, wanted) = (supervisor.clone(), id.clone());
    let run = blocking(move || {
        reader.ground.replay(&wanted).map_err(|message| {
            let refusal =
                Refusal::new("unreadable_run", format!("run {wanted} cannot be read: {message}"));
            let hint = "`outlast doctor` shows it; `outlast rm` removes it";
            refusal.hint(hint).run(&wanted)
        })
    });
    Ok(Snapshot { trouble: supervisor.trouble_of(id), ..Snapshot::of(&run.await?) })
}

pub(super) async fn view_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<RunView> {
    let Snapshot { run, shim_pid, trouble } = snapshot_of(supervisor, id).await?;
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
        let beside = Beside {
            shim_pid,
            scope,
            output_bytes,
            last_output_at,
            last_line,
            trouble,
            notices,
            root,
        };
        Ok(view::run(&run, beside, supervisor.ground.world.now()))
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
