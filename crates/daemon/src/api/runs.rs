//! Runs: list, show, wait, remove.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use outlast_engine::{Row, Run, StateName};
use outlast_store::{Cursor, Filter, Remove};
use outlast_wire::api::{AgentRow, FORGOTTEN_HEADER, HELD_HEADER, RunRow, RunView, Waited};
use outlast_wire::codes::Code;
use serde::Deserialize;

use super::Daemon;
use super::extract::{Path, Query};
use super::pages::{self, Objects, Page, Shape};
use crate::lanes::{Lane, blocking, in_lane};
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::{by_name, resolve, view_of};
use crate::runs::remove;
use crate::sight::Sight;

use crate::supervisor::Supervisor;
use crate::supervisor::strays::Stray;
use crate::tail;
use crate::view::{self, Beside, Doing};

/// One long poll; the client asks again.
const LONGEST_WAIT_MS: u64 = 60_000;

/// How many rows of a list are read and sent at a time.
const PAGE: usize = 1024;

/// The parameters of the list. Read one by one, since a label may be given again.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only the derived description is used")]
struct ListQuery {
    /// Ended runs too.
    all: Option<bool>,
    /// Only runs in this state; an ended one implies `all`.
    state: Option<String>,
    /// `K=V`: only runs with this label. May be given again; all of them have to be there.
    label: Option<Vec<String>>,
    /// Only runs that this trigger made.
    trigger: Option<String>,
    /// At most so many rows.
    limit: Option<u64>,
    /// Only runs that are older than this one: the last run of a page, for the next page.
    before: Option<String>,
    /// Only runs that are newer than this one.
    after: Option<String>,
}

/// Lists runs, the newest first
///
/// Open runs only, unless `all` or an ended `state` is asked for. Every row has the same keys; what a run does not have is
/// null. For the next page, ask again with the last run of this one as `before`.
#[utoipa::path(get, operation_id = "list_runs", path = "/v1/runs", params(ListQuery),
    responses((status = 200, description = "an array; or one object a line, if `application/x-ndjson` is accepted", content((Vec<RunRow> = "application/json"), (RunRow = "application/x-ndjson"))), (status = 404), (status = 409)))]
pub(crate) async fn list(
    State(supervisor): Daemon,
    Query(query): Query<Vec<(String, String)>>,
    headers: HeaderMap,
) -> Answer<Response> {
    let (filter, before) = wanted(&supervisor, &query).await?;
    let held_since = supervisor.held_since().map(view::rfc3339);
    let (forgotten, is_broken) =
        (supervisor.forgotten().len(), supervisor.ground.lineage.broken().is_some());
    let shape = Shape::wanted(&headers);
    let begin = Listing { shape, left: filter.most.unwrap_or(usize::MAX), before };
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
        let mut objects = Objects::new(self.shape);
        // What the journal has forgotten comes before all that it knows.
        if self.before.is_none() && filter.after.is_none() {
            for stray in supervisor.strays.passing(filter) {
                objects.push(&view::row(stray.row, Doing::unknown(stray.trouble)));
            }
        }
        let mut rows = Vec::new();
        let most = self.left.min(PAGE);
        let store = &supervisor.ground.store;
        let next = store.visit_page(filter, self.before, most, &mut |row: Row| rows.push(row))?;
        let left = self.left - rows.len();
        // Files are read once the store is no longer, and of ended runs none.
        for row in rows {
            objects.push(&row_of(supervisor, row));
        }
        let next = next.filter(|_| left > 0);
        Ok(Page { objects, next: next.map(|before| Self { left, before: Some(before), ..self }) })
    }
}

/// A row as lists have it. Blocks.
fn row_of(supervisor: &Supervisor, row: Row) -> RunRow {
    let last_line = if row.is_open { last_line(supervisor, &row) } else { None };
    let doing = doing(supervisor, &row).with_last_line(last_line);
    view::row(row, doing)
}

/// The last line of the last attempt. Blocks.
pub(super) fn last_line(supervisor: &Supervisor, row: &Row) -> Option<String> {
    let dir = supervisor.ground.layout.run(row.id.as_str()).attempt(row.turn, row.attempt);
    (row.attempt > 0).then(|| tail::last_line(&dir)).flatten()
}

/// How a run is doing: an open one from its conductor, and of any other there is nothing to say. Blocks.
pub(super) fn doing(supervisor: &Supervisor, row: &Row) -> Doing {
    if !row.is_open {
        return Doing::default();
    }
    match (supervisor.handle(&row.id), supervisor.trouble_of(&row.id)) {
        (Some(handle), None) if handle.snapshot.borrow().sight == Sight::Checking => {
            Doing::checking()
        }
        (Some(handle), trouble) => {
            let run = handle.snapshot.borrow().run.clone();
            let world = &supervisor.ground.world;
            let dir = supervisor.ground.layout.run(run.id.as_str());
            let activity = handle.agent.look(&run, &dir, world);
            let kind = &run.spec.agent.kind;
            let agent = activity.map(|activity| AgentRow { kind: kind.clone(), activity });
            Doing::of(&run, trouble, world.now()).with_agent(agent)
        }
        (None, Some(trouble)) => Doing::unknown(trouble),
        (None, None) => Doing::checking(),
    }
}

/// Which runs are listed, and behind which of them the list begins.
async fn wanted(
    supervisor: &Arc<Supervisor>,
    query: &[(String, String)],
) -> Answer<(Filter, Option<Cursor>)> {
    let mut filter = filter(query)?;
    let named = |name: &str| query.iter().rfind(|(key, _)| key == name).map(|(_, run)| run);
    let mut before = None;
    if let Some(run) = named("before") {
        before = Some(cursor(supervisor, run).await?);
    }
    if let Some(run) = named("after") {
        filter.after = Some(cursor(supervisor, run).await?);
    }
    Ok((filter, before))
}

async fn cursor(supervisor: &Arc<Supervisor>, run: &str) -> Answer<Cursor> {
    let id = resolve(supervisor, run).await?;
    let store = supervisor.ground.store.clone();
    let missing = Refusal::unknown_run(format!("there is no run {id}"));
    blocking(move || store.cursor(&id)?.ok_or(missing)).await
}

/// Parameters that name the run beside which a page begins.
const CURSORS: [&str; 2] = ["before", "after"];

fn filter(query: &[(String, String)]) -> Answer<Filter> {
    let mut filter = Filter::default();
    for (name, value) in query {
        match name.as_str() {
            "all" => filter.all = yes_or_no(value)?,
            "state" => filter.state = Some(state_named(value)?),
            "label" => filter.labels.push(label(value)?),
            "trigger" => filter.trigger = Some(value.clone()),
            // Resolved once the rest is known to be right.
            name if CURSORS.contains(&name) => {}
            // `most` is what clients said before there was a `limit`.
            "limit" | "most" => {
                filter.most = Some(
                    value.parse().map_err(|_| bad_request(format!("{value:?} is not a number")))?,
                );
            }
            other => return Err(bad_request(format!("there is no parameter {other:?}"))),
        }
    }
    // A client that asks for an ended state means ended runs.
    filter.all |= filter.state.is_some_and(|state| state.verdict().is_some());
    Ok(filter)
}

fn yes_or_no(value: &str) -> Answer<bool> {
    match value {
        "true" | "1" | "" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(bad_request(format!("{value:?} is neither true nor false"))),
    }
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

        Refusal::new(Code::BadRequest, format!("{word:?} is not a state"))
            .hint(format!("one of {}", words.join(", ")))
    })
}

fn label(text: &str) -> Answer<(String, String)> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| bad_request(format!("label {text:?} is not of the form K=V")))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Describes a run
///
/// Everything that is known about it, what its limits are and how much of them is used.
#[utoipa::path(get, operation_id = "show_run", path = "/v1/runs/{run}", responses((status = 200, description = "the run", body = RunView)))]
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
#[into_params(parameter_in = Query)]
pub(crate) struct WaitQuery {
    /// The answer comes after this long at the latest; a minute when absent, and at most.
    timeout_ms: Option<u64>,
    /// `end`: until the run has ended or rests. `empty`: until nothing of it is alive either.
    #[serde(rename = "for")]
    until: Option<String>,
}

/// Waits until a run ends or rests
///
/// A long poll of up to a minute; the client asks again while `timed_out` is true.
#[utoipa::path(get, operation_id = "wait_for_run", path = "/v1/runs/{run}/wait", params(WaitQuery), responses((status = 200, description = "the run as it is now", body = Waited)))]
pub(crate) async fn wait(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<WaitQuery>,
) -> Answer<Json<Waited>> {
    let is_over: fn(&Run) -> bool = match query.until.as_deref() {
        None | Some("end") => rests,
        Some("empty") => |run| (!run.is_open() && rests(run)) || run.is_stop_incomplete(),
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
    run.ended_at.is_some() || run.state.is_blocked()
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// Forget the run and leave its workspace where it is.
    keep_workspace: Option<bool>,
}

/// Removes an ended run
///
/// Its events, its directory, and its workspace unless `keep_workspace` says otherwise.
#[utoipa::path(delete, operation_id = "remove_run", path = "/v1/runs/{run}", params(RemoveQuery),
    responses((status = 204, description = "the run is gone"), (status = 403)))]
pub(crate) async fn remove(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<RemoveQuery>,
    caller: Caller,
) -> Answer<StatusCode> {
    if let Some(id) = supervisor.strays.resolve(&run) {
        caller.may(&supervisor, Right::Steer, &id).await?;
        return remove::stray(supervisor, id).await.map(|()| StatusCode::NO_CONTENT);
    }
    let id = resolve(&supervisor, &run).await?;
    caller.may(&supervisor, Right::Steer, &id).await?;
    let is_quarantined = supervisor.quarantined().contains_key(&id);
    let how = if is_quarantined { Remove::Any } else { Remove::Ended };
    let (to_remove, of) = (supervisor.clone(), id.clone());
    let removed = in_lane(Lane::Removals, move || {
        if is_quarantined {
            remove::refuse_alive(&to_remove, &of, |pids| format!("kill {}", pids.join(" ")))?;
        } else if !query.keep_workspace.unwrap_or(false) {
            remove::workspace_of(&to_remove, &of)?;
        }
        remove::run(&to_remove, &of, how)?;
        Ok(StatusCode::NO_CONTENT)
    });
    by_name(&supervisor, &id, removed.await).await
}
