//! What holds for every operation of the document, said once: where the API is served, what a path names, and which
//! errors can come.
//!
//! A handler describes its own answers. Of an error it may name the status alone, `(status = 403)`; the words and the
//! body come from here, and so do the errors that follow from what the operation takes.

use std::collections::BTreeSet;

use outlast_wire::codes::Code;
use serde_json::{Map, Value, json};

/// Operations that ask neither the journal nor the host, and so do not fail.
const CANNOT_FAIL: [&str; 6] = [
    "/healthz",
    "/v1/version",
    "/v1/openapi.json",
    "/v1/orders",
    "/v1/daemon/stop",
    "/v1/daemon/handover",
];

/// Rows of lists, which have every key in every row: null where there is nothing.
const ROWS: [&str; 9] = [
    "RunRow",
    "SinkRow",
    "TriggerView",
    "BudgetView",
    "OrderView",
    "GcItem",
    "RecoverItem",
    "Finding",
    "Spent",
];

const TAGS: [(&str, &str); 5] = [
    ("runs", "What runs, what it did, and orders to it"),
    ("triggers", "What makes runs by itself: schedules, webhooks, folders, polls"),
    ("sinks", "Where notices go"),
    ("daemon", "The daemon itself, its budgets, and its upkeep"),
    ("probes", "For monitoring"),
];

pub(super) fn complete(document: &mut Value) {
    document["servers"] = json!([{
        "url": "http://localhost",
        "description": "The unix socket of the daemon (`outlast daemon status` names it); the host is not looked at. \
            Over TCP ([listen] in config.toml) only the probes and /hooks are served.",
    }]);
    let tag = |(name, about): (&str, &str)| json!({ "name": name, "description": about });
    document["tags"] = TAGS.map(tag).into_iter().collect();
    document["components"]["responses"] = shared_errors();
    require_all_keys(&mut document["components"]["schemas"]);
    for (path, methods) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in methods.as_object_mut().into_iter().flatten() {
            complete_operation(path, method, operation);
        }
    }
}

fn complete_operation(path: &str, method: &str, operation: &mut Value) {
    operation["tags"] = json!([tag_of(path)]);
    let mut parameters: Vec<Value> = names_in(path).map(path_parameter).collect();
    let own = operation["parameters"].as_array_mut().map(std::mem::take);
    parameters.extend(own.unwrap_or_default().into_iter().map(without_null));
    require_a_body_or_none(operation);
    let takes_something = !parameters.is_empty() || operation.get("requestBody").is_some();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    } else if let Some(operation) = operation.as_object_mut() {
        operation.remove("parameters");
    }
    if let Some(responses) = operation["responses"].as_object_mut() {
        for (status, response) in responses.iter_mut().filter(|(status, _)| is_error(status)) {
            complete_error(status, response);
        }
        for status in errors_of(path, method, takes_something) {
            responses.entry(status.to_string()).or_insert_with(|| shared(&status.to_string()));
        }
    }
}

/// The errors that follow from what an operation takes and asks.
fn errors_of(path: &str, method: &str, takes_something: bool) -> BTreeSet<u16> {
    let names: Vec<&str> = names_in(path).collect();
    let is_delivery = path.starts_with("/hooks/");
    let can_fail = !CANNOT_FAIL.contains(&path) && !is_delivery;
    let all = [
        (400, takes_something),
        (404, !names.is_empty()),
        // A name that means several runs, and a run that has a directory and no journal.
        (409, names.contains(&"run")),
        (500, can_fail),
        (503, can_fail),
        (507, can_fail && method != "get"),
    ];
    all.into_iter().filter(|(_, comes)| *comes).map(|(status, _)| status).collect()
}

/// What each part of a path in braces names.
fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> Value {
    let (kind, about) = match name {
        "run" => ("string", "A run: its id, a unique prefix of 3 characters or more, or its name"),
        "trigger" => ("string", "The name of a trigger"),
        "token" => ("string", "What the link of a notice ends with"),
        "turn" => ("integer", "The number of a turn, from 1 on"),
        _ => ("string", ""),
    };
    let mut schema = json!({ "type": kind });
    if kind == "integer" {
        schema["minimum"] = 0.into();
        schema["maximum"] = u32::MAX.into();
    } else {
        schema["minLength"] = 1.into();
    }
    json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema })
}

/// A query has no null: what is not given is left out.
fn without_null(mut parameter: Value) -> Value {
    let kind = &mut parameter["schema"]["type"];
    if let Some(kinds) = kind.as_array() {
        let mut left = kinds.iter().filter(|kind| *kind != "null").cloned();
        if let (Some(only), None) = (left.next(), left.next()) {
            *kind = only;
        }
    }
    parameter
}

/// A body that may be left out is not null either.
fn require_a_body_or_none(operation: &mut Value) {
    let schema = operation.pointer_mut("/requestBody/content/application~1json/schema");
    let Some(schema) = schema else { return };
    let of_it = schema["oneOf"].as_array().and_then(|both| {
        let mut some = both.iter().filter(|one| one["type"] != "null");
        some.next().cloned().filter(|_| some.next().is_none())
    });
    if let Some(of_it) = of_it {
        *schema = of_it;
    }
}

fn is_error(status: &str) -> bool {
    status.starts_with(['4', '5'])
}

/// An error that its handler gave no words has those that it has everywhere; and each has its body.
fn complete_error(status: &str, response: &mut Value) {
    if response.get("description").is_none_or(|words| words == "") {
        *response = shared(status);
    } else if response.get("content").is_none() {
        response["content"] = error_content();
    }
}

fn shared(status: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/Error{status}") })
}

fn error_content() -> Value {
    json!({ "application/json": { "schema": { "$ref": "#/components/schemas/ErrorBody" } } })
}

/// One response for each status that a code has.
fn shared_errors() -> Value {
    let statuses: BTreeSet<u16> = Code::ALL.iter().map(|code| code.status()).collect();
    let response = |status: u16| {
        let codes = Code::ALL.iter().filter(|code| code.status() == status);
        let codes: Vec<String> = codes.map(|code| format!("`{}`", code.word())).collect();
        let words = format!("{}. `error.code` is one of {}", words_of(status), codes.join(", "));
        (format!("Error{status}"), json!({ "description": words, "content": error_content() }))
    };
    statuses.into_iter().map(response).collect::<Map<String, Value>>().into()
}

fn words_of(status: u16) -> &'static str {
    match status {
        400 => "The request is wrong",
        401 => "The token or the signature is missing or wrong",
        403 => "The caller may not give this order",
        404 => "There is no such thing",
        405 => "The path does not take this method",
        408 => "The body did not arrive in time",
        409 => "The state of the run, the trigger or the daemon forbids it",
        413 => "The body is too large",
        503 => "The daemon cannot do it now; try again",
        507 => "The disk is full",
        _ => "The daemon or its host cannot do it",
    }
}

fn require_all_keys(schemas: &mut Value) {
    for name in ROWS {
        let Some(schema) = schemas.get_mut(name) else { continue };
        let keys = schema["properties"].as_object().map(|keys| keys.keys().cloned().collect());
        let keys: Vec<String> = keys.unwrap_or_default();
        schema["required"] = keys.into();
    }
}

fn tag_of(path: &str) -> &'static str {
    match path.trim_start_matches("/v1").split('/').nth(1).unwrap_or_default() {
        "runs" | "watch" | "events" => "runs",
        "triggers" | "next" | "hooks" => "triggers",
        "sinks" => "sinks",
        "healthz" | "readyz" | "metrics" => "probes",
        _ => "daemon",
    }
}
