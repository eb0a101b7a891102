//! `outlast events`: what has happened to a run.

use std::time::Duration;

use http_body_util::BodyExt;
use outlast_wire::api::{RunView, exit_status};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::time::sleep;

use crate::Answer;
use crate::args::Events;
use crate::ask::{Ask, run_path};
use crate::output::{self, printable};
use crate::problem::Problem;
use crate::session::{Session, unreadable};
use crate::sse;
use crate::world::World;

const RETRY: Duration = Duration::from_millis(50);

pub(crate) async fn events(world: &World, args: Events) -> Answer {
    let mut session = Session::new(world);
    let mut reader = Reader { json: args.json, last: args.after, ended: false };
    if args.follow {
        follow(&mut session, &args.run, &mut reader).await?;
    } else {
        let ask = Ask::get(&run_path(&args.run, "/events")).query("after", args.after);
        let events: Vec<Box<RawValue>> = session.call(&ask).await?;
        for event in events {
            reader.take(event.get())?;
        }
    }
    Ok(0)
}

async fn follow(session: &mut Session<'_>, run: &str, reader: &mut Reader) -> Result<(), Problem> {
    loop {
        let ask = Ask::get(&run_path(run, "/events"))
            .query("after", reader.last)
            .query("follow", true)
            .accept("text/event-stream");
        let (connection, response) = session.open(&ask).await?;
        let mut body = response.into_body();
        let mut events = sse::Events::default();
        while let Some(Ok(frame)) = body.frame().await {
            events.feed(&frame.into_data().unwrap_or_default());
            while let Some(event) = events.next() {
                match event {
                    sse::Event::Data(json) => reader.take(&json)?,
                    sse::Event::Error(why) => return Err(Problem::unreachable(why)),
                }
            }
        }
        drop(connection);
        if reader.ended || is_over(session, run, reader.last).await? {
            return Ok(());
        }
        sleep(RETRY).await;
    }
}

/// A stream that stopped without the end of the run broke off, unless the end was before its start.
async fn is_over(session: &mut Session<'_>, run: &str, last: u64) -> Result<bool, Problem> {
    let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
    let is_terminal =
        view.ended_at.is_some() && exit_status(&view.state, view.reason_code.as_deref()).is_some();
    Ok(is_terminal && view.seq <= last)
}

struct Reader {
    json: bool,
    /// The number of the last event printed.
    last: u64,
    ended: bool,
}

#[derive(Deserialize)]
struct Event {
    seq: u64,
    at: String,
    kind: String,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl Reader {
    fn take(&mut self, json: &str) -> Result<(), Problem> {
        let event: Event = serde_json::from_str(json).map_err(|error| unreadable(&error))?;
        // After a reconnect nothing is printed twice.
        if event.seq <= self.last {
            return Ok(());
        }
        self.last = event.seq;
        self.ended |= event.kind == "RunEnded";
        output::print_line(&if self.json { json.to_owned() } else { line(&event) })
    }
}

fn line(event: &Event) -> String {
    let details = match event.kind.as_str() {
        "StateChanged" => change(&event.fields),
        _ => fields(&event.fields),
    };
    let Event { seq, at, kind, .. } = event;
    format!("{seq:>5}  {at}  {kind:<16} {details}").trim_end().to_owned()
}

fn change(fields: &Map<String, Value>) -> String {
    let text =
        |key: &str| fields.get(key).and_then(Value::as_str).map(printable).unwrap_or_default();
    format!("{} → {}: {}", text("from"), text("to"), text("reason"))
}

fn fields(fields: &Map<String, Value>) -> String {
    let shown = fields.iter().filter(|(key, _)| *key != "run" && *key != "spec");
    let words = shown.map(|(key, value)| match value {
        Value::String(text) => format!("{key}={}", printable(text)),
        other => format!("{key}={other}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_for_people() {
        let read = |json| line(&serde_json::from_str(json).expect("an event"));
        let changed = r#"{"seq":2,"at":"2026-11-15T11:57:00Z","run":"k3m","kind":"StateChanged",
            "from":"queued","to":"running","reason":"a slot is free","reason_code":"slot_free","evidence":[]}"#;
        assert_eq!(
            read(changed),
            "    2  2026-11-15T11:57:00Z  StateChanged     queued → running: a slot is free"
        );
        let ended = r#"{"seq":5,"at":"2026-11-15T11:58:00Z","run":"k3m","kind":"AttemptEnded","turn":1,"outcome":"lost"}"#;
        assert_eq!(
            read(ended),
            "    5  2026-11-15T11:58:00Z  AttemptEnded     outcome=lost turn=1"
        );
    }
}
