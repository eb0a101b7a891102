//! The journal of a run, or of all runs, as it stands or as it grows.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_engine::{Event, RunId};
use outlast_store::{Written, WrittenEvent};
use outlast_wire::api::{EventView, WrittenEventView};
use outlast_workflow::notify;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::Daemon;
use super::extract::{Path, Query};
use super::pages::{self, Objects, Page, Shape};
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::runs::find::resolve;
use crate::supervisor::Supervisor;
use crate::view;

/// How many events are read at a time.
const PAGE: usize = 1000;

/// A follower of all runs looks again after this long, whether or not a run has changed.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// Only events numbered above this.
    after: Option<u64>,
    /// At most so many, the oldest first. Does not count with `follow`.
    limit: Option<u64>,
    /// Go on as server-sent events until the run has ended.
    follow: Option<bool>,
}

/// Lists the events of a run, or follows them
///
/// The journal of the run, from its first event on.
#[utoipa::path(get, operation_id = "list_run_events", path = "/v1/runs/{run}/events", params(EventsQuery),
    responses((status = 200, description = "an array of events; with follow=true, server-sent events", content((Vec<EventView> = "application/json"), (EventView = "text/event-stream")))))]
pub(crate) async fn list(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<EventsQuery>,
) -> Answer<Response> {
    let id = resolve(&supervisor, &run).await?;
    let after = query.after.unwrap_or(0);
    if query.follow.unwrap_or(false) {
        return Ok(follow(supervisor, id, after));
    }
    // Asked first, so that a run that is not there is a refusal and not an answer cut short.
    let known = read(&supervisor, &id, after, 1).await?;
    if known.is_empty() {
        return Ok(Json(Vec::<Value>::new()).into_response());
    }
    let limit = query.limit.map_or(usize::MAX, clamp);
    let read_page = move |(last, left): (u64, usize)| {
        let (supervisor, id) = (supervisor.clone(), id.clone());
        async move {
            let most = left.min(PAGE);
            let events = read(&supervisor, &id, last, most).await?;
            let left = left - events.len();
            let is_over = events.len() < most || left == 0;
            let next = events.last().filter(|_| !is_over).map(|newest| (newest.seq, left));
            let mut objects = Objects::new(Shape::Array);
            events.iter().for_each(|event| objects.push(&object(&id, event)));
            Ok(Page { objects, next })
        }
    };
    let body = pages::body(Shape::Array, (after, limit), read_page);
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AllEventsQuery {
    /// Only events whose `cursor` is above this.
    after: Option<u64>,
    /// At most so many, the oldest first. Does not count with `follow`.
    limit: Option<u64>,
    /// Only the last so many of those that are there now.
    tail: Option<u64>,
    /// Go on as server-sent events, until the client leaves.
    follow: Option<bool>,
}

/// Lists the events of all runs, or follows them
///
/// In the order in which they were written. `cursor` numbers them across runs, with gaps where runs were removed; a client
/// that was cut off asks again with the last one as `after`.
#[utoipa::path(get, operation_id = "list_events", path = "/v1/events", params(AllEventsQuery),
    responses((status = 200, description = "an array of events, or one a line if `application/x-ndjson` is accepted; with follow=true, server-sent events", content((Vec<WrittenEventView> = "application/json"), (WrittenEventView = "application/x-ndjson"), (WrittenEventView = "text/event-stream"))))
)]
pub(crate) async fn list_all(
    State(supervisor): Daemon,
    Query(query): Query<AllEventsQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let mut after = query.after.unwrap_or(0);
    if let Some(tail) = query.tail {
        let (store, tail) = (supervisor.ground.store.clone(), clamp(tail));
        after = after.max(blocking(move || Ok(store.written_before(tail)?)).await?);
    }
    if query.follow.unwrap_or(false) {
        return Ok(streamed(move |send| async move { feed_all(&supervisor, after, &send).await }));
    }
    let shape = Shape::wanted(&headers);
    let limit = query.limit.map_or(usize::MAX, clamp);
    let read_page = move |(last, left): (u64, usize)| {
        let supervisor = supervisor.clone();
        async move {
            let written = written(&supervisor, last, left.min(PAGE)).await?;
            let left = left - written.events.len();
            let is_over = written.last == last || left == 0;
            let mut objects = Objects::new(shape);
            written.events.iter().for_each(|event| objects.push(&written_object(event)));
            Ok(Page { objects, next: (!is_over).then_some((written.last, left)) })
        }
    };
    Ok(pages::answer(shape, (after, limit), read_page))
}

fn clamp(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Sends every event after `last`, and those to come, until the client is gone.
async fn feed_all(
    supervisor: &Arc<Supervisor>,
    mut last: u64,
    send: &mpsc::Sender<sse::Event>,
) -> Answer<()> {
    let mut leaving = supervisor.ground.leaving();
    // Watched before reading, so that nothing can come between.
    let watcher = supervisor.watchers.watch();
    loop {
        let page = written(supervisor, last, PAGE).await?;
        for event in &page.events {
            let data = Value::Object(written_object(event)).to_string();
            let event = sse::Event::default().id(event.number.to_string()).data(data);
            if send.send(event).await.is_err() {
                return Ok(());
            }
        }
        if page.last > last {
            last = page.last;
            continue;
        }
        tokio::select! {
            _ = watcher.unseen() => {}
            () = tokio::time::sleep(LOOK_AGAIN) => {}
            () = send.closed() => return Ok(()),
            _ = leaving.wait_for(Option::is_some) => return Ok(()),
        }
    }
}

async fn written(supervisor: &Arc<Supervisor>, after: u64, most: usize) -> Answer<Written> {
    let store = supervisor.ground.store.clone();
    blocking(move || Ok(store.written(after, most)?)).await
}

/// `cursor, run_name` and what the event is among those of its run.
fn written_object(written: &WrittenEvent) -> Map<String, Value> {
    let mut whole = Map::new();
    whole.insert("cursor".to_owned(), written.number.into());
    whole.insert("run_name".to_owned(), written.name.clone().into());
    whole.extend(object(&written.run, &written.event));
    whole
}

fn follow(supervisor: Arc<Supervisor>, id: RunId, after: u64) -> Response {
    streamed(move |send| async move { feed(&supervisor, &id, after, &send).await })
}

/// Server-sent events of what `feed` sends.
fn streamed<F: Future<Output = Answer<()>> + Send + 'static>(
    feed: impl FnOnce(mpsc::Sender<sse::Event>) -> F,
) -> Response {
    let (send, receive) = mpsc::channel(16);
    let fed = feed(send.clone());
    #[expect(clippy::disallowed_methods, reason = "ends when its client goes or its run has ended")]
    let _feeder = tokio::spawn(async move {
        if let Err(refusal) = fed.await {
            let event = sse::Event::default().event("error").data(refusal.message);
            let _client_gone = send.send(event).await;
        }
    });
    let events = stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|event| (Ok::<_, std::convert::Infallible>(event), receive))
    });
    Sse::new(events).into_response()
}

/// Sends every event after `last`, and those to come, until the run is closed or the client gone.
async fn feed(
    supervisor: &Arc<Supervisor>,
    id: &RunId,
    mut last: u64,
    send: &mpsc::Sender<sse::Event>,
) -> Answer<()> {
    let mut leaving = supervisor.ground.leaving();
    loop {
        // Looked at before reading, so that nothing can come between.
        let handle = supervisor.handle(id);
        let page = read(supervisor, id, last, PAGE).await?;
        for event in &page {
            let data = Value::Object(object(id, event)).to_string();
            if send.send(sse::Event::default().id(event.seq.to_string()).data(data)).await.is_err()
            {
                return Ok(());
            }
            last = event.seq;
        }
        if !page.is_empty() {
            continue;
        }
        let Some(mut handle) = handle else { return Ok(()) };
        tokio::select! {
            _ = handle.snapshot.wait_for(|seen| seen.run.seq() > last) => {}
            () = send.closed() => return Ok(()),
            _ = leaving.wait_for(Option::is_some) => return Ok(()),
        }
    }
}

async fn read(
    supervisor: &Arc<Supervisor>,
    id: &RunId,
    after: u64,
    most: usize,
) -> Answer<Vec<Event>> {
    let (store, id) = (supervisor.ground.store.clone(), id.clone());
    blocking(move || Ok(store.events(&id, after, most)?)).await
}

/// `seq, at, run, kind` and the event's own fields.
fn object(id: &RunId, event: &Event) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("seq".to_owned(), event.seq.into());
    object.insert("at".to_owned(), view::rfc3339(event.at).into());
    object.insert("run".to_owned(), id.0.clone().into());
    let mut fact = serde_json::to_value(&event.fact);
    if let Ok(fact) = &mut fact {
        redact(fact);
    }
    match fact {
        Ok(Value::Object(fact)) => object.extend(fact),
        Ok(_) | Err(_) => unreachable!("a fact is an object"),
    }
    for name in ["until", "since"] {
        if let Some(at) = object.get(name).and_then(Value::as_u64) {
            object.insert(name.to_owned(), view::rfc3339(outlast_engine::Time(at)).into());
        }
    }
    object
}

/// Addresses of sinks without what may be secret in them.
fn redact(fact: &mut Value) {
    for place in ["/spec/notify", "/spec/output/emit_to", "/to"] {
        let sinks = fact.pointer_mut(place).and_then(Value::as_array_mut);
        for sink in sinks.into_iter().flatten() {
            if let Some(shown) = sink.as_str().map(notify::shown) {
                *sink = shown.into();
            }
        }
    }
}
