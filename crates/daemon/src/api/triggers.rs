//! Triggers: add, list, run, pause, resume, remove; and when a schedule would come next.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use outlast_engine::{RunId, Time};
use outlast_store::{Delivery, Error, Settlement, TriggerChange};
use outlast_wire::api::{
    AddTrigger, NextTime, NextTimes, OrderTrigger, TriggerAdded, TriggerRan, TriggerRun,
    TriggerSource, TriggerView, When,
};
use outlast_wire::codes::Code;

use super::extract::{Path, Query};
use super::pages::{self, Objects, Page, Shape};
use super::{Daemon, orders, to_the_end};
use crate::lanes::blocking;
use crate::order_book::Verb;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::Caller;
use crate::runs::trigger_orders::{Given, check_seen, since, view_of, with_hook};
use crate::supervisor::Supervisor;
use crate::triggers::make::{self, Unmade};
use crate::triggers::schedule::{Schedule, with_day};
use crate::triggers::{self, Entry, add, view};
use crate::view::rfc3339;

const MOST_NEXT: usize = 1000;
const LONGEST_OCCURRENCE: usize = 200;

/// Triggers of one page of a list.
const PAGE: usize = 256;

/// Lists the triggers
///
/// By name. Every row has the same keys.
#[utoipa::path(get, operation_id = "list_triggers", path = "/v1/triggers",
    responses((status = 200, description = "an array; or one object a line, if `application/x-ndjson` is accepted", content((Vec<TriggerView> = "application/json"), (TriggerView = "application/x-ndjson")))))]
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
    views.into_iter().for_each(|view| objects.push(&with_hook(supervisor, view)));
    Ok(Page { objects, next })
}

/// Describes a trigger
///
/// As its row in the list.
#[utoipa::path(get, operation_id = "show_trigger", path = "/v1/triggers/{trigger}", responses((status = 200, description = "the trigger", body = TriggerView)))]
pub(crate) async fn show(
    State(supervisor): Daemon,
    Path(name): Path<String>,
) -> Answer<Json<TriggerView>> {
    view_of(&supervisor, &name).await.map(Json)
}

/// Adds a trigger
///
/// A schedule, a webhook, a folder or a poll, and what each of its runs is.
#[utoipa::path(post, operation_id = "add_trigger", path = "/v1/triggers", request_body = AddTrigger,
    responses((status = 201, description = "this order has added it", body = TriggerAdded), (status = 403), (status = 404), (status = 409, description = "the name is another trigger's, or the trigger was removed since")))]
pub(crate) async fn add(
    State(supervisor): Daemon,
    caller: Caller,
    body: Result<Json<AddTrigger>, JsonRejection>,
) -> Answer<(StatusCode, Json<TriggerAdded>)> {
    let Json(mut asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let seen = OrderTrigger { id: asked.id.take(), trigger_id: None };
    let given = Given::new(&supervisor, caller, Verb::AddTrigger, &asked.name, seen).await?;
    let given = given.saying(&supervisor, &asked)?;
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
    let (checker, replace) = (supervisor.clone(), asked.replace);
    let mut checked = blocking(move || add::check(&checker.triggers, asked)).await?;
    let turn = supervisor.orders.turn().await;
    if let Some(added) = given.added_before(&supervisor).await? {
        return Ok(added);
    }
    let name = given.trigger.clone();
    let there = supervisor.triggers.table.entry(&name);
    let change = match &there {
        Some(there) if !replace => {
            let message =
                format!("there is a trigger {name:?} already, {}", since(&supervisor, there));
            let message = format!("{message}; --replace changes it");
            let hint = format!("outlast trigger show {name}");
            return Err(Refusal::new(Code::TriggerTaken, message).hint(hint));
        }
        Some(there) => {
            checked = checked.instead_of(there)?;
            let (spec, state) = (checked.stored.spec.clone(), checked.stored.state.clone());
            let (spec, state) = (Some(spec), Some(state));
            TriggerChange::Update { trigger: name.clone(), spec, state, paused: None }
        }
        None => TriggerChange::Add(checked.stored.clone()),
    };
    given.take(&supervisor, &turn, Some(given.id.clone()), change).await?;
    let entry = checked.entry;
    let kind = entry.brief.source.kind();
    supervisor.triggers.table.insert(entry);
    tracing::info!(trigger = name, kind, replaced = there.is_some(), "added");
    let trigger = view_of(&supervisor, &name).await?;
    let (secret, warnings, replaced) = (checked.secret, checked.warnings, there.is_some());
    Ok(TriggerAdded { trigger, secret, warnings, existed: false, replaced })
}

/// Removes a trigger
///
/// The runs that it made stay.
#[utoipa::path(delete, operation_id = "remove_trigger", path = "/v1/triggers/{trigger}", params(OrderTrigger),
    responses((status = 204, description = "it starts no more runs; its runs keep running"), (status = 403), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name")))]
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

/// Pauses a trigger
///
/// What a schedule would have done meanwhile is not made up for.
#[utoipa::path(post, operation_id = "pause_trigger", path = "/v1/triggers/{trigger}/pause", request_body(content = Option<OrderTrigger>, description = "may be left out"),
    responses((status = 200, description = "this order is durable", body = TriggerView), (status = 403), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name")))]
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

/// Resumes a trigger
///
/// Also forgets its trouble.
#[utoipa::path(post, operation_id = "resume_trigger", path = "/v1/triggers/{trigger}/resume", request_body(content = Option<OrderTrigger>, description = "may be left out"),
    responses((status = 200, description = "this order is durable", body = TriggerView), (status = 403), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name")))]
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

/// Makes a run of a trigger now
///
/// Whatever the trigger waits for. An `occurrence` makes it safe to ask again.
#[utoipa::path(post, operation_id = "run_trigger", path = "/v1/triggers/{trigger}/run", request_body = TriggerRun,
    responses((status = 201, description = "a run was made now, or by the same order before", body = TriggerRan), (status = 409, description = "the trigger that the giver saw has been removed, or another has its name, or the run cannot be made")))]
pub(crate) async fn run(
    State(supervisor): Daemon,
    Path(name): Path<String>,
    body: Result<Json<TriggerRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<TriggerRan>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let now = supervisor.ground.world.now();
    let occurrence = asked.occurrence.unwrap_or_else(|| rfc3339(now));
    if occurrence.len() > LONGEST_OCCURRENCE || occurrence.contains(char::is_control) {
        return Err(bad_request("an occurrence has at most 200 bytes of text"));
    }
    let id = format!("manual/{occurrence}");
    if let Some(run) = made_before(&supervisor, &name, &id).await? {
        return ran(&supervisor, id, run, true).await;
    }
    check_seen(&supervisor, &name, asked.trigger_id.as_deref())?;
    let entry = entry(&supervisor, &name)?;
    let delivery = Delivery { id: id.clone(), at: now, body: make::by_hand(asked.item) };
    // Made first and then written down, since only the client that asked waits for it.
    let maker = supervisor.clone();
    let run = to_the_end(async move {
        let supervisor = maker;
        let run = match make::make(&supervisor.triggers, &entry, &delivery).await {
            Ok(run) => run,
            Err(why) => return Err(unmade(&supervisor, &name, why).await),
        };
        match record(&supervisor, &name, delivery, run.clone()).await {
            // Removed in that moment. The run is there, and knows what it was made of.
            Ok(()) | Err(Error::UnknownTrigger { .. }) => Ok(run),
            Err(error) => Err(error.into()),
        }
    })
    .await?;
    ran(&supervisor, id, run, false).await
}

async fn ran(
    supervisor: &Supervisor,
    occurrence: String,
    run: RunId,
    existed: bool,
) -> Answer<(StatusCode, Json<TriggerRan>)> {
    let (store, id) = (supervisor.ground.store.clone(), run.clone());
    let row = blocking(move || Ok(store.row(&id)?)).await?;
    let name = row.and_then(|row| row.name);
    let warnings = supervisor.ground.settings.remark().into_iter().collect();
    let ran = TriggerRan { occurrence, run: run.0, name, existed, warnings };
    Ok((StatusCode::CREATED, Json(ran)))
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

async fn unmade(supervisor: &Supervisor, name: &str, why: Unmade) -> Refusal {
    let message = match why {
        Unmade::Never(message) => message,
        Unmade::NotNow { message, .. } => return Refusal::new(Code::NotMade, message),
    };
    let refusal = Refusal::new(Code::TemplateRenderError, message);
    match make::example(&supervisor.triggers, &name.into()).await {
        Some(item) => refusal.hint(format!("outlast trigger run {name} --item '{item}'")),
        None => refusal,
    }
}

/// The parameters of [`next`]: a trigger, or one of the three forms of a schedule.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "only the derived description is used")]
struct NextQuery {
    /// A trigger that is a schedule.
    trigger: Option<String>,
    /// Five fields, or `@hourly` and its like.
    cron: Option<String>,
    /// Every so many milliseconds.
    every_ms: Option<u64>,
    /// Once: RFC 3339, or a local time in the zone.
    at: Option<String>,
    /// A name of the time zone database; UTC when absent.
    tz: Option<String>,
    /// How many times; 5 when absent, at most 1000.
    n: Option<u64>,
}

/// Says when a schedule comes next
///
/// Of a trigger, or of a schedule that is written out in the query.
#[utoipa::path(get, operation_id = "next_times", path = "/v1/next", params(NextQuery), responses((status = 200, description = "the next times", body = NextTimes), (status = 404)))]
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
            let kind = entry.brief.source.kind();
            let message = format!("{name} is a {kind}, so the time of its next run is unknown");
            return Err(bad_request(message));
        };
        let schedule = entry.schedule.ok_or_else(|| Refusal::no_trigger(&name))?;
        ((*schedule).clone(), entry.progress.cursor().max(now), tz)
    } else {
        let every = number("every_ms")?.map(When::EveryMs);
        let when = get("cron").map(When::Cron).or(every).or(get("at").map(When::At));
        let when =
            when.ok_or_else(|| bad_request("name a trigger, or one of cron, every_ms and at"))?;
        let when = with_day(when, get("tz").as_deref(), now)?;
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
