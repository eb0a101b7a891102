//! A run's journal, as it stands or as it grows.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_engine::{Event, RunId};
use outlast_workflow::notify;
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use super::Daemon;
use super::pages::{self, Objects, Page, Shape};
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::runs::find::resolve;
use crate::supervisor::Supervisor;
use crate::view;

/// How many events are read at a time.
const PAGE: usize = 1000;

#[derive(Deserialize, utoipa::IntoParams)]
pub(crate) struct EventsQuery {
    /// Only events numbered above this.
    after: Option<u64>,
    /// Go on as server-sent events until the run has ended.
    follow: Option<bool>,
}

#[utoipa::path(get, path = "/v1/runs/{run}/events", params(("run" = String, Path), EventsQuery),
    responses((status = 200, description = "an array of events, or with follow=true server-sent events")))]
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
    let read_page = move |last| {
        let (supervisor, id) = (supervisor.clone(), id.clone());
        async move {
            let events = read(&supervisor, &id, last, PAGE).await?;
            let next = events.last().map(|newest| newest.seq).filter(|_| events.len() == PAGE);
            let mut objects = Objects::new(Shape::Array);
            events.iter().for_each(|event| objects.push(&object(&id, event)));
            Ok(Page { objects, next })
        }
    };
    let body = pages::body(Shape::Array, after, read_page);
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

fn follow(supervisor: Arc<Supervisor>, id: RunId, after: u64) -> Response {
    let (send, receive) = mpsc::channel(16);
    #[expect(clippy::disallowed_methods, reason = "ends when its client goes or its run has ended")]
    let _feeder = tokio::spawn(async move {
        if let Err(refusal) = feed(&supervisor, &id, after, &send).await {
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
