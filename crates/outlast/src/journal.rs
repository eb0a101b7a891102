//! A run's events as they are written: each once and in order, also across the death of a daemon.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use outlast_wire::api::{RunView, exit_status};
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::ask::{Ask, run_path};
use crate::client::Connection;
use crate::problem::Problem;
use crate::session::{Session, unreadable};
use crate::sse;

/// Before a stream that broke off is asked for again; longer while it brings nothing.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// One event. What it is about is looked up by name, since there are kinds that we do not know.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    pub(crate) seq: u64,
    pub(crate) kind: String,
    /// As it came.
    pub(crate) json: String,
    fields: Map<String, Value>,
}

impl Event {
    pub(crate) fn read(json: &str) -> Result<Self, Problem> {
        let fields: Map<String, Value> =
            serde_json::from_str(json).map_err(|error| unreadable(&error))?;
        let missing = || unreadable(&serde::de::Error::custom("an event without its number"));
        let seq = fields.get("seq").and_then(Value::as_u64).ok_or_else(missing)?;
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("?").to_owned();
        Ok(Self { seq, kind, json: json.to_owned(), fields })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// What only this kind of event says, by name.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        let common = ["seq", "at", "run", "kind"];
        self.fields.iter().filter(move |(key, _)| !common.contains(&key.as_str()))
    }
}

/// The events of a run from some number on.
pub(crate) struct Journal<'w> {
    session: Session<'w>,
    run: String,
    /// The number of the last event that was handed out.
    last: u64,
    has_ended: bool,
    source: Option<Source>,
    pause: Duration,
}

struct Source {
    _connection: Connection,
    body: Incoming,
    events: sse::Events,
}

impl<'w> Journal<'w> {
    pub(crate) fn new(session: Session<'w>, run: &str, after: u64) -> Self {
        let run = run.to_owned();
        let pause = FIRST_PAUSE;
        Self { session, run, last: after, has_ended: false, source: None, pause }
    }

    /// The next event when it has happened; `None` once the run has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, Problem> {
        loop {
            let source = match &mut self.source {
                Some(source) => source,
                None => {
                    let (connection, response) = self.session.open(&self.ask()).await?;
                    let body = response.into_body();
                    let events = sse::Events::default();
                    self.source.insert(Source { _connection: connection, body, events })
                }
            };
            if let Some(event) = source.events.next() {
                if let sse::Event::Error(why) = &event {
                    return Err(self.cut_off(why).await);
                }
                if let Some(event) = self.take(event)? {
                    return Ok(Some(event));
                }
            } else if let Some(bytes) = source.more().await {
                source.events.feed(&bytes);
            } else {
                self.source = None;
                if self.has_ended || self.is_over().await? {
                    return Ok(None);
                }
                sleep(self.pause).await;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    fn ask(&self) -> Ask {
        Ask::get(&run_path(&self.run, "/events"))
            .query("after", self.last)
            .query("follow", true)
            .accept("text/event-stream")
    }

    /// What is new; after a reconnect some of it is not.
    fn take(&mut self, event: sse::Event) -> Result<Option<Event>, Problem> {
        let event = match event {
            sse::Event::Data(json) => Event::read(&json)?,
            sse::Event::Error(why) => return Err(Problem::unreachable(why)),
        };
        if event.seq <= self.last {
            return Ok(None);
        }
        self.last = event.seq;
        self.pause = FIRST_PAUSE;
        self.has_ended |= event.kind == "RunEnded";
        Ok(Some(event))
    }

    /// A stream that stopped without the end of the run broke off, unless the end was before its start.
    async fn is_over(&mut self) -> Result<bool, Problem> {
        let view = self.view().await?;
        let is_terminal = view.ended_at.is_some()
            && exit_status(&view.state, view.reason_code.as_deref()).is_some();
        Ok(is_terminal && view.seq <= self.last)
    }
}

impl Journal<'_> {
    async fn view(&mut self) -> Result<RunView, Problem> {
        let asked = self.session.call(&Ask::get(&run_path(&self.run, ""))).await;
        asked.map_err(|problem| match problem.has_code("unknown_run") {
            true => removed(&self.run),
            false => problem,
        })
    }

    /// Why the daemon sends no more events, although it answers.
    async fn cut_off(&mut self, why: &str) -> Problem {
        match self.view().await {
            Err(problem) => problem,
            Ok(_) => Problem::unreachable(why),
        }
    }
}

/// It was there when it was first asked for.
fn removed(run: &str) -> Problem {
    Problem::refusal("run_removed", format_args!("run {run} was removed while it was followed"))
}

impl Source {
    async fn more(&mut self) -> Option<Bytes> {
        let frame = self.body.frame().await?.ok()?;
        Some(frame.into_data().unwrap_or_default())
    }
}
