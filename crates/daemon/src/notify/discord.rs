//! An incoming webhook as Discord has it: `content` of at most 2,000 characters, which mentions no member.

use std::time::Duration;

use outlast_engine::Time;
use outlast_workflow::notify::Secret;
use serde_json::{Value, json};

use super::body::Telling;
use super::{Outcome, http, target, text};

/// In bytes, of which a character has at least one.
const LONGEST: usize = 1900;

pub(super) async fn send(url: &Secret, telling: &Telling, time: (Time, Duration)) -> Outcome {
    let url = match target::reveal(url) {
        Ok(url) => url,
        Err(why) => return Outcome::failed(why),
    };
    let post = http::Post { url: &url, headers: Vec::new(), body: content(telling).to_string() };
    let (now, within) = time;
    http::outcome(http::post(&post, within).await, now)
}

fn content(telling: &Telling) -> Value {
    let text = format!("{}\n{}", telling.title(), telling.message());
    json!({ "content": text::clipped(&text, LONGEST), "allowed_mentions": { "parse": [] } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fits_and_mentions_nobody() {
        let content = content(&Telling::test("id", Time(0)));
        assert_eq!(content["allowed_mentions"]["parse"], json!([]));
        assert!(content["content"].as_str().is_some_and(|text| text.len() < 2000));
    }
}
