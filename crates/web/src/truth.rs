//! Sentences of truth: what is not known about a run, said in words.
//!
//! Each is a list of parts: text, and times, which the page shows in the reader's own zone. Nothing here is said that an
//! event or the daemon's view does not prove.

use outlast_client::journal::Event;
use outlast_wire::api::{RunRow, RunView};
use outlast_wire::words::{Health, Impediment, ReasonCode, StateName, Word};
use serde_json::{Value, json};

const LOST: &str = "The end of this was not seen. ";
const CHECK_FIRST: &str = "It may have finished; check before repeating.";
const ENDLESS: &str = "It waits, and it is not known until when.";

/// What an event leaves open, or what it proves against appearances.
pub(crate) fn of_event(event: &Event) -> Option<Value> {
    let at = || json!({ "at": event.text("at") });
    let ended: Word<ReasonCode> = Word::of(event.text("outcome").unwrap_or_default());
    match (event.kind.as_str(), ended.known()) {
        ("AttemptEnded", Some(ReasonCode::Lost)) => {
            Some(json!([LOST, "Its process was gone at ", at(), ". ", CHECK_FIRST]))
        }
        ("AttemptEnded", Some(ReasonCode::Interrupted)) => Some(interrupted(event)),
        ("AttemptEnded", None) if is_provider(event) => Some(impeded(event)),
        ("AttemptOrphaned", _) => Some(json!([
            "Its shim died, as seen at ",
            at(),
            ". Its output and exit can no longer be seen. Stop still works."
        ])),
        ("AttemptAdopted", _) => {
            Some(json!(["The daemon was replaced here; same process, no output missing."]))
        }
        ("StopIncomplete" | "ErrandIncomplete", _) => {
            let left =
                event.get("survivors").and_then(Value::as_array).cloned().unwrap_or_default();
            let named = left.iter().map(|it| {
                let command = it["command"].as_str().unwrap_or_default();
                format!("{} {command}", it["pid"])
            });
            Some(json!([not_gone(left.len(), &named.collect::<Vec<_>>())]))
        }
        _ => None,
    }
}

fn interrupted(event: &Event) -> Value {
    let next = event.number("attempt").map_or(0, |attempt| attempt + 1);
    match event.text("by").unwrap_or_default() {
        "reboot" => json!([
            "The machine restarted. Nothing was signalled. ",
            format!(
                "If the turn is attempted again, attempt {next} starts from the workspace as it is."
            )
        ]),
        "pause" => {
            json!(["Ended for a pause; the turn is attempted again from the workspace as it is."])
        }
        by => json!([format!("Interrupted by {by}. Nothing is known of what it left undone.")]),
    }
}

/// True if a limit of the agent's provider ended the attempt.
fn is_provider(event: &Event) -> bool {
    let by: Word<Impediment> = Word::of(event.text("by").unwrap_or_default());
    by.known() == Some(Impediment::Provider)
}

fn impeded(event: &Event) -> Value {
    match event.text("until") {
        Some(until) => json!(["It waits until ", { "at": until }, ", as the agent reported."]),
        None => json!(["It waits; no time was reported, so Outlast chooses when to try again."]),
    }
}

fn not_gone(count: usize, named: &[String]) -> String {
    let noun = if count == 1 { "process" } else { "processes" };
    match named.is_empty() {
        true => format!("Stop asked; {count} {noun} would not go."),
        false => format!("Stop asked; {count} {noun} would not go: {}.", named.join(", ")),
    }
}

pub(crate) fn of_view(view: &RunView) -> Vec<Value> {
    let mut truths = Vec::new();
    if is(view.reason_code.as_ref(), ReasonCode::Lost) && view.state.has_ended() {
        truths.push(json!([LOST, CHECK_FIRST]));
    }
    if view.health == Health::Orphaned {
        let since = json!({ "at": view.health_since });
        let lives = match view.pid {
            Some(pid) => {
                format!(". Process {pid} lives; its output and exit can no longer be seen. ")
            }
            None => ". Its output and exit can no longer be seen. ".to_owned(),
        };
        truths.push(json!(["Its shim died, as seen at ", since, lives, "Stop still works."]));
    }
    if is(view.reason_code.as_ref(), ReasonCode::StopIncomplete) {
        let named: Vec<String> =
            view.survivors.iter().map(|it| format!("{} {}", it.pid, it.command)).collect();
        truths.push(json!([not_gone(view.survivors.len(), &named)]));
    } else if !view.survivors.is_empty() {
        let count = view.survivors.len();
        truths.push(json!([format!("{count} of its processes live on after its end.")]));
    }
    if let Some(trouble) = &view.trouble {
        let since = json!({ "at": trouble.since });
        truths.push(json!([trouble.message, " (since ", since, ")"]));
    }
    if let Some(recovered) = &view.recovered {
        let missing = recovered.missing.join("; ");
        truths.push(json!([format!("Rebuilt from its directory. Not proven: {missing}.")]));
    }
    let is_held = view.waiting.as_ref().is_some_and(|it| it.until.is_none());
    if (view.state == StateName::Waiting || is_held) && view.wake_at.is_none() && !view.paused {
        truths.push(json!([ENDLESS]));
    }
    // A command that is no agent has nothing to report.
    let is_open = view.usage.unreported_attempts > 0 || view.usage.unreported_usd > 0.0;
    truths.extend(spend(!is_open, view.usage.cost_usd, view.usage.unreported_usd));
    truths
}

/// The same as far as a row shows it; what was spent stands beside it in the list.
pub(crate) fn of_row(row: &RunRow) -> Vec<Value> {
    let mut truths = Vec::new();
    if is(row.reason_code.as_ref(), ReasonCode::Lost) && row.state.has_ended() {
        truths.push(json!([LOST, CHECK_FIRST]));
    }
    if row.health == Health::Orphaned {
        truths.push(json!(["Its shim died; its output and exit can no longer be seen."]));
    }
    if is(row.reason_code.as_ref(), ReasonCode::StopIncomplete) {
        let count = usize::try_from(row.survivors).unwrap_or(usize::MAX);
        truths.push(json!([not_gone(count, &[])]));
    }
    // A run that is queued without a time waits for a slot or a budget.
    let waits = row.state == StateName::Waiting || row.state == StateName::Queued;
    if waits && row.wake_at.is_none() && !row.paused {
        truths.push(json!([ENDLESS]));
    }
    truths
}

/// What was reported and what may have been spent besides.
fn spend(known: bool, cost_usd: f64, unreported_usd: f64) -> Option<Value> {
    if known {
        return None;
    }
    let reported = (cost_usd - unreported_usd).max(0.0);
    Some(match unreported_usd > 0.0 {
        true => {
            json!([format!("${reported:.2} reported, up to ${unreported_usd:.2} more was not.")])
        }
        false => json!([format!("${reported:.2} reported; not all that it used was.")]),
    })
}

fn is(code: Option<&Word<ReasonCode>>, wanted: ReasonCode) -> bool {
    code.is_some_and(|code| *code == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(fields: &str) -> String {
        let json = format!(r#"{{"seq":7,"at":"2026-11-15T02:14:00Z","run":"k3m",{fields}}}"#);
        let event = Event::read(&json).expect("an event");
        of_event(&event).map_or_else(String::new, |parts| plain(&parts))
    }

    fn plain(parts: &Value) -> String {
        let parts = parts.as_array().expect("a list of parts").iter();
        parts.map(|it| it.as_str().or(it["at"].as_str()).unwrap_or("?")).collect()
    }

    #[test]
    fn what_is_not_known_is_said_in_words() {
        assert_eq!(
            said(r#""kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"lost""#),
            "The end of this was not seen. Its process was gone at 2026-11-15T02:14:00Z. It may have finished; check before repeating."
        );
        assert_eq!(
            said(
                r#""kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"interrupted","by":"reboot""#
            ),
            "The machine restarted. Nothing was signalled. If the turn is attempted again, attempt 2 starts from the workspace as it is."
        );
        assert_eq!(
            said(r#""kind":"AttemptOrphaned","turn":1,"attempt":1"#),
            "Its shim died, as seen at 2026-11-15T02:14:00Z. Its output and exit can no longer be seen. Stop still works."
        );
        assert_eq!(
            said(r#""kind":"AttemptAdopted","turn":1,"attempt":1,"epoch":2"#),
            "The daemon was replaced here; same process, no output missing."
        );
        assert_eq!(
            said(
                r#""kind":"StopIncomplete","turn":1,"attempt":1,"survivors":[{"pid":12,"start":1,"command":"sleep"},{"pid":13,"start":1,"command":"sh"}]"#
            ),
            "Stop asked; 2 processes would not go: 12 sleep, 13 sh."
        );
        let waits =
            r#""kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"impeded","by":"provider""#;
        assert_eq!(
            said(waits),
            "It waits; no time was reported, so Outlast chooses when to try again."
        );
        assert_eq!(
            said(&format!(r#"{waits},"until":"2026-11-15T14:10:00Z""#)),
            "It waits until 2026-11-15T14:10:00Z, as the agent reported."
        );
        assert_eq!(
            said(r#""kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"exited","code":0"#),
            ""
        );
    }

    #[test]
    fn what_was_not_reported_is_no_part_of_what_was() {
        let said = |known, cost, held| spend(known, cost, held).map(|parts| plain(&parts));
        assert_eq!(said(true, 0.42, 0.0), None);
        let held = said(false, 0.52, 0.10);
        assert_eq!(held.as_deref(), Some("$0.42 reported, up to $0.10 more was not."));
        assert_eq!(
            said(false, 0.42, 0.0).as_deref(),
            Some("$0.42 reported; not all that it used was.")
        );
    }
}
