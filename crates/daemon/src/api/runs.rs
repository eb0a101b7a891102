//! Runs: list, show, stop, wait, remove.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_engine::{Input, Row, Run, RunId, State as RunState, StateName, StopMode};
use outlast_store::{Filter, Remove, Resolved};
use outlast_wire::api::{HELD_HEADER, LINES, RunRow, RunView, StopRun, Waited};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::Daemon;
use super::control::tell;
use super::error::{Answer, ApiError, bad_request, unknown_run};
use super::gc;
use crate::children;
use crate::conductor::Snapshot;
use crate::output;
use crate::refusal::Refusal;
use crate::removal::{self, Removed};
use crate::service;
use crate::supervisor::Supervisor;
use crate::tail;
use crate::view::{self, Beside, Doing};
use crate::world::orphans;

/// One long poll; the client asks again.
const LONGEST_WAIT_MS: u64 = 60_000;

/// How much of a list is sent at a time.
const PAGE: usize = 64 << 10;

#[utoipa::path(get, path = "/v1/runs",
    params(("all" = Option<bool>, Query, description = "ended runs too"), ("state" = Option<String>, Query), ("label" = Option<String>, Query, description = "K=V; may be given again"), ("trigger" = Option<String>, Query, description = "made by this trigger")),
    responses((status = 200, description = "an array; or one object a line, if `application/x-ndjson` is accepted", body = [RunRow])))]
pub(crate) async fn list(
    State(supervisor): Daemon,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Answer<Response> {
    let filter = filter(&query)?;
    let shape = match headers.get(ACCEPT) {
        Some(accept) if accept == LINES => Shape::Lines,
        _ => Shape::Array,
    };
    let held_since = supervisor.held_since().map(view::rfc3339);
    let (send, receive) = mpsc::channel(2);
    // However many runs there are, a few pages of them are all that is held.
    drop(tokio::task::spawn_blocking(move || send_rows(&supervisor, &filter, shape, &send)));
    let pages = stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|page| (page, receive))
    });
    let kind = match shape {
        Shape::Array => "application/json",
        Shape::Lines => LINES,
    };
    let mut response = ([(CONTENT_TYPE, kind)], Body::from_stream(pages)).into_response();
    if let Some(since) = held_since.and_then(|since| since.parse().ok()) {
        response.headers_mut().insert(HELD_HEADER, since);
    }
    Ok(response)
}

/// How a list of objects is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Array,
    Lines,
}

type Page = Result<Bytes, std::io::Error>;

/// Sends the rows page by page; a failure cuts the answer short, which no reader takes for whole.
fn send_rows(supervisor: &Supervisor, filter: &Filter, shape: Shape, send: &mpsc::Sender<Page>) {
    let mut page = Vec::with_capacity(PAGE);
    let (mut before, between, after_none, after) = match shape {
        Shape::Array => ("[", ",", "[]", "]"),
        Shape::Lines => ("", "\n", "", "\n"),
    };
    let mut is_empty = true;
    let visited = supervisor.store.visit_rows(filter, &mut |row| {
        page.extend_from_slice(std::mem::replace(&mut before, between).as_bytes());
        is_empty = false;
        let doing = doing(supervisor, &row);
        serde_json::to_writer(&mut page, &view::row(row, doing)).expect("a row is plain data");
        if page.len() < PAGE {
            return ControlFlow::Continue(());
        }
        let full = std::mem::replace(&mut page, Vec::with_capacity(PAGE));
        match send.blocking_send(Ok(full.into())) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_client_gone) => ControlFlow::Break(()),
        }
    });
    let last = visited.map(|()| {
        page.extend_from_slice(if is_empty { after_none } else { after }.as_bytes());
        Bytes::from(page)
    });
    let _client_gone = send.blocking_send(last.map_err(std::io::Error::other));
}

/// How a run is doing: an open one from its conductor, and of any other there is nothing to say.
pub(super) fn doing(supervisor: &Supervisor, row: &Row) -> Doing {
    if !row.is_open {
        return Doing::default();
    }
    match (supervisor.handle(&row.id), supervisor.trouble_of(&row.id)) {
        (Some(handle), trouble) => {
            let run = handle.snapshot.borrow().run.clone();
            Doing::of(&run, trouble, supervisor.world.now())
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
        ApiError(
            Refusal::new("bad_request", format!("{word:?} is not a state"))
                .hint(format!("one of {}", words.join(", "))),
        )
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
    let id = resolve(&supervisor, &run).await?;
    Ok(Json(view_of(&supervisor, &id).await?))
}

#[utoipa::path(post, path = "/v1/runs/{run}/stop", params(("run" = String, Path)), request_body = StopRun,
    responses((status = 202, description = "the order is durable", body = RunView)))]
pub(crate) async fn stop(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    body: Option<Json<StopRun>>,
) -> Answer<(StatusCode, Json<RunView>)> {
    let id = resolve(&supervisor, &run).await?;
    let now = body.is_some_and(|Json(stop)| stop.now);
    let mode = if now { StopMode::Now } else { StopMode::Gracefully };
    if let Some(trouble) = supervisor.quarantined().get(&id) {
        return Err(Refusal::new(
            "unreadable_run",
            format!("run {id} cannot be read: {}", trouble.message),
        )
        .into());
    }
    tell(&supervisor, &id, Input::StopAsked { mode }).await?;
    Ok((StatusCode::ACCEPTED, Json(view_of(&supervisor, &id).await?)))
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
        let mut leaving = supervisor.leaving();
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
    let is_open = supervisor.store.row(id)?.is_none_or(|row| row.is_open);
    if is_open && removal::under_way(supervisor, id).is_none() {
        // Refused below, in the store's own words.
        return Ok(());
    }
    match gc::remove_workspace(supervisor, id)? {
        Removed::Gone => Ok(()),
        Removed::Kept { why } => {
            let refusal =
                Refusal::new("workspace_kept", format!("the workspace of {id} stays: {why}"));
            Err(refusal
                .hint(format!("`outlast rm --keep-workspace {id}` removes only the run"))
                .into())
        }
    }
}

#[utoipa::path(delete, path = "/v1/runs/{run}", params(("run" = String, Path), RemoveQuery), responses((status = 204)))]
pub(crate) async fn remove(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<RemoveQuery>,
) -> Answer<StatusCode> {
    let id = resolve(&supervisor, &run).await?;
    let is_quarantined = supervisor.quarantined().contains_key(&id);
    let how = if is_quarantined { Remove::Any } else { Remove::Ended };
    let to_remove = supervisor.clone();
    blocking(move || {
        if is_quarantined {
            refuse_alive(&id)?;
        } else if !query.keep_workspace.unwrap_or(false) {
            remove_workspace_of(&to_remove, &id)?;
        }
        remove_run(&to_remove, &id, how)?;
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// A run that cannot be read may still be running, and what runs is not to be forgotten.
fn refuse_alive(id: &RunId) -> Answer<()> {
    let alive = orphans::of_run(id);
    if alive.is_empty() {
        return Ok(());
    }
    let names: Vec<String> =
        alive.iter().map(|one| format!("pid {} ({})", one.pid, one.command)).collect();
    let pids: Vec<String> = alive.iter().map(|one| one.pid.to_string()).collect();
    let message = format!("run {id} cannot be read and is alive: {}", names.join(", "));
    Err(Refusal::new("run_is_live", message).hint(format!("kill {}", pids.join(" "))).into())
}

/// The journal first: a directory without one is swept away, a journal without its directory is a lie.
pub(super) fn remove_run(supervisor: &Supervisor, id: &RunId, how: Remove) -> Answer<()> {
    children::refuse_removal(supervisor, id)?;
    supervisor.store.remove(id, supervisor.epoch, how)?;
    supervisor.release(id);
    supervisor.watchers.note(id);
    match std::fs::remove_dir_all(supervisor.layout.run(id.as_str()).0) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// The run that is meant.
pub(super) async fn resolve(supervisor: &Arc<Supervisor>, text: &str) -> Answer<RunId> {
    let exact = RunId(text.to_owned());
    if supervisor.handle(&exact).is_some() {
        return Ok(exact);
    }
    let store = supervisor.store.clone();
    let asked = text.to_owned();
    match blocking(move || Ok(store.resolve(&asked)?)).await? {
        Resolved::One(id) => Ok(id),
        Resolved::None if text.len() < Resolved::SHORTEST_PREFIX => {
            let refusal = unknown_run(format!("there is no run {text}"));
            let hint = format!(
                "the start of an id needs {} characters or more; `outlast ps -a` lists every run",
                Resolved::SHORTEST_PREFIX
            );
            Err(refusal.hint(hint).into())
        }
        Resolved::None => Err(unknown_run(format!("there is no run {text}")).into()),
        Resolved::Many(some) => {
            let ids: Vec<&str> = some.iter().map(RunId::as_str).collect();
            let refusal =
                Refusal::new("ambiguous_run", format!("{text} is the start of several runs"));
            Err(refusal.hint(format!("for example {}", ids.join(", "))).into())
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
        reader.replay(&wanted).map_err(|message| {
            let refusal =
                Refusal::new("unreadable_run", format!("run {wanted} cannot be read: {message}"));
            refusal.hint("`outlast doctor` shows it; `outlast rm` removes it").into()
        })
    });
    Ok(Snapshot::of(&run.await?))
}

pub(super) async fn view_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<RunView> {
    let Snapshot { run, shim_pid, trouble } = snapshot_of(supervisor, id).await?;
    let dir = run
        .attempt
        .as_ref()
        .map(|last| supervisor.layout.run(id.as_str()).attempt(last.turn, last.number));
    let (output_bytes, last_output_at) = dir.as_ref().map_or((0, None), output::extent);
    let last_line = dir.as_ref().and_then(tail::last_line);
    let scope = shim_pid.and_then(service::scope_of);
    let notices = view::notices(supervisor.store.notice_counts(id)?);
    let root = root_of(supervisor, &run).await?;
    let beside =
        Beside { shim_pid, scope, output_bytes, last_output_at, last_line, trouble, notices, root };
    Ok(view::run(&run, beside, supervisor.world.now()))
}

/// The run above all others that this one belongs to; itself if it belongs to none.
async fn root_of(supervisor: &Arc<Supervisor>, run: &Arc<Run>) -> Answer<String> {
    if run.spec.parent.is_none() {
        return Ok(run.id.0.clone());
    }
    let (store, run) = (supervisor.store.clone(), run.clone());
    blocking(move || Ok(children::root(&*store, &run)?.0)).await
}

/// Work that waits for the disk, where that holds nobody up.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(answer) => answer,
        Err(error) => Err(Refusal::new("bug", format!("a reader died: {error}")).into()),
    }
}
