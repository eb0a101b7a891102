//! The runs as they change, and the events of one of them, in one answer: a browser has six connections for all tabs.
//!
//! The answer ends when the daemon goes, after a `lost` that says so. The page asks again with the number of the last
//! event that it has, so no event is missing or repeated.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_client::ask::{Ask, run_path};
use outlast_client::journal::Event;
use outlast_client::session::Session;
use outlast_client::sse;
use outlast_wire::api::WatchNews;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::asked::{Asked, Over, checked, number, place, signed_out};
use crate::pages::row_of;
use crate::refusal::Refusal;
use crate::state::{Teller, Web};
use crate::telling::told;

/// A proxy or a sleeping phone would take a silent connection for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Ended runs in the list, unless fewer are asked for.
const ENDED: u64 = 200;

pub(crate) async fn live(
    State(web): State<Arc<Web>>,
    headers: HeaderMap,
    Query(asked): Asked,
) -> Result<Response, Refusal> {
    let place = place(&web)?;
    let over = signed_out(&web, &headers);
    let ended = number(&asked, "ended")?.unwrap_or(ENDED).min(ENDED);
    let ask = Ask::get("/v1/watch").query("ended", ended).accept("text/event-stream");
    let watch = sse::Stream::new(Session::again(&web.world).open(&ask).await?);
    let events = match asked.get("run") {
        None => None,
        Some(run) => {
            let ask = Ask::get(&run_path(checked(run)?, "/events")).query("follow", true);
            let ask = ask.query_if("after", number(&asked, "after")?).accept("text/event-stream");
            Some(sse::Stream::new(Session::again(&web.world).open(&ask).await?))
        }
    };
    let teller = (web.words.teller)();
    let live = Live { web, watch, events, teller, over, is_over: false, _place: place };
    let pieces = stream::unfold(live, |mut live| async move {
        let piece = live.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), live))
    });
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response())
}

struct Live {
    web: Arc<Web>,
    watch: sse::Stream,
    events: Option<sse::Stream>,
    teller: Teller,
    /// Returns when the person signs out.
    over: Over,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Live {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let piece = tokio::select! {
            news = self.watch.next() => self.news(news),
            event = next_of(&mut self.events) => self.event(event),
            () = &mut self.over => return None,
            () = tokio::time::sleep(KEEP_ALIVE) => Ok(Bytes::from_static(b": \n\n")),
        };
        Some(piece.unwrap_or_else(|why| {
            self.is_over = true;
            say("lost", &json!({ "why": why }))
        }))
    }

    fn news(&self, news: Option<sse::Event>) -> Result<Bytes, String> {
        let text = data(news)?.ok_or("the daemon went away")?;
        let news: WatchNews = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(match news {
            WatchNews::Hello { pid, version, started_at } => {
                say("hello", &json!({ "pid": pid, "version": version, "started_at": started_at }))
            }
            WatchNews::Row { run } => say("row", &row_of(&self.web, &run)),
            WatchNews::Listed { truncated } => say("listed", &json!({ "truncated": truncated })),
            WatchNews::Gone { run } => say("gone", &json!({ "run": run })),
            WatchNews::Other => Bytes::from_static(b": \n\n"),
        })
    }

    fn event(&mut self, event: Option<sse::Event>) -> Result<Bytes, String> {
        let Some(text) = data(event)? else {
            // The run has ended; or the daemon goes, which the list says, too.
            self.events = None;
            return Ok(say("events_end", &json!({})));
        };
        let event = Event::read(&text).map_err(|_| "an event cannot be read")?;
        Ok(say("event", &told(&event, &mut self.teller)))
    }
}

async fn next_of(events: &mut Option<sse::Stream>) -> Option<sse::Event> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// The data of an event of the stream; `None` at its end, and an error with its reason.
fn data(event: Option<sse::Event>) -> Result<Option<String>, String> {
    match event {
        Some(sse::Event::Data(text)) => Ok(Some(text)),
        Some(sse::Event::Error(why)) => Err(why),
        None => Ok(None),
    }
}

fn say(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}
