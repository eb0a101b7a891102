//! Recordings of an agent that is a server: calls (`>`), their answers and printed lines (`<`), and events (`e`).
//!
//! What a person did in the recording is done again: a call that the adapter has not made by itself is a decision or
//! a message. An answer goes to the adapter's own call of the same method and path. A call for which the
//! adapter has no use, and its answer, are passed over.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use outlast_agents::adapter::{Act, Adapter, Decision, Event, Heard};
use serde_json::Value;

use super::is_over;

pub(super) fn lines(path: &Path) -> Vec<Vec<u8>> {
    let whole = fs::read_to_string(path).expect("a recording");
    whole.lines().map(|line| line.as_bytes().to_vec()).collect()
}

pub(super) fn play<'a>(
    adapter: Box<dyn Adapter>,
    lines: impl Iterator<Item = &'a [u8]>,
) -> Vec<Event> {
    let mut player = Player {
        adapter,
        events: Vec::new(),
        open: Vec::new(),
        recorded: None,
        has_prompted: false,
        is_listening: false,
    };
    let acts = player.adapter.begin();
    player.perform(acts);
    for line in lines {
        player.line(line);
        if is_over(&player.events) {
            return player.events;
        }
    }
    player.hear(Heard::End);
    player.events
}

struct Player {
    adapter: Box<dyn Adapter>,
    events: Vec<Event>,
    /// The adapter's calls that have no answer yet.
    open: Vec<Called>,
    /// The call of the recording that has no answer yet.
    recorded: Option<String>,
    has_prompted: bool,
    is_listening: bool,
}

struct Called {
    call: u64,
    http: String,
}

impl Player {
    fn line(&mut self, line: &[u8]) {
        let said = serde_json::from_slice::<Value>(line).unwrap_or_default();
        match (said.get("dir").and_then(Value::as_str), said.get("msg")) {
            (Some("e"), Some(event)) => {
                if self.is_listening {
                    self.hear(Heard::Pushed(event.to_string().as_bytes()));
                }
            }
            (Some(">"), Some(called)) => self.called(called),
            (Some("<"), Some(said)) => match said["stdout"].as_str() {
                Some(line) => self.hear(Heard::Line(line.as_bytes())),
                None => self.answered(said),
            },
            (Some(_), _) => {}
            // Not of the recording: garbage of a test.
            (None, _) => {
                self.hear(Heard::Line(line));
                self.hear(Heard::Pushed(line));
            }
        }
    }

    fn hear(&mut self, heard: Heard<'_>) {
        let acts = self.adapter.hear(heard);
        self.perform(acts);
    }

    fn perform(&mut self, acts: Vec<Act>) {
        let mut acts = VecDeque::from(acts);
        while let Some(act) = acts.pop_front() {
            match act {
                Act::Tell(event) => self.events.push(event),
                Act::Call { call, method, path, .. } => {
                    self.open.push(Called { call, http: format!("{method} {path}") });
                }
                Act::Listen { .. } => self.is_listening = true,
                Act::Connect { address, .. } => assert_eq!(address, "http://127.0.0.1:4096"),
                Act::Send(_) | Act::CloseInput => panic!("a server has no input"),
            }
        }
    }

    fn called(&mut self, called: &Value) {
        let http = called["http"].as_str().expect("a call").to_owned();
        let is_prompt = http.ends_with("/prompt_async");
        let is_made = self.open.iter().any(|it| it.http == http);
        if !is_made && let Some(acts) = self.person(&http, &called["body"]) {
            let bodies = acts.iter().filter_map(|act| match act {
                Act::Call { method, path, body, .. } => Some((format!("{method} {path}"), body)),
                _ => None,
            });
            for (made, body) in bodies {
                let body = body.as_ref().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
                assert_eq!((&made, &body.unwrap_or_default()), (&http, &called["body"]));
            }
            self.perform(acts);
        }
        self.has_prompted |= is_prompt;
        self.recorded = Some(http);
    }

    /// What a person has done to the adapter, if this call came of that.
    fn person(&mut self, http: &str, body: &Value) -> Option<Vec<Act>> {
        if let Some(rest) = http.strip_prefix("POST /permission/") {
            let question = rest.strip_suffix("/reply")?;
            let decision = match body["reply"].as_str()? {
                "reject" => Decision::Deny { why: body["message"].as_str()?.to_owned() },
                _ => Decision::Allow,
            };
            return Some(self.adapter.decide(question, &decision));
        }
        if http.ends_with("/prompt_async") && self.has_prompted {
            return self.adapter.steer(0, body["parts"][0]["text"].as_str()?);
        }
        None
    }

    fn answered(&mut self, said: &Value) {
        let http = self.recorded.take();
        let Some(place) = self.open.iter().position(|it| Some(&it.http) == http.as_ref()) else {
            return;
        };
        let call = self.open.remove(place).call;
        let status = said["status"].as_u64().and_then(|it| u16::try_from(it).ok()).unwrap_or(0);
        let body = match said["body"].as_str() {
            Some(text) => text.to_owned(),
            None => said["body"].to_string(),
        };
        self.hear(Heard::Answer { call, status, body: body.as_bytes() });
    }
}
