//! `outlast events`: what has happened to a run, or to all of them.

mod told;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_client::ask::{Ask, run_path};
use outlast_client::journal::{AllRuns, Begin, Event, Journal};
use outlast_client::problem::Problem;
use outlast_client::rows;
use outlast_client::session::Session;
use outlast_wire::api::LINES;
use serde_json::Value;
use serde_json::value::RawValue;

use self::told::Told;
use crate::Answer;
use crate::args::Events;
use crate::output::table::clipped;
use crate::output::{self, printable};
use crate::world::World;

/// In characters: what a field may take of a line.
const LONGEST_VALUE: usize = 120;

/// How many of the events of all runs are shown, unless others are asked for.
const TAIL: u64 = 100;

pub(crate) async fn events(world: &World, args: Events) -> Answer {
    let session = Session::new(&world.client);
    let how = match (args.json, args.verbose) {
        (true, _) => How::Json,
        (false, true) => How::Fields,
        (false, false) => How::Sentences,
    };
    let mut press =
        Press { how, told: Told::new(world.now(), TimeZone::system()), columns: world.columns() };
    match &args.run {
        Some(run) => of_run(session, run, &args, &mut press).await,
        None => of_all(session, &args, &mut press).await,
    }
}

/// Says events in the same words, for another screen.
pub(crate) fn teller(now: Timestamp) -> impl FnMut(&Event) -> Vec<String> + Send {
    let mut told = Told::new(now, TimeZone::UTC);
    move |event| told.sentences(event)
}

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// What happened, in words; what only the engine cares about is left out.
    Sentences,
    /// Every event with its number, kind and fields.
    Fields,
    Json,
}

struct Press {
    how: How,
    told: Told,
    columns: Option<usize>,
}

impl Press {
    fn print(&mut self, event: &Event) -> Result<(), Problem> {
        self.lines(event, "")
    }

    /// Behind the run that it is of, by its name where it has one.
    fn print_of_all(&mut self, event: &Event) -> Result<(), Problem> {
        let run = event.text("run_name").or(event.text("run")).map(printable).unwrap_or_default();
        self.lines(event, &format!("{run:<12}  "))
    }

    fn lines(&mut self, event: &Event, run: &str) -> Result<(), Problem> {
        let lines = match self.how {
            How::Json => return output::print_line(&event.json),
            How::Fields => return output::print_line(&format!("{run}{}", line(event))),
            How::Sentences => self.told.lines(event),
        };
        for line in lines {
            let line = printable(&format!("{run}{line}"));
            output::print_line(
                &self.columns.map_or(line.as_str().into(), |it| clipped(&line, it)),
            )?;
        }
        Ok(())
    }
}

async fn of_run(mut session: Session<'_>, run: &str, args: &Events, press: &mut Press) -> Answer {
    let mut after = args.after.unwrap_or(0);
    if !args.follow || args.tail.is_some() {
        let ask = Ask::get(&run_path(run, "/events")).query("after", after);
        let events: Vec<Box<RawValue>> = session.call(&ask).await?;
        let shown = args.tail.map_or(events.len(), |tail| clamp(tail).min(events.len()));
        for event in &events[events.len() - shown..] {
            let event = Event::read(event.get())?;
            after = event.seq;
            press.print(&event)?;
        }
    }
    if args.follow {
        let mut journal = Journal::new(session, run, after);
        while let Some(event) = journal.next().await? {
            press.print(&event)?;
        }
    }
    Ok(0)
}

async fn of_all(mut session: Session<'_>, args: &Events, press: &mut Press) -> Answer {
    let begin = match (args.after, args.tail) {
        (Some(cursor), _) => Begin::After(cursor),
        (None, tail) => Begin::Tail(tail.unwrap_or(TAIL)),
    };
    if args.follow {
        let mut all = AllRuns::new(session, begin);
        loop {
            press.print_of_all(&all.next().await?)?;
        }
    }
    let ask = begin.ask().accept(LINES);
    let reply = session.open(&ask).await?;
    rows::each(&ask, reply, |line| {
        press.print_of_all(&Event::read(&String::from_utf8_lossy(line))?)
    })
    .await?;
    Ok(0)
}

fn clamp(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn line(event: &Event) -> String {
    let details = match event.kind.as_str() {
        "StateChanged" => change(event),
        _ => fields(event),
    };
    let at = event.text("at").unwrap_or("-");
    format!("{:>5}  {at}  {:<16} {details}", event.seq, event.kind).trim_end().to_owned()
}

fn change(event: &Event) -> String {
    let text = |key: &str| event.text(key).map(printable).unwrap_or_default();
    format!("{} → {}: {}", text("from"), text("to"), text("reason"))
}

/// Where the event is first, then the rest by name. What is not known is left out, and so is what a run was
/// asked to be, which has pages.
fn fields(event: &Event) -> String {
    let is_place = |key: &str| ["turn", "attempt", "number"].contains(&key);
    let place = ["turn", "attempt", "number"]
        .into_iter()
        .filter_map(|key| Some((key, event.get(key)?)))
        .map(|(key, value)| format!("{key}={value}"));
    let rest = event
        .own_fields()
        .filter(|(key, value)| !is_place(key) && key.as_str() != "spec" && !is_nothing(value))
        .map(|(key, value)| format!("{key}={}", worded(value)));
    place.chain(rest).collect::<Vec<_>>().join(" ")
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Text with blanks in it stands in quotes, so that one can see where it ends.
fn worded(value: &Value) -> String {
    let text = match value {
        Value::String(text) if !text.contains(char::is_whitespace) && !text.is_empty() => {
            printable(text)
        }
        Value::String(text) => format!("\"{}\"", printable(text)),
        other => printable(&other.to_string()),
    };
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> String {
        line(&Event::read(json).expect("an event"))
    }

    #[test]
    fn an_event_is_one_line_for_people() {
        let changed = r#"{"seq":2,"at":"2026-11-15T11:57:00Z","run":"k3m","kind":"StateChanged",
            "from":"queued","to":"running","reason":"a slot is free","reason_code":"slot_free","evidence":[]}"#;
        assert_eq!(
            read(changed),
            "    2  2026-11-15T11:57:00Z  StateChanged     queued → running: a slot is free"
        );
        let ended = r#"{"seq":5,"at":"2026-11-15T11:58:00Z","run":"k3m","kind":"AttemptEnded","turn":1,"outcome":"lost"}"#;
        assert_eq!(
            read(ended),
            "    5  2026-11-15T11:58:00Z  AttemptEnded     turn=1 outcome=lost"
        );
    }

    #[test]
    fn an_event_that_we_do_not_know_is_told_by_its_fields() {
        let said = r#"{"seq":7,"at":"2026-11-15T11:58:00Z","run":"k3m","kind":"GhostSeen","number":3,
            "who":"the\nold one","why":null,"evidence":[],"weights":[1,2],"spec":{"a":1}}"#;
        assert_eq!(
            read(said),
            "    7  2026-11-15T11:58:00Z  GhostSeen        number=3 weights=[1,2] who=\"the·old one\""
        );
    }

    #[test]
    fn a_long_value_does_not_take_the_screen() {
        let said = format!(r#"{{"seq":1,"at":"-","kind":"K","text":"{}"}}"#, "ö".repeat(500));
        assert_eq!(read(&said).chars().filter(|c| *c == 'ö').count(), LONGEST_VALUE);
    }
}
