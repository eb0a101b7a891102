//! An upgrade: what release 0.1 has written and said, and what it has left running.
//!
//! `tests/golden/v0.1` holds the bytes. Today's code has to read them as what they meant, and to write the
//! same ones again: a person who changes what is written changes what a daemon of another release meets, and is
//! told so here. The files of a release are never changed. A later release gets a directory of its own, which
//! `OUTLAST_GOLDEN=write` fills: it writes a file that is missing and never one that is there.

mod health;
mod journal;
mod loops;
mod upgrade;
mod wire;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::harness::text;

/// The bytes that the release has written, held against those of today.
fn golden(name: &str, today: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v0.1").join(name);
    if !path.exists() && std::env::var_os("OUTLAST_GOLDEN").is_some_and(|wanted| wanted == "write")
    {
        fs::create_dir_all(path.parent().expect("it is in a directory"))
            .expect("the sources are ours");
        fs::write(&path, today).expect("the sources are ours");
    }
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (written, wanted) = (text(today), text(&bytes));
    assert!(
        today == bytes,
        "{name} would be written differently today:\n{written}\nand not as in the release:\n{wanted}"
    );
    bytes
}

/// One JSON value a line, as it is appended to a file.
fn as_lines<T: Serialize>(values: &[T]) -> Vec<u8> {
    let line = |value| serde_json::to_string(value).expect("plain data") + "\n";
    values.iter().map(line).collect::<String>().into_bytes()
}

fn from_lines<T: DeserializeOwned>(bytes: &[u8]) -> Vec<T> {
    let parse =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    std::str::from_utf8(bytes).expect("JSON is text").lines().map(parse).collect()
}

/// Objects in which every key is a value and not the name of a field, so that none can be added.
const CLOSED: [&str; 4] = ["exit", "labels", "value", "wait"];

/// A later release may say more: what it adds is passed over, at every level.
fn with_more_in_it(value: &Value) -> Value {
    let inside = |(key, value): (&String, &Value)| {
        let is_closed = CLOSED.contains(&key.as_str());
        (key.clone(), if is_closed { value.clone() } else { with_more_in_it(value) })
    };
    match value {
        Value::Object(object) => {
            let more = ("added_later".to_owned(), json!({"by": ["a", "newer", "release"]}));
            object.iter().map(inside).chain([more]).collect()
        }
        Value::Array(values) => values.iter().map(with_more_in_it).collect(),
        plain => plain.clone(),
    }
}

fn assert_takes_more<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let more = with_more_in_it(&serde_json::to_value(value).expect("plain data"));
    assert_eq!(
        &serde_json::from_value::<T>(more.clone())
            .unwrap_or_else(|error| panic!("{more}: {error}")),
        value
    );
}

/// True if every one of `count` variants is there.
fn has_all<T>(values: &[T], count: usize, number: fn(&T) -> usize) -> bool {
    values.iter().map(number).collect::<BTreeSet<_>>() == (0..count).collect()
}
