//! An incoming webhook as Slack has it: one `text`, in which three signs are escaped.

use std::time::Duration;

use outlast_engine::Time;
use outlast_workflow::notify::Secret;
use serde_json::json;

use super::body::Telling;
use super::{Outcome, http, target, text};

const LONGEST: usize = 3000;

pub(super) async fn send(url: &Secret, telling: &Telling, time: (Time, Duration)) -> Outcome {
    let url = match target::reveal(url) {
        Ok(url) => url,
        Err(why) => return Outcome::failed(why),
    };
    let body = json!({ "text": said(telling) }).to_string();
    let post = http::Post { url: &url, headers: Vec::new(), body };
    let (now, within) = time;
    http::outcome(http::post(&post, within).await, now)
}

fn said(telling: &Telling) -> String {
    let text = format!("{}\n{}", telling.title(), telling.message());
    escaped(&text::clipped(&text, LONGEST))
}

/// Nothing that a run writes may become a mention or a link with another name.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_called_by_what_a_run_writes() {
        assert_eq!(escaped("<!channel> a & b"), "&lt;!channel&gt; a &amp; b");
        assert!(said(&Telling::test("id", Time(0))).starts_with("outlast: a test\n"));
    }
}
