//! What a prompt may speak of: the names, and what each holds.
//!
//! Names without a value are null, never absent, so that a prompt that is fine in one turn is fine in all.

use std::collections::BTreeMap;

use liquid::model::Value;
use liquid::{Object, object};
use serde_json::Value as Json;

use super::shape::Shape;
use crate::money;

/// What one turn's prompt is made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    pub task: String,
    /// The run's id.
    pub run: String,
    pub name: Option<String>,
    pub turn: u32,
    /// Tries before this one at the same turn; `attempt` is null while there are none.
    pub earlier_attempts: u32,
    pub workspace: String,
    pub labels: BTreeMap<String, String>,
    pub previous: Previous,
    pub note: Option<Note>,
    pub messages: Vec<Message>,
    pub limits_left: LimitsLeft,
    /// What a trigger made the run of; null for a run that a person started, or a clock.
    pub item: Json,
}

/// What the turn before came to; all empty in the first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Previous {
    pub status: Option<String>,
    pub summary: Option<String>,
    pub failed_checks: Vec<FailedCheck>,
    pub tool_results: Vec<ToolResult>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FailedCheck {
    pub command: String,
    pub output: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult {
    pub name: String,
    pub key: Option<String>,
    pub status: String,
    pub output: String,
}

/// What this attempt has to know of the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Note {
    pub cause: String,
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    pub text: String,
    pub from: Option<String>,
}

/// What is left of each limit, under the names of `request.json`; `None` is no limit. A prompt also finds each
/// under the name of its limit in the loop file: [`LIMIT_ALIASES`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitsLeft {
    pub turns: Option<u64>,
    pub attempts: Option<u64>,
    pub run_ms: Option<u64>,
    pub tokens: Option<u64>,
    pub cost_usd_micros: Option<u64>,
}

impl Variables {
    /// A later turn that has a little of everything to say.
    pub fn sample() -> Self {
        Self {
            task: "a task".to_owned(),
            run: "k3mxq".to_owned(),
            name: Some("a name".to_owned()),
            workspace: "/workspace".to_owned(),
            ..Self::default()
        }
        .later()
    }

    /// The same run, but later, when there is something to say of everything.
    #[must_use]
    pub fn later(self) -> Self {
        let text = |text: &str| text.to_owned();
        Self {
            turn: 2,
            earlier_attempts: 1,
            previous: Previous {
                status: Some(text("continue")),
                summary: Some(text("so far")),
                failed_checks: vec![FailedCheck { command: text("true"), output: text("no") }],
                tool_results: vec![ToolResult {
                    name: text("tool"),
                    key: Some(text("key")),
                    status: text("ok"),
                    output: text("yes"),
                }],
            },
            note: Some(Note { cause: text("stalled"), text: text("go on") }),
            messages: vec![Message { text: text("hello"), from: Some(text("user")) }],
            ..self
        }
    }
}

const PLAIN: Shape = Shape::Plain;

/// The names that [`object`] gives, which a test holds together.
pub(super) const NAMES: Shape = Shape::Object(&[
    ("task", PLAIN),
    ("run", PLAIN),
    ("name", PLAIN),
    ("turn", PLAIN),
    ("attempt", PLAIN),
    ("workspace", PLAIN),
    ("labels", Shape::Any),
    ("previous", PREVIOUS),
    ("note", Shape::Object(&[("cause", PLAIN), ("text", PLAIN)])),
    ("messages", Shape::List(&Shape::Object(&[("text", PLAIN), ("from", PLAIN)]))),
    ("limits_left", LIMITS_LEFT),
    ("issue", ISSUE),
    // What a tracker, a webhook or a folder has to say is not known before it comes.
    ("item", Shape::Any),
]);

const PREVIOUS: Shape = Shape::Object(&[
    ("status", PLAIN),
    ("summary", PLAIN),
    ("failed_checks", Shape::List(&Shape::Object(&[("command", PLAIN), ("output", PLAIN)]))),
    ("tool_results", Shape::List(&TOOL_RESULT)),
]);

const TOOL_RESULT: Shape =
    Shape::Object(&[("name", PLAIN), ("key", PLAIN), ("status", PLAIN), ("output", PLAIN)]);

/// What is left of a limit, and its alias: the key of the limit in the loop file.
pub const LIMIT_ALIASES: [(&str, &str); 5] = [
    ("turns", "max_turns"),
    ("attempts", "max_attempts"),
    ("run_ms", "run_timeout_ms"),
    ("tokens", "max_tokens"),
    ("cost_usd", "max_cost_usd"),
];

const LIMITS_LEFT: Shape = Shape::Object(&[
    ("turns", PLAIN),
    ("attempts", PLAIN),
    ("run_ms", PLAIN),
    ("tokens", PLAIN),
    ("cost_usd", PLAIN),
    ("max_turns", PLAIN),
    ("max_attempts", PLAIN),
    ("run_timeout_ms", PLAIN),
    ("max_tokens", PLAIN),
    ("max_cost_usd", PLAIN),
]);

const ISSUE: Shape = Shape::Object(&[
    ("id", PLAIN),
    ("identifier", PLAIN),
    ("title", PLAIN),
    ("description", PLAIN),
    ("state", PLAIN),
    ("url", PLAIN),
    ("labels", Shape::List(&PLAIN)),
    ("priority", PLAIN),
    ("branch_name", PLAIN),
    ("blocked_by", Shape::List(&BLOCKER)),
    ("created_at", PLAIN),
    ("updated_at", PLAIN),
    ("assignee_id", PLAIN),
]);

const BLOCKER: Shape = Shape::Object(&[("id", PLAIN), ("identifier", PLAIN), ("state", PLAIN)]);

pub(super) fn object(of: &Variables) -> Object {
    let attempt = (of.earlier_attempts > 0).then_some(u64::from(of.earlier_attempts));
    object!({
        "task": of.task,
        "run": of.run,
        "name": text(of.name.as_deref()),
        "turn": of.turn,
        "attempt": number(attempt),
        "workspace": of.workspace,
        "labels": labels(&of.labels),
        "previous": previous(&of.previous),
        "note": of.note.as_ref().map_or(Value::Nil, note),
        "messages": of.messages.iter().map(message).collect::<Vec<_>>(),
        "limits_left": limits_left(&of.limits_left),
        "issue": issue(of),
        "item": value(&of.item),
    })
}

fn text(text: Option<&str>) -> Value {
    text.map_or(Value::Nil, |text| Value::scalar(text.to_owned()))
}

/// Liquid counts in `i64`.
fn number(number: Option<u64>) -> Value {
    number.map_or(Value::Nil, |number| Value::scalar(i64::try_from(number).unwrap_or(i64::MAX)))
}

fn labels(labels: &BTreeMap<String, String>) -> Value {
    let pairs =
        labels.iter().map(|(key, value)| (key.clone().into(), Value::scalar(value.clone())));
    Value::Object(pairs.collect())
}

fn previous(of: &Previous) -> Value {
    let check = |check: &FailedCheck| {
        Value::Object(object!({ "command": check.command, "output": check.output }))
    };
    let result = |result: &ToolResult| {
        let key = text(result.key.as_deref());
        Value::Object(object!({
            "name": result.name, "key": key, "status": result.status, "output": result.output,
        }))
    };
    Value::Object(object!({
        "status": text(of.status.as_deref()),
        "summary": text(of.summary.as_deref()),
        "failed_checks": of.failed_checks.iter().map(check).collect::<Vec<_>>(),
        "tool_results": of.tool_results.iter().map(result).collect::<Vec<_>>(),
    }))
}

fn note(of: &Note) -> Value {
    Value::Object(object!({ "cause": of.cause, "text": of.text }))
}

fn message(of: &Message) -> Value {
    Value::Object(object!({ "text": of.text, "from": text(of.from.as_deref()) }))
}

fn limits_left(of: &LimitsLeft) -> Value {
    let mut left = object!({
        "turns": number(of.turns),
        "attempts": number(of.attempts),
        "run_ms": number(of.run_ms),
        "tokens": number(of.tokens),
        "cost_usd": text(of.cost_usd_micros.map(money::exact).as_deref()),
    });
    for (name, alias) in LIMIT_ALIASES {
        let value = left.get(name).cloned().unwrap_or(Value::Nil);
        left.insert(alias.into(), value);
    }
    Value::Object(left)
}

/// The run as prompts written for Symphony know it: an issue that is being worked on. What a trigger's item
/// says of it comes first.
fn issue(of: &Variables) -> Value {
    let given = |name: &str| Some(&of.item[name]).filter(|it| !it.is_null() && is_plain(it));
    let or_text =
        |name: &str, text: &str| given(name).map_or_else(|| Value::scalar(text.to_owned()), value);
    let or_null = |name: &str| given(name).map_or(Value::Nil, value);
    Value::Object(object!({
        "id": or_text("id", &of.run),
        "identifier": or_text("identifier", of.name.as_ref().unwrap_or(&of.run)),
        "title": or_text("title", of.task.lines().next().unwrap_or_default()),
        "description": or_text("description", &of.task),
        "state": or_text("state", "active"),
        "url": or_null("url"),
        "labels": listed(&of.item["labels"]).map(label).collect::<Vec<_>>(),
        "priority": or_null("priority"),
        "branch_name": or_null("branch_name"),
        "blocked_by": listed(&of.item["blocked_by"]).map(blocker).collect::<Vec<_>>(),
        "created_at": or_null("created_at"),
        "updated_at": or_null("updated_at"),
        "assignee_id": or_null("assignee_id"),
    }))
}

fn is_plain(json: &Json) -> bool {
    !json.is_array() && !json.is_object()
}

fn listed(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

/// Trackers give a label as a word, or as an object with a name.
fn label(json: &Json) -> Value {
    let name = if is_plain(json) { json } else { &json["name"] };
    if is_plain(name) { value(name) } else { Value::Nil }
}

fn blocker(json: &Json) -> Value {
    let plain = |name: &str| Some(&json[name]).filter(|it| is_plain(it)).map_or(Value::Nil, value);
    Value::Object(object!({
        "id": plain("id"), "identifier": plain("identifier"), "state": plain("state"),
    }))
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(it) => Value::scalar(*it),
        Json::Number(it) => match it.as_i64() {
            Some(whole) => Value::scalar(whole),
            None => it.as_f64().map_or(Value::Nil, Value::scalar),
        },
        Json::String(it) => Value::scalar(it.clone()),
        Json::Array(items) => Value::Array(items.iter().map(value).collect()),
        Json::Object(fields) => Value::Object(
            fields.iter().map(|(name, it)| (name.clone().into(), value(it))).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use liquid::ValueView;

    use super::*;

    fn full() -> Variables {
        Variables {
            previous: Previous {
                failed_checks: vec![FailedCheck::default()],
                tool_results: vec![ToolResult::default()],
                ..Previous::default()
            },
            note: Some(Note::default()),
            messages: vec![Message::default()],
            ..Variables::default()
        }
    }

    fn same(shape: &Shape, value: &dyn ValueView, path: &str) {
        match shape {
            Shape::Object(fields) => {
                let object = value.as_object().unwrap_or_else(|| panic!("{path} is no object"));
                let mut known: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
                let mut given: Vec<String> = object.keys().map(|key| key.to_string()).collect();
                known.sort_unstable();
                given.sort_unstable();
                assert_eq!(known, given, "{path}");
                for (name, shape) in *fields {
                    same(shape, object.get(name).unwrap(), &format!("{path}.{name}"));
                }
            }
            Shape::List(item) => {
                let list = value.as_array().unwrap_or_else(|| panic!("{path} is no list"));
                if let Some(first) = list.values().next() {
                    same(item, first, &format!("{path}[]"));
                }
            }
            Shape::Plain => assert!(value.is_scalar() || value.is_nil(), "{path}"),
            Shape::Any => {}
        }
    }

    #[test]
    fn an_issue_is_what_the_item_says_of_it() {
        let item = serde_json::json!({
            "id": 42, "title": "from the tracker", "labels": ["bug", { "name": "ui" }],
            "blocked_by": [{ "id": "41", "state": "open", "more": 1 }], "description": { "odd": true },
        });
        let with_item = Variables { item, task: "the task".to_owned(), ..full() };
        same(&NAMES, &object(&with_item), "");
        let text = "{{ issue.id }} {{ issue.title }} {{ issue.labels | join: ',' }} \
            {{ issue.blocked_by[0].id }} {{ issue.description }} {{ item.description.odd }}";
        let rendered = super::super::render(text, &with_item).unwrap();
        assert_eq!(rendered, "42 from the tracker bug,ui 41 the task true");
    }

    #[test]
    fn the_names_that_are_checked_are_the_names_that_are_given() {
        same(&NAMES, &object(&full()), "");
    }
}
