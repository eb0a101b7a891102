//! Every recording of a real agent, played to its adapter: the events that come of it are beside the recording.
//!
//! `OUTLAST_WRITE_EVENTS=1 cargo test -p outlast-agents --test recorded` writes those files anew; look at the difference.

#![expect(
    clippy::disallowed_methods,
    reason = "reads recordings, and writes what comes of them when asked"
)]

#[path = "recorded/acp.rs"]
mod acp;
#[path = "recorded/http.rs"]
mod http;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_agents::adapter::{
    Act, Adapter, ApprovalMode, Approvals, DRIVEN_NAMES, Decision, End, Event, Heard, Transport,
    Turn, driven,
};
use serde_json::Value;

/// Which recordings are of which kind.
const RECORDED: [(&str, &str); 9] = [
    ("acp-claude-agent-acp-0.99.1", "acp"),
    ("acp-codex-acp-2.6.0", "acp"),
    ("acp-gemini-0.61.0", "gemini"),
    ("acp-opencode-1.18.33", "acp"),
    ("claude-2.1.197", "claude"),
    ("claude-2.1.325", "claude"),
    ("codex-0.166.0", "codex"),
    ("opencode-1.18.33", "opencode"),
    ("pi-0.87.1", "pi"),
];

/// The kinds whose recordings have what their client said: it is done again in its place.
const WITH_CLIENT: [&str; 3] = ["acp", "codex", "gemini"];

/// Recordings of agents that a table describes, which `declared.rs` plays.
const FOR_TABLES: [&str; 2] = ["codex-exec-0.166.0", "gemini-0.61.0"];

#[test]
fn every_directory_of_recordings_is_played_and_every_kind_has_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    for entry in fs::read_dir(root).expect("recordings") {
        let name = entry.expect("a directory").file_name().into_string().expect("a text");
        let is_played = RECORDED.iter().any(|(dir, _)| *dir == name);
        assert!(is_played || FOR_TABLES.contains(&name.as_str()), "{name} is not in RECORDED");
    }
    for kind in DRIVEN_NAMES {
        assert!(RECORDED.iter().any(|(_, of)| *of == kind), "{kind} has no recording");
    }
}

struct Recording {
    kind: &'static str,
    path: PathBuf,
    lines: Vec<Vec<u8>>,
}

/// What was written in each recording.
fn recordings() -> Vec<Recording> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut found = Vec::new();
    for (dir, kind) in RECORDED {
        let mut paths: Vec<PathBuf> = fs::read_dir(root.join(dir))
            .expect("recordings")
            .map(|entry| entry.expect("a recording").path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
        paths.sort();
        let of = |path: PathBuf| {
            let lines = if is_http(kind) { http::lines(&path) } else { lines(kind, &path) };
            Recording { kind, lines, path }
        };
        found.extend(paths.into_iter().map(of));
    }
    assert!(!found.is_empty());
    found
}

/// The agent's own lines: all of a plain recording, one direction of a transcript. What the client said stays as it was
/// written down, if it is done again.
fn lines(kind: &str, path: &Path) -> Vec<Vec<u8>> {
    let whole = fs::read_to_string(path).expect("a recording");
    let kept = |line: &str| -> Option<Vec<u8>> {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return Some(line.into());
        };
        match (value.get("dir").and_then(Value::as_str), value.get("msg")) {
            (Some("<"), Some(said)) => Some(said.to_string().into_bytes()),
            (Some(">"), Some(_)) if WITH_CLIENT.contains(&kind) => Some(line.into()),
            (Some(_), Some(_)) => None,
            _ => Some(line.into()),
        }
    };
    whole.lines().filter_map(kept).collect()
}

fn is_http(kind: &str) -> bool {
    adapter(kind, ApprovalMode::Allow, None).launch().transport == Transport::Http
}

fn adapter(kind: &str, mode: ApprovalMode, session: Option<String>) -> Box<dyn Adapter> {
    let approvals = Approvals { mode, ..Approvals::default() };
    let (prompt, dir) = ("Do it.".to_owned(), "/work".to_owned());
    let turn = Turn { prompt, dir, session, approvals, ..Turn::default() };
    driven(kind).expect("a driven kind").adapter(turn)
}

/// The events of one turn: what comes after its end is of another.
fn play<'a>(recording: &Recording, lines: impl Iterator<Item = &'a [u8]>) -> Vec<Event> {
    let kind = recording.kind;
    if ["acp", "gemini"].contains(&kind) {
        return acp::play(recording, lines);
    }
    if is_http(kind) {
        return http::play(adapter(kind, ApprovalMode::Park, None), lines);
    }
    let lines: Vec<&[u8]> = lines.collect();
    let session = lines.iter().find_map(|line| resumed(&by_client(line)?));
    // Where the client's answers are recorded, those decide.
    let mode = if WITH_CLIENT.contains(&kind) { ApprovalMode::Park } else { ApprovalMode::Allow };
    let mut adapter = adapter(kind, mode, session);
    let mut requests = Requests::default();
    let mut events = Vec::new();
    let begun = adapter.begin();
    requests.keep(&begun);
    events.extend(told(begun));
    for line in lines {
        let acts = match by_client(line) {
            Some(said) => {
                requests.recorded(&said);
                again(adapter.as_mut(), &said, &events)
            }
            None => match requests.addressed(line) {
                Some(line) => adapter.hear(Heard::Line(&line)),
                None => Vec::new(),
            },
        };
        requests.keep(&acts);
        events.extend(told(acts));
        if is_over(&events) {
            return events;
        }
    }
    events.extend(told(adapter.hear(Heard::End)));
    events
}

/// What the client said, by a line of a transcript.
fn by_client(line: &[u8]) -> Option<Value> {
    let mut value = serde_json::from_slice::<Value>(line).ok()?;
    let is_client = value.get("dir").and_then(Value::as_str) == Some(">");
    is_client.then(|| value["msg"].take())
}

/// The conversation that the recording goes on with.
fn resumed(said: &Value) -> Option<String> {
    let is_resume = said["method"] == "thread/resume";
    said["params"]["threadId"].as_str().filter(|_| is_resume).map(str::to_owned)
}

/// Has the adapter do what the client did.
fn again(adapter: &mut dyn Adapter, said: &Value, events: &[Event]) -> Vec<Act> {
    match said["method"].as_str() {
        Some("turn/steer") => {
            let text = said["params"]["input"][0]["text"].as_str().expect("a text");
            adapter.steer(0, text).unwrap_or_default()
        }
        Some("turn/interrupt") => adapter.cancel(),
        Some(_) => Vec::new(),
        None => {
            let result = &said["result"];
            let word = result["decision"].as_str().or(result["action"].as_str());
            let decision = match (word, result["content"]["answer"].as_str()) {
                (_, Some(text)) => Decision::Text { text: text.to_owned() },
                (Some("accept"), None) => Decision::Allow,
                _ => Decision::Deny { why: "outlast says no".to_owned() },
            };
            let asked = |event: &Event| match event {
                Event::Asked(question) => Some(question.id.clone()),
                _ => None,
            };
            let question = events.iter().rev().find_map(asked);
            question.map(|id| adapter.decide(&id, &decision)).unwrap_or_default()
        }
    }
}

/// Requests by JSON-RPC: an answer of the recording is for the client's id, and goes to the adapter's for the same.
#[derive(Default)]
struct Requests {
    /// The ids that the adapter gave, by method, in order.
    sent: BTreeMap<String, Vec<Value>>,
    /// The method of each id of the recording, and which of its kind it was.
    of: BTreeMap<String, (String, usize)>,
    recorded: BTreeMap<String, usize>,
}

impl Requests {
    fn keep(&mut self, acts: &[Act]) {
        for act in acts {
            let Act::Send(bytes) = act else { continue };
            let Ok(said) = serde_json::from_slice::<Value>(bytes) else { continue };
            if let (Some(method), Some(id)) = (said["method"].as_str(), said.get("id")) {
                self.sent.entry(method.to_owned()).or_default().push(id.clone());
            }
        }
    }

    fn recorded(&mut self, said: &Value) {
        if let (Some(method), Some(id)) = (said["method"].as_str(), said.get("id")) {
            let count = self.recorded.entry(method.to_owned()).or_default();
            self.of.insert(id.to_string(), (method.to_owned(), *count));
            *count += 1;
        }
    }

    /// A line as this client would have got it; `None` for an answer to what it did not ask.
    fn addressed(&self, line: &[u8]) -> Option<Vec<u8>> {
        let answer = serde_json::from_slice::<Value>(line)
            .ok()
            .filter(|it| it.get("id").is_some() && it.get("method").is_none());
        let Some(mut answer) = answer else { return Some(line.to_vec()) };
        let Some((method, nth)) = self.of.get(&answer["id"].to_string()) else {
            return Some(line.to_vec());
        };
        answer["id"] = self.sent.get(method)?.get(*nth)?.clone();
        Some(answer.to_string().into_bytes())
    }
}

fn told(acts: Vec<Act>) -> Vec<Event> {
    acts.into_iter()
        .filter_map(|act| if let Act::Tell(event) = act { Some(event) } else { None })
        .collect()
}

fn is_over(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Ended(_)))
}

fn end(events: &[Event]) -> &End {
    let ends: Vec<&End> = events
        .iter()
        .filter_map(|it| if let Event::Ended(end) = it { Some(end) } else { None })
        .collect();
    assert_eq!(ends.len(), 1, "a turn ends once: {events:?}");
    ends[0]
}

#[test]
fn each_recording_is_understood_as_it_was() {
    let is_writing = std::env::var_os("OUTLAST_WRITE_EVENTS").is_some();
    for recording in recordings() {
        let events = play(&recording, recording.lines.iter().map(Vec::as_slice));
        let mut text = String::new();
        for event in &events {
            text.push_str(&serde_json::to_string(event).unwrap());
            text.push('\n');
        }
        let beside = recording.path.with_extension("events");
        if is_writing {
            fs::write(&beside, &text).unwrap();
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        assert!(text == expected, "{}:\n{text}\nis not\n{expected}", recording.path.display());
        end(&events);
    }
}

#[test]
fn a_recording_that_is_cut_at_any_line_is_never_a_success_before_its_time() {
    for recording in recordings() {
        let whole = play(&recording, recording.lines.iter().map(Vec::as_slice));
        for cut in 0..recording.lines.len() {
            let events = play(&recording, recording.lines[..cut].iter().map(Vec::as_slice));
            match end(&events) {
                End::Interrupted => {}
                ended => assert_eq!(ended, end(&whole), "{} at {cut}", recording.path.display()),
            }
        }
    }
}

#[test]
fn garbage_between_lines_is_counted_and_changes_nothing_else() {
    let garbage: [&[u8]; 4] =
        [b"\xff\xfe not text", b"{\"type\":", b"[1,2,3]", b"Debugger attached."];
    for recording in recordings() {
        let clean = play(&recording, recording.lines.iter().map(Vec::as_slice));
        let between = recording
            .lines
            .iter()
            .enumerate()
            .flat_map(|(at, line)| [garbage[at % 4], line.as_slice()]);
        let mut noisy = play(&recording, between);
        let is_count = |event: &Event| matches!(event, Event::NotUnderstood { .. });
        assert!(noisy.iter().any(is_count), "{}", recording.path.display());
        noisy.retain(|event| !is_count(event));
        let clean: Vec<Event> = clean.into_iter().filter(|event| !is_count(event)).collect();
        assert_eq!(noisy, clean, "{}", recording.path.display());
    }
}

/// A later version may rename anything. What is then not understood is no success.
#[test]
fn a_version_to_come_is_interrupted_and_never_a_success() {
    for recording in recordings() {
        let renamed = |line: &Vec<u8>| {
            let text = String::from_utf8_lossy(line);
            let text = text.replace("\"type\":", "\"kind\":").replace("\"method\":", "\"verb\":");
            text.replace("\"result\":", "\"outcome\":").into_bytes()
        };
        let lines: Vec<Vec<u8>> = recording.lines.iter().map(renamed).collect();
        let events = play(&recording, lines.iter().map(Vec::as_slice));
        assert_eq!(end(&events), &End::Interrupted, "{}", recording.path.display());
    }
}
