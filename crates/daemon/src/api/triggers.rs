//! Triggers: add, list, run, pause, resume, remove; and when a schedule would come next.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use outlast_engine::{RunId, Time};
use outlast_store::{Delivery, Error, Settlement, TriggerChange};
use outlast_wire::api::{
    AddTrigger, NextTime, NextTimes, OrderTrigger, TriggerAdded, TriggerRan, TriggerRun,
    TriggerSource, TriggerView, When,
};
use outlast_wire::codes::Code;

use super::pages::{self, Objects, Page, Shape};
use super::{Daemon, orders, to_the_end};
use crate::lanes::blocking;
use crate::order_book::Verb;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::Caller;
use crate::runs::trigger_orders::{Given, check_seen, since, view_of};
use crate::supervisor::Supervisor;
use crate::triggers::make::{self, Unmade};
use crate::triggers::schedule::Schedule;
use crate::triggers::{self, Entry, add, view};
use crate::view::rfc3339;

const MOST_NEXT: usize = 1000;
const LONGEST_OCCURRENCE: usize = 200;

/// Triggers of one page of a list.
const PAGE: usize = 256;

#[utoipa::path(get, path = "/v1/triggers",
    responses((status = 200, description = "an array; or one object a line, if `application/x-ndjson` is accepted", body = [TriggerView])))]
pub(crate) async fn list(State(supervisor): Daemon, headers: HeaderMap) -> Response {
    let shape = Shape::wanted(&headers);
    let read = move |after: String| {
        let supervisor = supervisor.clone();
        blocking(move || page(&supervisor, &after, shape))
    };
    pages::answer(shape, String::new(), read)
}

fn page(supervisor: &Supervisor, after: &str, shape: Shape) -> Answer<Page<String>> {
    let views = view::page(&supervisor.triggers, after, PAGE)?;
    let last = views.last().filter(|_| views.len() == PAGE);
    let next = last.map(|last| last.name.clone());
    let mut objects = Objects::new(shape);
    views.iter().for_each(|view| objects.push(view));
    Ok(Page { objects, next })
}

#[utoipa::path(get, path = "/v1/triggers/{trigger}", responses((status = 200, body = TriggerView)))]
pub(crate) async fn show(
    State(supervisor): Daemon,
    Path(name): Path<String>,
) -> Answer<Json<TriggerView>> {
    let of = name.clone();
    let found = blocking(move || Ok(view::one(&supervisor.triggers, &of)?)).await?;
    found.map(Json).ok_or_else(|| Refusal::no_trigger(&name))
}

#[utoipa::path(post, path = "/v1/triggers", request_body = AddTrigger,
    responses((status = 201, description = "this order has added it", body = TriggerAdded), (status = 409, description = "the name is another trigger's, or the trigger was removed since")))]
pub(crate) async fn add(
    State(supervisor): Daemon,
    caller: Caller,
    body: Result<Json<AddTrigger>, JsonRejection>,
) -> Answer<(StatusCode, Json<TriggerAdded>)> {
    let Json(mut asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let seen = OrderTrigger { id: asked.id.take(), trigger_id: None };
    let given = Given::new(&supervisor, caller, Verb::AddTrigger, &asked.name, seen).await?;
    asked.id = Some(given.id.clone());
    let added = to_the_end(add_checked(supervisor, asked, given)).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

async fn add_checked(
    supervisor: Arc<Supervisor>,
    asked: AddTrigger,
    given: Given,
) -> Answer<TriggerAdded> {
    // First: what was right when it was added may be wrong by now.
    if let Some(added) = given.added_before(&supervisor).await? {
        return Ok(added);
    }
    let checker = supervisor.clone();
    let checked = blocking(move || add::check(&checker.triggers, asked)).await?;
    let turn = supervisor.orders.turn().await;
    if let Some(added) = given.added_before(&supervisor).await? {
        return Ok(added);
    }
    let name = given.trigger.clone();
    if let Some(there) = supervisor.triggers.table.entry(&name) {
        let message =
            format!("there is a trigger {name:?} already, {}", since(&supervisor, &there));
        let hint = "choose another name, or `outlast trigger rm` it first";
        return Err(Refusal::new(Code::TriggerTaken, message).hint(hint));
    }
    let change = TriggerChange::Add(checked.stored);
    given.take(&supervisor, &turn, Some(given.id.clone()), change).await?;
    let entry = checked.entry;
    let kind = entry.brief.source.kind();
    supervisor.triggers.table.insert(entry);
    tracing::info!(trigger = name, kind, "added");
    let trigger = view_of(&supervisor, &name).await?;
    let (secret, warnings) = (checked.secret, checked.warnings);
    Ok(TriggerAdded { trigger, secret, warnings, existed: false })
}

#[utoipa::path(delete, path = "/v1/triggers/{trigger}", params(("trigger" = String, Path), OrderTrigger),
    responses((status = 204, description = "it makes no more runs; those that it made go on"), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name")))]
pub(crate) async fn remove(
    State(supervisor): Daemon,
    Path(name): Path<String>,
    Query(seen): Query<OrderTrigger>,
    caller: Caller,
    body: axum::body::Bytes,
) -> Answer<StatusCode> {
    if !body.is_empty() {
        let message = "the id and the trigger_id of a removal go into the query, not into a body";
        return Err(bad_request(message.to_owned()));
    }
    let given = Given::new(&supervisor, caller, Verb::RemoveTrigger, &name, seen).await?;
    to_the_end(async move {
        let turn = supervisor.orders.turn().await;
        if given.taken_before(&supervisor)?.is_some() {
            return Ok(StatusCode::NO_CONTENT);
        }
        given.check_seen(&supervisor)?;
        let id = supervisor.triggers.table.entry(&name).map(|entry| entry.id());
        let change = TriggerChange::Remove { trigger: name.clone() };
        given.take(&supervisor, &turn, id, change).await?;
        supervisor.triggers.table.forget(&name);
        tracing::info!(trigger = name, "removed");
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

#[utoipa::path(post, path = "/v1/triggers/{trigger}/pause", request_body(content = OrderTrigger, description = "may be left out"),
    responses((status = 200, description = "this order is durable", body = TriggerView), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name")))]
pub(crate) async fn pause(
    State(supervisor): Daemon,
    Path(name): Path<String>,
    caller: Caller,
    body: Result<Option<Json<OrderTrigger>>, JsonRejection>,
) -> Answer<Json<TriggerView>> {
    let seen = orders::given(body)?;
    let given = Given::new(&supervisor, caller, Verb::PauseTrigger, &name, seen).await?;
    to_the_end(set_paused(supervisor, given, true)).await.map(Json)
}

#[utoipa::path(post, path = "/v1/triggers/{trigger}/resume", request_body(content = OrderTrigger, description = "may be left out"),
    responses((status = 200, description = "this order is durable", body = TriggerView), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name")))]
pub(crate) async fn resume(
    State(supervisor): Daemon,
    Path(name): Path<String>,
    caller: Caller,
    body: Result<Option<Json<OrderTrigger>>, JsonRejection>,
) -> Answer<Json<TriggerView>> {
    let seen = orders::given(body)?;
    let given = Given::new(&supervisor, caller, Verb::ResumeTrigger, &name, seen).await?;
    to_the_end(set_paused(supervisor, given, false)).await.map(Json)
}

/// What a schedule would have done while it was paused is not made up for: that is what pausing is for.
async fn set_paused(
    supervisor: Arc<Supervisor>,
    given: Given,
    paused: bool,
) -> Answer<TriggerView> {
    let turn = supervisor.orders.turn().await;
    let name = given.trigger.clone();
    if let Some(taken) = given.taken_before(&supervisor)? {
        check_seen(&supervisor, &name, taken.trigger_id.as_deref())?;
        return view_of(&supervisor, &name).await;
    }
    given.check_seen(&supervisor)?;
    let now = supervisor.ground.world.now();
    let entry = entry(&supervisor, &name)?;
    let is_news = entry.paused != paused;
    let mut progress = entry.progress.succeeded();
    if !paused && entry.schedule.is_some() {
        progress.cursor_ms = progress.cursor_ms.max(now.0);
    }
    // An order that changes nothing is written down too: an acknowledged order is remembered.
    let change = TriggerChange::Update {
        trigger: name.clone(),
        spec: None,
        state: is_news.then(|| progress.json()),
        paused: is_news.then_some(paused),
    };
    given.take(&supervisor, &turn, Some(entry.id()), change).await?;
    if is_news {
        supervisor.triggers.table.with(&name, |entry| {
            (entry.paused, entry.progress) = (paused, progress);
            (entry.trouble, entry.stuck) = (None, None);
        });
        supervisor.triggers.table.look_at(entry.name());
    }
    view_of(&supervisor, &name).await
}

#[utoipa::path(post, path = "/v1/triggers/{trigger}/run", request_body = TriggerRun,
    responses((status = 201, description = "a run was made now, whatever the trigger waits for, or by the same order before", body = TriggerRan), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name")))]
pub(crate) async fn run(
    State(supervisor): Daemon,
    Path(name): Path<String>,
    body: Result<Json<TriggerRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<TriggerRan>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let now = supervisor.ground.world.now();
    let occurrence = asked.occurrence.unwrap_or_else(|| rfc3339(now));
    if occurrence.len() > LONGEST_OCCURRENCE || occurrence.contains(char::is_control) {
        return Err(bad_request("an occurrence has up to 200 bytes of text"));
    }
    let id = format!("manual/{occurrence}");
    if let Some(run) = made_before(&supervisor, &name, &id).await? {
        let ran = TriggerRan { occurrence: id, run: run.0, existed: true };
        return Ok((StatusCode::CREATED, Json(ran)));
    }
    check_seen(&supervisor, &name, asked.trigger_id.as_deref())?;
    let entry = entry(&supervisor, &name)?;
    let delivery = Delivery { id: id.clone(), at: now, body: make::by_hand(asked.item) };
    // Made first and then written down, since only the client that asked waits for it.
    let run = to_the_end(async move {
        let run = make::make(&supervisor.triggers, &entry, &delivery).await.map_err(unmade)?;
        match record(&supervisor, &name, delivery, run.clone()).await {
            // Removed in that moment. The run is there, and knows what it was made of.
            Ok(()) | Err(Error::UnknownTrigger { .. }) => Ok(run),
            Err(error) => Err(error.into()),
        }
    })
    .await?;
    Ok((StatusCode::CREATED, Json(TriggerRan { occurrence: id, run: run.0, existed: false })))
}

/// The run that was made of this occurrence. It may be gone by now, and so may the trigger.
async fn made_before(
    supervisor: &Arc<Supervisor>,
    name: &str,
    occurrence: &str,
) -> Answer<Option<RunId>> {
    let (store, key) = (supervisor.ground.store.clone(), triggers::run_of::key(name, occurrence));
    let (name, occurrence) = (name.to_owned(), occurrence.to_owned());
    blocking(move || match store.made_of(&name, &occurrence)? {
        Some(run) => Ok(Some(run)),
        None => Ok(store.run_of_key(&key)?),
    })
    .await
}

async fn record(
    supervisor: &Supervisor,
    name: &str,
    delivery: Delivery,
    run: RunId,
) -> Result<(), Error> {
    let (trigger, id) = (name.to_owned(), delivery.id.clone());
    let kept =
        TriggerChange::Keep { trigger: trigger.clone(), deliveries: vec![delivery], state: None };
    triggers::change(&supervisor.triggers, kept).await?;
    let settled = Settlement::Made { run };
    triggers::change(&supervisor.triggers, TriggerChange::Settle { trigger, id, settled }).await
}

fn unmade(why: Unmade) -> Refusal {
    match why {
        Unmade::Never(message) => Refusal::new(Code::TemplateRenderError, message),
        Unmade::NotNow { message, .. } => Refusal::new(Code::NotMade, message),
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
    let now = supervisor.ground.world.now();
    let (schedule, from, tz) = if let Some(name) = get("trigger") {
        let entry = entry(&supervisor, &name)?;
        let TriggerSource::Schedule { tz, .. } = entry.brief.source.clone() else {
            let message = format!("{name} is a {}", entry.brief.source.kind());
            return Err(bad_request(format!(
                "{message}, and the time of its next item is not known"
            )));
        };
        let schedule = entry.schedule.ok_or_else(|| Refusal::no_trigger(&name))?;
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
    supervisor.triggers.table.entry(name).ok_or_else(|| Refusal::no_trigger(name))
}
