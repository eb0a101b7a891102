//! Whether the input of a tool fits its schema: the part of JSON Schema that tools are described with.
//!
//! A loop file whose schema has another keyword is refused by [`check_schema`], because a tool's author would
//! rely on a rule that is not applied. [`check`] ignores such keywords: journals from before that refusal have them.
//! The first thing that is wrong is told, with its place.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

use crate::quote::quote;

const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// The keywords that an input is checked against.
pub const CHECKED: [&str; 11] = [
    "type",
    "enum",
    "const",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
];

/// The keywords that only describe: no input is refused for them.
pub const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "default",
    "examples",
    "$schema",
    "$id",
    "$comment",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// What is wrong with a schema, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSchema {
    /// The keys that lead there from the top of the schema.
    pub path: Vec<String>,
    pub what: Wrong,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    UnknownKeyword,
    /// A keyword has a value that it cannot have; the message goes on from the place.
    Value(String),
}

impl fmt::Display for BadSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schema")?;
        self.path.iter().try_for_each(|key| write!(f, ".{}", quote(key)))?;
        match &self.what {
            Wrong::UnknownKeyword => {
                f.write_str(": is not a keyword that inputs are checked against")
            }
            Wrong::Value(message) => write!(f, ": {message}"),
        }
    }
}

impl BadSchema {
    fn value(message: impl Into<String>) -> Self {
        Self { path: Vec::new(), what: Wrong::Value(message.into()) }
    }

    /// The same, one key further down.
    fn below(mut self, key: &str) -> Self {
        self.path.insert(0, key.to_owned());
        self
    }
}

/// What is done about a keyword that is in neither list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unknown {
    Refused,
    Ignored,
}

/// Whether this is a schema that [`check`] can use, and uses all of.
pub fn check_schema(schema_json: &str) -> Result<(), BadSchema> {
    schema(schema_json, Unknown::Refused).map(drop)
}

pub fn check(schema_json: &str, input_json: &str) -> Result<(), String> {
    let schema = schema(schema_json, Unknown::Ignored).map_err(|bad| bad.to_string())?;
    let schema = Value::Object(schema);
    let input = serde_json::from_str(input_json)
        .map_err(|error| format!("input: must be JSON, but {error}"))?;
    fits(&schema, "input", &input)
}

fn schema(json: &str, unknown: Unknown) -> Result<Map<String, Value>, BadSchema> {
    let schema: Value = serde_json::from_str(json)
        .map_err(|error| BadSchema::value(format!("must be JSON, but {error}")))?;
    let Value::Object(keywords) = schema else {
        return Err(BadSchema::value("must be an object"));
    };
    well_formed_keywords(&keywords, unknown)?;
    Ok(keywords)
}

/// Below the top, true is what fits anything and false what fits nothing.
fn well_formed(schema: &Value, unknown: Unknown) -> Result<(), BadSchema> {
    match schema {
        Value::Object(keywords) => well_formed_keywords(keywords, unknown),
        Value::Bool(_) => Ok(()),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(BadSchema::value("must be an object or a boolean"))
        }
    }
}

fn well_formed_keywords(keywords: &Map<String, Value>, unknown: Unknown) -> Result<(), BadSchema> {
    keywords.iter().try_for_each(|(keyword, value)| {
        well_formed_keyword(keyword, value, unknown).map_err(|bad| bad.below(keyword))
    })
}

fn well_formed_keyword(keyword: &str, value: &Value, unknown: Unknown) -> Result<(), BadSchema> {
    match keyword {
        "type" => well_formed_type(value),
        "required" => must(is_list_of_texts(value), "must be a list of strings"),
        "enum" => must(value.is_array(), "must be a list"),
        "minimum" | "maximum" => must(value.is_number(), "must be a number"),
        "minLength" | "maxLength" => must(value.is_u64(), "must be a whole number"),
        "items" | "additionalProperties" => well_formed(value, unknown),
        "properties" => well_formed_properties(value, unknown),
        _ => {
            let is_known = CHECKED.contains(&keyword) || ANNOTATIONS.contains(&keyword);
            if is_known || unknown == Unknown::Ignored {
                return Ok(());
            }
            Err(BadSchema { path: Vec::new(), what: Wrong::UnknownKeyword })
        }
    }
}

fn must(is_so: bool, otherwise: &str) -> Result<(), BadSchema> {
    if is_so { Ok(()) } else { Err(BadSchema::value(otherwise)) }
}

fn well_formed_type(value: &Value) -> Result<(), BadSchema> {
    let is_known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_fine = match value {
        Value::Array(names) => names.iter().all(is_known),
        name => is_known(name),
    };
    must(is_fine, &format!("must be of {}", TYPES.join(", ")))
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

fn well_formed_properties(value: &Value, unknown: Unknown) -> Result<(), BadSchema> {
    let Value::Object(properties) = value else {
        return Err(BadSchema::value("must be an object"));
    };
    properties
        .iter()
        .try_for_each(|(name, schema)| well_formed(schema, unknown).map_err(|bad| bad.below(name)))
}

fn fits(schema: &Value, path: &str, input: &Value) -> Result<(), String> {
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Bool(false) => return Err(format!("{path}: must not be there")),
        _ => return Ok(()),
    };
    let problem =
        kind(keywords, input).or_else(|| choice(keywords, input)).or_else(|| size(keywords, input));
    if let Some(problem) = problem {
        return Err(format!("{path}: {problem}"));
    }
    match input {
        Value::Object(members) => members_fit(keywords, path, members),
        Value::Array(items) => items_fit(keywords, path, items),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
    }
}

fn kind(keywords: &Map<String, Value>, input: &Value) -> Option<String> {
    let names: Vec<&str> = match keywords.get("type")? {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    };
    if names.iter().any(|name| is_of(name, input)) {
        return None;
    }
    let names: Vec<_> = names.iter().map(|name| with_article(name)).collect();
    Some(format!("must be {}", names.join(" or ")))
}

fn is_of(name: &str, input: &Value) -> bool {
    match name {
        "null" => input.is_null(),
        "boolean" => input.is_boolean(),
        "object" => input.is_object(),
        "array" => input.is_array(),
        "number" => input.is_number(),
        "integer" => input.as_number().is_some_and(is_whole),
        "string" => input.is_string(),
        _ => false,
    }
}

/// 1.0 is a whole number as well.
fn is_whole(number: &Number) -> bool {
    integer(number).is_some() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn with_article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        "object" | "array" | "integer" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn choice(keywords: &Map<String, Value>, input: &Value) -> Option<String> {
    let told = |value: &Value| match value {
        Value::String(text) => quote(text),
        other => quote(&other.to_string()),
    };
    if let Some(only) = keywords.get("const").filter(|only| !is_same(only, input)) {
        return Some(format!("must be {}", told(only)));
    }
    let choices = keywords.get("enum")?.as_array()?;
    if choices.iter().any(|choice| is_same(choice, input)) {
        return None;
    }
    let some: Vec<_> = choices.iter().take(MOST_CHOICES_TOLD).map(told).collect();
    let more = if choices.len() > MOST_CHOICES_TOLD { ", …" } else { "" };
    Some(format!("must be one of {}{more}", some.join(", ")))
}

const MOST_CHOICES_TOLD: usize = 8;

/// Numbers are the same if they are as large, however they were written.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other) == Ordering::Equal,
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other = |(name, value): (&String, &Value)| {
                other.get(name).is_some_and(|found| is_same(value, found))
            };
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        _ => one == other,
    }
}

fn size(keywords: &Map<String, Value>, input: &Value) -> Option<String> {
    match input {
        Value::Number(number) => magnitude(keywords, number),
        Value::String(text) => length(keywords, text),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn magnitude(keywords: &Map<String, Value>, number: &Number) -> Option<String> {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_number);
    let least = bound("minimum").filter(|least| compare(number, least) == Ordering::Less);
    let most = bound("maximum").filter(|most| compare(number, most) == Ordering::Greater);
    least
        .map(|least| format!("must be {least} at the least"))
        .or_else(|| most.map(|most| format!("must be {most} at the most")))
}

fn compare(one: &Number, other: &Number) -> Ordering {
    if let (Some(one), Some(other)) = (integer(one), integer(other)) {
        return one.cmp(&other);
    }
    let floats = one.as_f64().zip(other.as_f64());
    floats.and_then(|(one, other)| one.partial_cmp(&other)).unwrap_or(Ordering::Equal)
}

/// `None` for one that is held as a float.
fn integer(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

fn length(keywords: &Map<String, Value>, text: &str) -> Option<String> {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Value::as_u64);
    let characters = text.chars().count() as u64;
    let shortest = bound("minLength").filter(|shortest| characters < *shortest);
    let longest = bound("maxLength").filter(|longest| characters > *longest);
    shortest
        .map(|shortest| format!("must have {shortest} characters at the least"))
        .or_else(|| longest.map(|longest| format!("must have {longest} characters at the most")))
}

fn members_fit(
    keywords: &Map<String, Value>,
    path: &str,
    members: &Map<String, Value>,
) -> Result<(), String> {
    let required = keywords.get("required").and_then(Value::as_array).into_iter().flatten();
    if let Some(missing) =
        required.filter_map(Value::as_str).find(|name| !members.contains_key(*name))
    {
        return Err(format!("{path}.{}: is missing", quote(missing)));
    }
    let properties = keywords.get("properties").and_then(Value::as_object);
    let others = keywords.get("additionalProperties");
    members.iter().try_for_each(|(name, value)| {
        match properties.and_then(|properties| properties.get(name)).or(others) {
            Some(schema) => fits(schema, &format!("{path}.{}", quote(name)), value),
            None => Ok(()),
        }
    })
}

fn items_fit(keywords: &Map<String, Value>, path: &str, items: &[Value]) -> Result<(), String> {
    let Some(schema) = keywords.get("items") else { return Ok(()) };
    let mut items = items.iter().enumerate();
    items.try_for_each(|(index, item)| fits(schema, &format!("{path}[{index}]"), item))
}

#[cfg(test)]
mod tests;
