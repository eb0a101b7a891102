//! What happened to a run, as kinds, times and numbers.
//!
//! A list of what is taken, not of what is left out: a field that is new, or that an agent or a person has
//! written, is not in it.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Events of one run that are told: its beginning, and most of all its end.
const FIRST: usize = 100;
const LAST: usize = 900;

/// Fields that hold a word of our own.
const WORDS: [&str; 16] = [
    "kind",
    "from",
    "to",
    "reason_code",
    "cause",
    "outcome",
    "status",
    "state",
    "verdict",
    "purpose",
    "hook",
    "mode",
    "limit",
    "decision",
    "actor",
    "code",
];

const TIMES: [&str; 2] = ["at", "until"];

/// Fields that hold numbers and flags of our own, one below the other.
const FIGURES: [&str; 2] = ["charge", "exit"];

/// What a sender is called is the sender's word.
const TOLD_BY_OTHERS: &str = "MessageReceived";

pub(super) fn lines(events: &[Value]) -> Vec<u8> {
    let left_out = events.len().saturating_sub(FIRST + LAST);
    let first = events.iter().take(FIRST);
    let last = events.iter().skip(FIRST + left_out);
    let gap = (left_out > 0).then(|| format!("{}\n", json!({ "left_out": left_out })));
    let line = |event: &Value| format!("{}\n", outline(event));
    first.map(line).chain(gap).chain(last.map(line)).collect::<String>().into_bytes()
}

fn outline(event: &Value) -> Value {
    let Some(fields) = event.as_object() else { return Value::Null };
    let is_ours = fields.get("kind").is_some_and(|kind| kind != TOLD_BY_OTHERS);
    let mut kept = Map::new();
    for (key, value) in fields {
        let value = match value {
            Value::Number(_) | Value::Bool(_) => Some(value.clone()),
            Value::String(text) if key == "kind" => is_name(text).then(|| value.clone()),
            Value::String(text) if WORDS.contains(&key.as_str()) && is_ours => {
                is_word(text).then(|| value.clone())
            }
            Value::String(text) if TIMES.contains(&key.as_str()) => {
                text.parse::<Timestamp>().is_ok().then(|| value.clone())
            }
            Value::Object(_) if FIGURES.contains(&key.as_str()) => Some(figures(value)),
            Value::Object(_) if key == "spec" => Some(spec(value)),
            Value::Array(items) => Some(json!({ "count": items.len() })),
            Value::Object(_) | Value::String(_) | Value::Null => None,
        };
        if let Some(value) = value {
            kept.insert(key.clone(), value);
        }
    }
    Value::Object(kept)
}

/// The numbers and flags of an object.
fn figures(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten();
    let kept = fields.filter(|(_, value)| value.is_number() || value.is_boolean());
    Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// What a run was asked to be, without what it was asked.
fn spec(spec: &Value) -> Value {
    let count = |path: &str| {
        let found = spec.pointer(path);
        found.map_or(0, |it| {
            it.as_array().map_or_else(|| it.as_object().map_or(0, Map::len), Vec::len)
        })
    };
    let word = |path: &str| spec.pointer(path).and_then(Value::as_str).filter(|text| is_word(text));
    json!({
        "agent": word("/agent/kind"),
        "program": spec.pointer("/agent/command/0").and_then(Value::as_str).and_then(program),
        "arguments": count("/agent/command").saturating_sub(1),
        "limits": figures(&spec["limits"]),
        "retry": figures(&spec["retry"]),
        "strategy": word("/workspace/strategy"),
        "on_interrupt": word("/on_interrupt"),
        "terminal": !spec["tty"].is_null(),
        "labels": count("/labels"),
        "tools": count("/tools"),
        "checks": count("/checks/before_run") + count("/checks/done"),
        "has_workflow": !spec["workflow"].is_null(),
        "has_task": !spec["task"].is_null(),
    })
}

/// The file name of a command; nothing of one that is more than that.
fn program(command: &str) -> Option<String> {
    let name = command.rsplit('/').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    (!name.is_empty() && name.len() <= 40 && name.chars().all(is_plain)).then(|| name.to_owned())
}

fn is_word(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    !text.is_empty() && text.len() <= 40 && text.chars().all(is_letter)
}

fn is_name(text: &str) -> bool {
    text.len() <= 40 && text.chars().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_somebody_wrote_is_taken() {
        let event = json!({
            "seq": 4, "at": "2026-11-16T00:00:00.000Z", "run": "k3m", "kind": "TurnCommitted", "turn": 1, "status": "done",
            "outcome": "meaningful_completion", "summary": "S", "next_task": "S", "workspace": "S",
            "tool_calls": [{"name": "S", "input": {"S": 7}}], "wait": {"S": 1},
            "charge": {"input_tokens": 3, "known": true, "S": "S"}, "new_field": "S",
        });
        let expected = json!({
            "seq": 4, "at": "2026-11-16T00:00:00.000Z", "kind": "TurnCommitted", "turn": 1, "status": "done",
            "outcome": "meaningful_completion", "tool_calls": {"count": 1}, "charge": {"input_tokens": 3, "known": true},
        });
        assert_eq!(outline(&event), expected);
        let message = json!({"seq": 5, "kind": "MessageReceived", "from": "secret", "text": "S", "message": "S"});
        assert_eq!(outline(&message), json!({"seq": 5, "kind": "MessageReceived"}));
        let created = json!({"kind": "RunCreated", "spec": {
            "task": "S", "name": "S", "agent": {"kind": "exec", "command": ["/S/bin/sh", "-c", "S"]}, "labels": {"S": "S"},
            "limits": {"max_turns": 3}, "retry": {"max_attempts": 1}, "dir": "/S"}});
        let told = outline(&created);
        assert!(!told.to_string().contains('S'), "{told}");
        assert_eq!(
            (&told["spec"]["program"], &told["spec"]["arguments"]),
            (&json!("sh"), &json!(2))
        );
    }

    #[test]
    fn of_a_long_story_the_beginning_and_the_end_are_told() {
        let events: Vec<Value> =
            (1..=1500).map(|seq| json!({"seq": seq, "kind": "Woke"})).collect();
        let text = String::from_utf8(lines(&events)).expect("text");
        let told: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(told.len(), 1001);
        assert_eq!(
            (&told[99]["seq"], &told[100]["left_out"], &told[101]["seq"]),
            (&json!(100), &json!(500), &json!(601))
        );
    }
}
