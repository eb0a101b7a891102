//! ntfy: a push notice, published as JSON, with what opens the run behind it.

use std::time::Duration;

use outlast_engine::Time;
use outlast_workflow::notify::{Secret, topic};
use serde_json::{Value, json};

use super::body::Telling;
use super::{Outcome, http, target, text};

/// More than this becomes a file there.
const LONGEST: usize = 3500;

pub(super) struct To<'a> {
    pub(super) url: &'a Secret,
    pub(super) topic: Option<&'a str>,
    pub(super) token: Option<&'a Secret>,
}

pub(super) async fn send(
    to: &To<'_>,
    click: Option<&str>,
    telling: &Telling,
    time: (Time, Duration),
) -> Outcome {
    let (server, body, headers) = match prepared(to, click, telling) {
        Ok(prepared) => prepared,
        Err(why) => return Outcome::failed(why),
    };
    let post = http::Post { url: &server, headers, body: body.to_string() };
    let (now, within) = time;
    http::outcome(http::post(&post, within).await, now)
}

type Prepared = (String, Value, Vec<(&'static str, String)>);

fn prepared(to: &To<'_>, click: Option<&str>, telling: &Telling) -> Result<Prepared, String> {
    let url = target::reveal(to.url)?;
    let (server, topic) = match to.topic {
        Some(topic) => (url.as_str(), topic),
        None => {
            let topic = topic(&url)?;
            let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
            (path.strip_suffix(topic).unwrap_or(path), topic)
        }
    };
    let mut headers = Vec::new();
    if let Some(token) = to.token {
        headers.push(("authorization", format!("Bearer {}", target::reveal(token)?)));
    }
    Ok((server.to_owned(), message(topic, click, telling), headers))
}

fn message(topic: &str, click: Option<&str>, telling: &Telling) -> Value {
    let (priority, tag) = look(&telling.kind);
    let mut message = json!({
        "topic": topic,
        "title": text::clipped(&telling.title(), 200),
        "message": text::clipped(&telling.message(), LONGEST),
        "priority": priority,
        "tags": [tag],
    });
    if let Some(links) = telling.notice().and_then(|notice| notice.data.links.as_ref()) {
        let press = |label: &str, url: &Option<String>| {
            let url = url.as_ref()?;
            Some(
                json!({ "action": "http", "label": label, "url": url, "method": "POST", "clear": true }),
            )
        };
        let open = json!({ "action": "view", "label": "Open run", "url": links.open });
        let actions = [press("Approve", &links.approve), press("Deny", &links.deny), Some(open)];
        message["actions"] = actions.into_iter().flatten().collect();
        message["click"] = json!(links.approve.as_ref().unwrap_or(&links.open));
    } else if let Some(click) = click {
        let url = click.replace("{run}", &telling.run);
        message["actions"] = json!([{ "action": "view", "label": "Open run", "url": url }]);
        message["click"] = json!(url);
    }
    message
}

/// How urgent a notice is, from 1 to 5, and the sign before it.
fn look(kind: &str) -> (u8, &'static str) {
    match kind {
        "run.completed" => (3, "white_check_mark"),
        "run.failed" => (4, "x"),
        "run.exhausted" => (4, "hourglass"),
        "run.blocked" | "run.asked" => (5, "raised_hand"),
        "run.warning" => (4, "warning"),
        "run.stopped" => (2, "octagonal_sign"),
        "run.matched" => (3, "mag"),
        "run.heartbeat" => (1, "heartbeat"),
        _ => (3, "speech_balloon"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_stands_in_the_url_or_beside_it() {
        let telling = Telling::test("id", Time(0));
        let at = |url: &str, topic: Option<&str>| {
            let url = Secret::Given(url.to_owned());
            let (server, body, _) =
                prepared(&To { url: &url, topic, token: None }, None, &telling).unwrap();
            (server, body["topic"].as_str().unwrap().to_owned())
        };
        let expected = ("https://ntfy.example/".to_owned(), "alerts".to_owned());
        assert_eq!(at("https://ntfy.example/alerts", None), expected);
        assert_eq!(at("https://ntfy.example/", Some("alerts")), expected);
    }

    #[test]
    fn a_notice_opens_its_run() {
        let mut telling = Telling::test("id", Time(0));
        telling.run = "k3m".to_owned();
        telling.kind = "run.blocked".to_owned();
        let message = message("t", Some("https://me.example/{run}"), &telling);
        assert_eq!(
            (&message["priority"], &message["click"]),
            (&json!(5), &json!("https://me.example/k3m"))
        );
        assert_eq!(message["actions"][0]["action"], "view");
    }
}
