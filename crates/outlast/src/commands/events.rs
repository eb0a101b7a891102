//! `outlast events`: what has happened to a run.

use outlast_client::ask::{Ask, run_path};
use outlast_client::journal::{Event, Journal};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Answer;
use crate::args::Events;
use crate::output::{self, printable};
use crate::world::World;

/// In characters: what a field may take of a line.
const LONGEST_VALUE: usize = 120;

pub(crate) async fn events(world: &World, args: Events) -> Answer {
    let mut session = Session::new(&world.client);
    if args.follow {
        let mut journal = Journal::new(session, &args.run, args.after);
        while let Some(event) = journal.next().await? {
            print(&event, args.json)?;
        }
        return Ok(0);
    }
    let ask = Ask::get(&run_path(&args.run, "/events")).query("after", args.after);
    let events: Vec<Box<RawValue>> = session.call(&ask).await?;
    for event in events {
        print(&Event::read(event.get())?, args.json)?;
    }
    Ok(0)
}

fn print(event: &Event, json: bool) -> Result<(), Problem> {
    if json { output::print_line(&event.json) } else { output::print_line(&line(event)) }
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
