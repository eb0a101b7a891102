//! The tables of keys as JSON Schema, for editors.

use serde_json::{Map, Value, json};

use crate::keys::{CONFIG, Effect, Key, Kind, WORKFLOW};
use crate::settle::OURS;
use crate::times;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The front matter of a loop file.
pub fn schema_workflow() -> String {
    let mut root = schema("Outlast loop file", WORKFLOW);
    for section in OURS {
        close(&mut root["properties"][section]);
    }
    format!("{root:#}\n")
}

/// The operator's `config.toml`.
pub fn schema_config() -> String {
    let mut root = schema("Outlast config", CONFIG);
    for section in root["properties"].as_object_mut().into_iter().flatten() {
        close(section.1);
    }
    format!("{root:#}\n")
}

/// Lets an object have no other keys than those that it lists, at any depth.
fn close(node: &mut Value) {
    let Value::Object(object) = node else { return };
    if object.contains_key("properties") && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    for below in ["items", "additionalProperties"] {
        object.get_mut(below).into_iter().for_each(close);
    }
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flatten().for_each(|(_, property)| close(property));
}

fn schema(title: &str, table: &[Key]) -> Value {
    let mut root = json!({ "$schema": DIALECT, "title": title, "type": "object" });
    for key in table {
        put(&mut root, key.path, described(key));
        if let Some(name) = key.path.strip_suffix("_ms").filter(|_| key.is_time()) {
            put(&mut root, name, time(key));
        }
    }
    root
}

/// Puts a leaf where its path leads, making what is above it.
fn put(above: &mut Value, path: &str, leaf: Value) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let (name, is_list) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
    let slot = slot(above, name);
    match rest {
        None => *slot = leaf,
        Some(rest) if is_list => {
            slot["type"] = json!("array");
            let item = slot.as_object_mut().map(|slot| slot.entry("items").or_insert_with(section));
            put_in(item, rest, leaf);
        }
        Some(rest) => put(slot, rest, leaf),
    }
}

fn put_in(above: Option<&mut Value>, path: &str, leaf: Value) {
    if let Some(above) = above {
        put(above, path, leaf);
    }
}

/// The place of a property; `*` is any other.
fn slot<'v>(above: &'v mut Value, name: &str) -> &'v mut Value {
    if name == "*" {
        let any = &mut above["additionalProperties"];
        if any.is_null() {
            *any = section();
        }
        return any;
    }
    let properties = &mut above["properties"];
    if properties.is_null() {
        *properties = Value::Object(Map::new());
    }
    let slot = &mut properties[name];
    if slot.is_null() {
        *slot = section();
    }
    slot
}

fn section() -> Value {
    json!({ "type": "object" })
}

fn described(key: &Key) -> Value {
    let mut schema = typed(key.kind);
    let about = match key.effect {
        Effect::Acts => key.about.to_owned(),
        Effect::None => format!("{} (no effect in this version)", key.about),
    };
    let about = match key.default {
        "" => about,
        default => format!("{about}; default: {default}"),
    };
    schema["description"] = json!(about);
    schema
}

/// A length of time under the name that takes its unit.
fn time(key: &Key) -> Value {
    let off = if key.kind == Kind::Timeout { "" } else { "off|0|" };
    let pattern = format!("^({off}([0-9]+(ms|[smhdw]))+)$");
    let mut schema = match key.kind {
        Kind::Timeout => json!({ "type": "string", "pattern": pattern }),
        _ => json!({ "anyOf": [{ "const": 0 }, { "type": "string", "pattern": pattern }] }),
    };
    let default = match key.default {
        "" => String::new(),
        words => format!("; default: {}", times::in_words(words)),
    };
    schema["description"] = json!(format!("{}, such as 10m, 8h or 7d{default}", key.about));
    schema
}

fn typed(kind: Kind) -> Value {
    match kind {
        Kind::Count => json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX }),
        Kind::Millis => json!({ "type": "integer", "minimum": 0 }),
        Kind::Timeout => json!({ "type": "integer", "minimum": 1 }),
        Kind::Window => json!({ "type": "integer" }),
        Kind::Priority => json!({ "type": "integer", "minimum": i32::MIN, "maximum": i32::MAX }),
        Kind::Money => json!({ "type": "number", "minimum": 0 }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Text | Kind::Path => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "enum": words }),
        // What its map may have is put beside this, where it holds for maps alone.
        Kind::WordOrMap(words) => json!({ "anyOf": [
            { "enum": words },
            { "type": "object", "minProperties": 1 },
        ] }),
        Kind::Positive => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
        Kind::Share => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        Kind::Texts => texts(),
        Kind::Command => json!({ "anyOf": [{ "type": "string" }, texts()] }),
        Kind::Span => json!({ "anyOf": [
            { "const": 0 },
            { "type": "string", "pattern": "^(forever|never|0|([0-9]+(ms|[smhdw]))+)$" },
        ] }),
        Kind::Map | Kind::Match => json!({ "type": "object" }),
        Kind::Paths => json!({ "anyOf": [{ "type": "string" }, texts()] }),
        Kind::Matches => json!({ "type": "array", "items": { "type": "object" } }),
        Kind::Any => json!({}),
    }
}

fn texts() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_place() {
        let schema: Value = serde_json::from_str(&schema_workflow()).unwrap();
        let limits = &schema["properties"]["limits"];
        assert_eq!(limits["type"], "object");
        assert_eq!(limits["properties"]["max_tokens"]["minimum"], 0);
        assert_eq!(limits["properties"]["stall_window_ms"]["type"], "integer");
        let stall = &limits["properties"]["stall_window"];
        assert_eq!(stall["anyOf"][1]["pattern"], "^(off|0|([0-9]+(ms|[smhdw]))+)$");
        assert!(stall["description"].as_str().unwrap().ends_with("else 5m"), "{stall}");
        let tool = &schema["properties"]["tools"]["items"]["properties"];
        assert_eq!(tool["timeout"]["type"], "string");
        assert_eq!(tool["class"]["enum"][0], "read");
        let completed =
            &schema["properties"]["workspace"]["properties"]["retain"]["properties"]["completed"];
        assert!(completed["description"].as_str().unwrap().contains("default: 7d"));
        let session = &schema["properties"]["agent"]["properties"]["session"];
        assert_eq!(session["anyOf"][0]["enum"], json!(["keep", "fresh"]));
        assert_eq!(session["properties"]["refresh_at"]["maximum"], 1);
        assert_eq!(session["properties"]["every"]["minimum"], 1);
        assert_eq!(limits["additionalProperties"], false);
        assert_eq!(schema["properties"]["tools"]["items"]["additionalProperties"], false);
        assert!(
            schema["properties"]["tools"]["items"]["properties"]["input_schema"]
                .get("additionalProperties")
                .is_none()
        );
        assert!(
            schema.get("additionalProperties").is_none()
                && schema["properties"]["codex"].get("additionalProperties").is_none()
        );
        let config: Value = serde_json::from_str(&schema_config()).unwrap();
        let labels = &config["properties"]["concurrency"]["properties"]["per_label"];
        assert_eq!(labels["additionalProperties"]["type"], "integer");
        let sink = &config["properties"]["sinks"]["additionalProperties"];
        assert_eq!(
            (&sink["type"], &sink["properties"]["level"]["enum"][0]),
            (&json!("object"), &json!("all"))
        );
        assert_eq!(config["properties"]["ceilings"]["additionalProperties"], false);
        assert_eq!(sink["additionalProperties"], false);
    }
}
