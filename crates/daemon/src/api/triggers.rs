//! Triggers: add, list, run, pause, resume, remove; and when a schedule would come next.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use outlast_engine::{RunId, Time};
use outlast_store::{Delivery, Settlement, TriggerChange};
use outlast_wire::api::{
    AddTrigger, NextTime, NextTimes, TriggerAdded, TriggerRan, TriggerRun, TriggerSource,
    TriggerView, When,
};

use super::Daemon;
use super::error::{Answer, ApiError, bad_request, unknown_trigger};
use super::runs::blocking;
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::triggers::make::{self, Unmade};
use crate::triggers::schedule::Schedule;
use crate::triggers::{self, Entry, add, view};
use crate::view::rfc3339;

const MOST_NEXT: usize = 1000;
const LONGEST_OCCURRENCE: usize = 200;

#[utoipa::path(get, path = "/v1/triggers", responses((status = 200, body = [TriggerView])))]
pub(crate) async fn list(State(supervisor): Daemon) -> Answer<Json<Vec<TriggerView>>> {
    blocking(move || Ok(Json(view::all(&supervisor)?))).await
}

#[utoipa::path(get, path = "/v1/triggers/{trigger}", responses((status = 200, body = TriggerView)))]
pub(crate) async fn show(
    State(supervisor): Daemon,
    Path(name): Path<String>,
) -> Answer<Json<TriggerView>> {
    let all = blocking(move || Ok(view::all(&supervisor)?)).await?;
    let found = all.into_iter().find(|trigger| trigger.name == name);
    found.map(Json).ok_or_else(|| missing(&name))
}

#[utoipa::path(post, path = "/v1/triggers", request_body = AddTrigger, responses((status = 201, body = TriggerAdded)))]
pub(crate) async fn add(
    State(supervisor): Daemon,
    body: Result<Json<AddTrigger>, JsonRejection>,
) -> Answer<(StatusCode, Json<TriggerAdded>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let added = to_the_end(add_checked(supervisor, asked)).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

async fn add_checked(supervisor: Arc<Supervisor>, asked: AddTrigger) -> Answer<TriggerAdded> {
    let checker = supervisor.clone();
    let checked = blocking(move || add::check(&checker, asked)).await?;
    triggers::change(&supervisor, TriggerChange::Add(checked.stored)).await?;
    let entry = checked.entry;
    let name = entry.spec.name.clone();
    supervisor.triggers.insert(&name, entry.clone());
    supervisor.triggers.wake();
    tracing::info!(trigger = name, kind = entry.spec.source.kind(), "added");
    let trigger = blocking(move || Ok(view::one(&supervisor, &entry)?)).await?;
    let (secret, warnings) = (checked.secret, checked.warnings);
    Ok(TriggerAdded { trigger, secret, warnings })
}

/// In a task of its own: a client that hangs up must not leave what is written and not known, or half done.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Answer<T>> + Send + 'static,
) -> Answer<T> {
    #[expect(clippy::disallowed_methods, reason = "ends with a few writes, and is awaited here")]
    let done = tokio::spawn(work).await;
    done.map_err(|error| Refusal::new("bug", format!("a change of a trigger died: {error}")))?
}

#[utoipa::path(delete, path = "/v1/triggers/{trigger}", responses((status = 204, description = "it makes no more runs; those that it made go on")))]
pub(crate) async fn remove(
    State(supervisor): Daemon,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    to_the_end(async move {
        triggers::change(&supervisor, TriggerChange::Remove { trigger: name.clone() }).await?;
        supervisor.triggers.forget(&name);
        tracing::info!(trigger = name, "removed");
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

#[utoipa::path(post, path = "/v1/triggers/{trigger}/pause", responses((status = 200, body = TriggerView)))]
pub(crate) async fn pause(
    State(supervisor): Daemon,
    Path(name): Path<String>,
) -> Answer<Json<TriggerView>> {
    to_the_end(set_paused(supervisor.clone(), name.clone(), true)).await?;
    show(State(supervisor), Path(name)).await
}

#[utoipa::path(post, path = "/v1/triggers/{trigger}/resume", responses((status = 200, body = TriggerView)))]
pub(crate) async fn resume(
    State(supervisor): Daemon,
    Path(name): Path<String>,
) -> Answer<Json<TriggerView>> {
    to_the_end(set_paused(supervisor.clone(), name.clone(), false)).await?;
    show(State(supervisor), Path(name)).await
}

/// What a schedule would have done while it was paused is not made up for: that is what pausing is for.
async fn set_paused(supervisor: Arc<Supervisor>, name: String, paused: bool) -> Answer<()> {
    let now = supervisor.world.wall();
    let entry = entry(&supervisor, &name)?;
    if entry.paused == paused {
        return Ok(());
    }
    let mut progress = entry.progress.succeeded();
    if !paused && entry.schedule.is_some() {
        progress.cursor_ms = progress.cursor_ms.max(now.0);
    }
    let change = TriggerChange::Update {
        trigger: name.clone(),
        spec: None,
        state: Some(progress.json()),
        paused: Some(paused),
    };
    triggers::change(&supervisor, change).await?;
    supervisor.triggers.with(&name, |entry| {
        (entry.paused, entry.progress) = (paused, progress);
        (entry.trouble, entry.stuck) = (None, None);
    });
    supervisor.triggers.wake();
    Ok(())
}

#[utoipa::path(post, path = "/v1/triggers/{trigger}/run", request_body = TriggerRun,
    responses((status = 201, description = "a run was made now, whatever the trigger waits for", body = TriggerRan)))]
pub(crate) async fn run(
    State(supervisor): Daemon,
    Path(name): Path<String>,
    body: Result<Json<TriggerRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<TriggerRan>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let entry = entry(&supervisor, &name)?;
    let now = supervisor.world.now();
    let occurrence = asked.occurrence.unwrap_or_else(|| rfc3339(now));
    if occurrence.len() > LONGEST_OCCURRENCE || occurrence.contains(char::is_control) {
        return Err(bad_request("an occurrence has up to 200 bytes of text"));
    }
    let id = format!("manual/{occurrence}");
    let delivery = Delivery { id: id.clone(), at: now, body: make::by_hand(asked.item) };
    // Made first and then written down, since nobody but whoever asked waits for it.
    let run = to_the_end(async move {
        let run = make::make(&supervisor, &entry, &delivery).await.map_err(unmade)?;
        record(&supervisor, &name, delivery, run.clone()).await?;
        Ok(run)
    })
    .await?;
    Ok((StatusCode::CREATED, Json(TriggerRan { occurrence: id, run: run.0 })))
}

async fn record(supervisor: &Supervisor, name: &str, delivery: Delivery, run: RunId) -> Answer<()> {
    let (trigger, id) = (name.to_owned(), delivery.id.clone());
    let kept =
        TriggerChange::Keep { trigger: trigger.clone(), deliveries: vec![delivery], state: None };
    triggers::change(supervisor, kept).await?;
    let settled = Settlement::Made { run };
    Ok(triggers::change(supervisor, TriggerChange::Settle { trigger, id, settled }).await?)
}

fn unmade(why: Unmade) -> ApiError {
    match why {
        Unmade::Never(message) => Refusal::new("template_render_error", message).into(),
        Unmade::NotNow { message, .. } => Refusal::new("not_made", message).into(),
    }
}

#[utoipa::path(get, path = "/v1/next",
    params(("trigger" = Option<String>, Query), ("cron" = Option<String>, Query), ("every_ms" = Option<u64>, Query), ("at" = Option<String>, Query), ("tz" = Option<String>, Query), ("n" = Option<usize>, Query, description = "5 when absent")),
    responses((status = 200, body = NextTimes)))]
pub(crate) async fn next(
    State(supervisor): Daemon,
    Query(query): Query<Vec<(String, String)>>,
) -> Answer<Json<NextTimes>> {
    let get = |name: &str| query.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone());
    let number = |name: &str| match get(name) {
        Some(text) => text
            .parse::<u64>()
            .map(Some)
            .map_err(|_| bad_request(format!("{name}: {text:?} is not a number"))),
        None => Ok(None),
    };
    let n = usize::try_from(number("n")?.unwrap_or(5)).unwrap_or(MOST_NEXT).min(MOST_NEXT);
    let now = supervisor.world.wall();
    let (schedule, from, tz) = if let Some(name) = get("trigger") {
        let entry = entry(&supervisor, &name)?;
        let TriggerSource::Schedule { tz, .. } = entry.spec.source.clone() else {
            let message = format!("{name} is a {}", entry.spec.source.kind());
            return Err(bad_request(format!("{message}, and nobody knows when something comes")));
        };
        let schedule = entry.schedule.ok_or_else(|| missing(&name))?;
        ((*schedule).clone(), entry.progress.cursor().max(now), tz)
    } else {
        let every = number("every_ms")?.map(When::EveryMs);
        let when = get("cron").map(When::Cron).or(every).or(get("at").map(When::At));
        let when = when.ok_or_else(|| bad_request("neither a trigger nor a schedule was named"))?;
        (Schedule::new(&when, get("tz").as_deref(), now)?, now, get("tz"))
    };
    let next = times(&schedule, from).take(n);
    let next = next.map(|at| NextTime { at: rfc3339(at), local: schedule.local(at) }).collect();
    Ok(Json(NextTimes { tz: tz.unwrap_or_else(|| "UTC".to_owned()), next }))
}

fn times(schedule: &Schedule, from: Time) -> impl Iterator<Item = Time> {
    std::iter::successors(schedule.next_after(from), |at| schedule.next_after(*at))
}

fn entry(supervisor: &Supervisor, name: &str) -> Answer<Entry> {
    supervisor.triggers.entry(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> ApiError {
    unknown_trigger(format!("there is no trigger {name:?}")).into()
}
