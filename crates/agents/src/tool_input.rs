//! Whether the input of a tool fits its schema: the part of JSON Schema that tools are described with.
//!
//! Keywords that are not known here are ignored, so a tool has still to look at what it is given. The first
//! thing that is wrong is told, with its place.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use crate::quote::quote;

const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// Whether this is a schema that [`check`] can use.
pub fn check_schema(schema_json: &str) -> Result<(), String> {
    schema(schema_json).map(drop)
}

pub fn check(schema_json: &str, input_json: &str) -> Result<(), String> {
    let schema = Value::Object(schema(schema_json)?);
    let input = serde_json::from_str(input_json)
        .map_err(|error| format!("input: must be JSON, but {error}"))?;
    fits(&schema, "input", &input)
}

fn schema(json: &str) -> Result<Map<String, Value>, String> {
    let schema: Value =
        serde_json::from_str(json).map_err(|error| format!("schema: must be JSON, but {error}"))?;
    let Value::Object(keywords) = schema else {
        return Err("schema: must be an object".to_owned());
    };
    well_formed_keywords(&keywords, "schema")?;
    Ok(keywords)
}

/// Below the top, true is what fits anything and false what fits nothing.
fn well_formed(schema: &Value, path: &str) -> Result<(), String> {
    match schema {
        Value::Object(keywords) => well_formed_keywords(keywords, path),
        Value::Bool(_) => Ok(()),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(format!("{path}: must be an object or a boolean"))
        }
    }
}

fn well_formed_keywords(keywords: &Map<String, Value>, path: &str) -> Result<(), String> {
    keywords.iter().try_for_each(|(keyword, value)| {
        let place = format!("{path}.{}", quote(keyword));
        match keyword.as_str() {
            "type" => well_formed_type(value, &place),
            "required" if !is_list_of_texts(value) => {
                Err(format!("{place}: must be a list of strings"))
            }
            "enum" if !value.is_array() => Err(format!("{place}: must be a list")),
            "minimum" | "maximum" if !value.is_number() => {
                Err(format!("{place}: must be a number"))
            }
            "minLength" | "maxLength" if !value.is_u64() => {
                Err(format!("{place}: must be a whole number"))
            }
            "items" | "additionalProperties" => well_formed(value, &place),
            "properties" => well_formed_properties(value, &place),
            _ => Ok(()),
        }
    })
}

fn well_formed_type(value: &Value, place: &str) -> Result<(), String> {
    let is_known = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    let is_fine = match value {
        Value::Array(names) => names.iter().all(is_known),
        name => is_known(name),
    };
    if is_fine { Ok(()) } else { Err(format!("{place}: must be of {}", TYPES.join(", "))) }
}

fn is_list_of_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(Value::is_string))
}

fn well_formed_properties(value: &Value, place: &str) -> Result<(), String> {
    let Value::Object(properties) = value else {
        return Err(format!("{place}: must be an object"));
    };
    properties
        .iter()
        .try_for_each(|(name, schema)| well_formed(schema, &format!("{place}.{}", quote(name))))
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
