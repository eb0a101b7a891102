//! A parsed file as a tree, each part with the line it was written on.
//!
//! Knows neither YAML nor TOML, nor what any key means.

use serde_json::json;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Of the key, where there is one; counted from 1 in the whole file.
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Whole(i64),
    /// As it was written: money must not drift.
    Decimal(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn empty_map() -> Self {
        Self { line: 1, value: Value::Map(Vec::new()) }
    }

    /// What stands at a dotted path. A key without a value is one that was not given.
    pub(crate) fn get(&self, path: &str) -> Option<&Self> {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        let found = &self.entries().iter().find(|entry| entry.key == first)?.node;
        match rest {
            Some(rest) => found.get(rest),
            None => (found.value != Value::Null).then_some(found),
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Self] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.items().iter().filter_map(Self::text).map(str::to_owned).collect()
    }

    pub(crate) fn whole(&self) -> Option<i64> {
        match self.value {
            Value::Whole(number) => Some(number),
            _ => None,
        }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        match self.value {
            Value::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// As a message quotes it: short, on one line.
    pub(crate) fn quoted(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(flag) => flag.to_string(),
            Value::Whole(number) => number.to_string(),
            Value::Decimal(text) => clipped(text),
            Value::Text(text) => format!("{:?}", clipped(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => json!(flag),
            Value::Whole(number) => json!(number),
            Value::Decimal(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => json!(number),
                _ => json!(text),
            },
            Value::Text(text) => json!(text),
            Value::List(items) => items.iter().map(Self::json).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|entry| (entry.key.clone(), entry.node.json()))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

fn clipped(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
