//! The end of the daemon's log, as far as it is our own words.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::scrub::Scrub;

/// So much of each of the last two files is looked at.
const TAIL: u64 = 1 << 20;

/// Fields with a sentence of ours, of the system's or of a library's, told without what is quoted in it.
const SENTENCES: [&str; 3] = ["message", "error", "panic"];

/// A line with one of these is about something that a person wrote and another program answers for: what it says
/// beside our own words may be that program's.
const OF_OTHERS: [&str; 2] = ["trigger", "sink"];

pub(super) fn tail(path: &Path, scrub: &Scrub) -> Vec<u8> {
    let text = match last_bytes(path) {
        Ok(bytes) => {
            // A file that has just been begun says little; there need not be one before it.
            let before = last_bytes(&path.with_extension("log.1")).unwrap_or_default();
            String::from_utf8_lossy(&[before, bytes].concat()).into_owned()
        }
        Err(error) => {
            return format!("{}\n", json!({ "unreadable": error.kind().to_string() })).into_bytes();
        }
    };
    let mut plain = 0;
    let mut told = String::new();
    for line in text.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(fields)) => told.push_str(&format!("{}\n", kept(&fields, scrub))),
            Ok(_) | Err(_) => plain += 1,
        }
    }
    told.push_str(&format!("{}\n", json!({ "plain_lines_left_out": plain })));
    told.into_bytes()
}

fn last_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = outlast_home::regular::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn kept(fields: &Map<String, Value>, scrub: &Scrub) -> Value {
    let is_of_others = OF_OTHERS.iter().any(|name| fields.contains_key(*name));
    let kept = fields.iter().filter_map(|(key, value)| {
        let value = match (key.as_str(), value) {
            (_, Value::Number(_) | Value::Bool(_)) => value.clone(),
            ("at" | "level", Value::String(text)) if is_plain(text) => value.clone(),
            ("run" | "code", Value::String(text)) if is_plain(text) => value.clone(),
            // A place in our own source.
            ("place", Value::String(text)) => json!(text.rsplit('/').next()),
            // What went wrong, as another program or a loop file may have put it: the system's number at most.
            ("detail", Value::String(text)) => json!(os_error(text)?),
            ("error" | "panic", Value::String(text)) if is_of_others => json!(os_error(text)?),
            (key, Value::String(text)) if SENTENCES.contains(&key) => json!(scrub.text(text)),
            _ => return None,
        };
        Some((key.clone(), value))
    });
    Value::Object(kept.collect())
}

/// `os error 28`, if the sentence has such a number.
fn os_error(text: &str) -> Option<String> {
    const NAME: &str = "os error ";
    let number = &text[text.find(NAME)? + NAME.len()..];
    let number: String = number.chars().take_while(char::is_ascii_digit).take(5).collect();
    (!number.is_empty()).then(|| format!("{NAME}{number}"))
}

fn is_plain(text: &str) -> bool {
    text.len() <= 40 && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-:.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::World;

    #[test]
    fn what_another_program_said_is_left_out_and_the_code_stays() {
        let scrub = Scrub::new(&World::new(Vec::new()));
        let kept = |line: Value| kept(line.as_object().expect("an object"), &scrub);
        let poll = json!({"message": "no run can be made", "code": "poll_failed", "trigger": "S",
            "detail": "exit status: 1: S (os error 13)"});
        let expected = json!({"message": "no run can be made", "code": "poll_failed", "detail": "os error 13"});
        assert_eq!(kept(poll), expected);
        let sink = json!({"message": "cannot write down what was told", "sink": "S", "error": "S"});
        assert_eq!(kept(sink), json!({"message": "cannot write down what was told"}));
        let ours = json!({"message": "trouble", "error": "disk full", "failure": "S", "why": "S"});
        assert_eq!(kept(ours), json!({"message": "trouble", "error": "disk full"}));
    }
}
