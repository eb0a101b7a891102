//! The events of a run, or of all runs, as they are written: each once and in order, also across the death of a daemon.

use std::time::Duration;

use outlast_wire::api::{RunView, exit_status};
use outlast_wire::codes::Code;
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::ask::{Ask, run_path};
use crate::problem::Problem;
use crate::session::{Session, unreadable};
use crate::sse;

/// The pause before a broken stream is asked for again. The pause doubles while the stream brings no new event.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// One event. Its fields are looked up by name, since a newer daemon writes kinds that this client does not know.
#[derive(Debug, Clone)]
pub struct Event {
    pub seq: u64,
    pub kind: String,
    /// The event's text, unchanged.
    pub json: String,
    fields: Map<String, Value>,
}

impl Event {
    pub fn read(json: &str) -> Result<Self, Problem> {
        let fields: Map<String, Value> =
            serde_json::from_str(json).map_err(|error| unreadable(&error))?;
        let missing = || unreadable(&serde::de::Error::custom("an event without its number"));
        let seq = fields.get("seq").and_then(Value::as_u64).ok_or_else(missing)?;
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("?").to_owned();
        Ok(Self { seq, kind, json: json.to_owned(), fields })
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.get(key)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    pub fn number(&self, key: &str) -> Option<u64> {
        self.get(key)?.as_u64()
    }

    /// The fields that only this kind of event has.
    pub fn own_fields(&self) -> impl Iterator<Item = (&String, &Value)> {
        let common = ["seq", "at", "run", "kind", "cursor", "run_name"];
        self.fields.iter().filter(move |(key, _)| !common.contains(&key.as_str()))
    }
}

/// The events of a run from some number on.
pub struct Journal<'w> {
    session: Session<'w>,
    run: String,
    /// The number of the last event that was handed out.
    last: u64,
    has_ended: bool,
    stream: Option<sse::Stream>,
    pause: Duration,
}

impl<'w> Journal<'w> {
    pub fn new(session: Session<'w>, run: &str, after: u64) -> Self {
        let run = run.to_owned();
        let pause = FIRST_PAUSE;
        Self { session, run, last: after, has_ended: false, stream: None, pause }
    }

    /// The next event when it has happened; `None` once the run has ended.
    pub async fn next(&mut self) -> Result<Option<Event>, Problem> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    let reply = self.session.open(&self.ask()).await?;
                    self.stream.insert(sse::Stream::new(reply))
                }
            };
            let Some(event) = stream.next().await else {
                self.stream = None;
                if self.has_ended || self.is_over().await? {
                    return Ok(None);
                }
                sleep(self.pause).await;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                continue;
            };
            match event {
                sse::Event::Error(why) => return Err(self.cut_off(&why).await),
                sse::Event::Data(json) => {
                    if let Some(event) = self.take(&json)? {
                        return Ok(Some(event));
                    }
                }
            }
        }
    }

    fn ask(&self) -> Ask {
        Ask::get(&run_path(&self.run, "/events"))
            .query("after", self.last)
            .query("follow", true)
            .accept("text/event-stream")
    }

    /// The event, if it is new: after a reconnect the daemon may send an event again.
    fn take(&mut self, json: &str) -> Result<Option<Event>, Problem> {
        let event = Event::read(json)?;
        if event.seq <= self.last {
            return Ok(None);
        }
        self.last = event.seq;
        self.pause = FIRST_PAUSE;
        // An exhausted run that was given more room goes on, so its first end is not the last event.
        self.has_ended = match event.kind.as_str() {
            "RunEnded" => true,
            "LimitsRaised" => false,
            _ => self.has_ended,
        };
        Ok(Some(event))
    }

    /// True if the run had ended before the stream began. Otherwise a stream without the run's end broke off.
    async fn is_over(&mut self) -> Result<bool, Problem> {
        let view = self.view().await?;
        let is_terminal = view.ended_at.is_some()
            && exit_status(&view.state, view.reason_code.as_ref()).is_some();
        Ok(is_terminal && view.seq <= self.last)
    }

    async fn view(&mut self) -> Result<RunView, Problem> {
        let asked = self.session.call(&Ask::get(&run_path(&self.run, ""))).await;
        asked.map_err(|problem| match problem.is(Code::UnknownRun) {
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

/// The events of all runs from some cursor on, and those to come.
pub struct AllRuns<'w> {
    session: Session<'w>,
    /// Where the first stream begins, until an event has come.
    begin: Begin,
    stream: Option<sse::Stream>,
    pause: Duration,
}

/// Where a list of the events of all runs begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// After the event with this `cursor`.
    After(u64),
    /// With the last so many.
    Tail(u64),
}

impl Begin {
    pub fn ask(self) -> Ask {
        let ask = Ask::get("/v1/events");
        match self {
            Self::After(cursor) => ask.query("after", cursor),
            Self::Tail(events) => ask.query("tail", events),
        }
    }
}

impl<'w> AllRuns<'w> {
    pub fn new(session: Session<'w>, begin: Begin) -> Self {
        Self { session, begin, stream: None, pause: FIRST_PAUSE }
    }

    /// The next event when it has happened.
    pub async fn next(&mut self) -> Result<Event, Problem> {
        loop {
            let stream = match &mut self.stream {
                Some(stream) => stream,
                None => {
                    let ask = self.begin.ask().query("follow", true).accept("text/event-stream");
                    let reply = self.session.open(&ask).await?;
                    self.stream.insert(sse::Stream::new(reply))
                }
            };
            match stream.next().await {
                Some(sse::Event::Error(why)) => return Err(Problem::unreachable(why)),
                Some(sse::Event::Data(json)) => {
                    let event = Event::read(&json)?;
                    let cursor = event.number("cursor").unwrap_or_default();
                    // After a reconnect the daemon may send an event again.
                    if matches!(self.begin, Begin::After(last) if cursor <= last) {
                        continue;
                    }
                    self.begin = Begin::After(cursor);
                    self.pause = FIRST_PAUSE;
                    return Ok(event);
                }
                None => {
                    self.stream = None;
                    sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

/// The run was there when the client first asked for it.
fn removed(run: &str) -> Problem {
    Problem::refusal("run_removed", format_args!("run {run} was removed while it was followed"))
}
