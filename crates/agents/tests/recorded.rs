//! Every recording of a real agent, played to its adapter: the events that come of it are beside the recording.
//!
//! `OUTLAST_WRITE_EVENTS=1 cargo test -p outlast-agents --test recorded` writes those files anew; look at the difference.

#![expect(
    clippy::disallowed_methods,
    reason = "reads recordings, and writes what comes of them when asked"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use outlast_agents::adapter::{
    Act, Adapter, ApprovalMode, Approvals, Decision, End, Event, Heard, Turn, driven,
};
use serde_json::{Value, json};

/// Which recordings are of which kind.
const RECORDED: [(&str, &str); 6] = [
    ("acp-claude-agent-acp-0.99.1", "acp"),
    ("acp-codex-acp-2.6.0", "acp"),
    ("acp-gemini-0.61.0", "gemini"),
    ("acp-opencode-1.18.33", "acp"),
    ("claude-2.1.197", "claude"),
    ("claude-2.1.325", "claude"),
];

/// The recordings whose client steers as our adapter does. In the others the second message is not sent.
const STEERED: [&str; 3] = [
    "acp-claude-agent-acp-0.99.1/steer.jsonl",
    "acp-codex-acp-2.6.0/steer-extension.jsonl",
    "acp-opencode-1.18.33/steer.jsonl",
];

struct Recording {
    kind: &'static str,
    path: PathBuf,
    lines: Vec<Line>,
}

#[derive(Clone)]
enum Line {
    /// The agent's own.
    Agent(Vec<u8>),
    /// Of the client of that time, in a protocol of requests and answers.
    Client(Value),
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
        found.extend(paths.into_iter().map(|path| Recording { kind, lines: lines(&path), path }));
    }
    assert!(!found.is_empty());
    found
}

/// All of a plain recording; both directions of a transcript.
fn lines(path: &Path) -> Vec<Line> {
    let whole = fs::read_to_string(path).expect("a recording");
    let read = |line: &str| -> Option<Line> {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return Some(Line::Agent(line.into()));
        };
        match (value.get("dir").and_then(|it| it.as_str()), value.get("msg")) {
            (Some("<"), Some(said)) => Some(Line::Agent(said.to_string().into_bytes())),
            (Some(">"), Some(said)) if said.get("jsonrpc").is_some() => {
                Some(Line::Client(said.clone()))
            }
            (Some(_), Some(_)) => None,
            _ => Some(Line::Agent(line.into())),
        }
    };
    whole.lines().filter_map(read).collect()
}

fn method(message: &Value) -> Option<&str> {
    message.get("method")?.as_str()
}

/// Plays a recording to an adapter. Where the recording has a client of its own, the adapter stands in its place: an
/// answer to a request goes to the adapter's request of the same method, and what people did then, they do again.
struct Player {
    adapter: Box<dyn Adapter>,
    events: Vec<Event>,
    is_rpc: bool,
    /// How many requests of a method the recorded client has made in all.
    recorded: BTreeMap<String, usize>,
    /// Its requests by their ids: the method, and the place among those.
    theirs: BTreeMap<u64, (String, usize)>,
    /// The ids of the adapter's requests.
    ours: BTreeMap<String, Vec<u64>>,
    is_steered: bool,
    has_load: bool,
    answered: usize,
}

impl Player {
    fn new(recording: &Recording) -> Self {
        let client = || {
            recording.lines.iter().filter_map(|line| match line {
                Line::Client(said) => Some(said),
                Line::Agent(_) => None,
            })
        };
        let mut recorded = BTreeMap::new();
        for name in client().filter_map(method) {
            *recorded.entry(name.to_owned()).or_default() += 1;
        }
        let resumes = client()
            .find(|it| matches!(method(it), Some("session/load" | "session/resume")))
            .and_then(|it| it["params"]["sessionId"].as_str());
        let is_rpc = client().next().is_some();
        // The recorded client decides where there is one.
        let mode = if is_rpc { ApprovalMode::Park } else { ApprovalMode::Allow };
        let turn = Turn {
            prompt: "Do it.".to_owned(),
            dir: "/work".to_owned(),
            command: vec!["agent".to_owned()],
            session: resumes.map(str::to_owned),
            approvals: Approvals { mode, allow: Vec::new() },
            ..Turn::default()
        };
        Self {
            adapter: driven(recording.kind).expect("a driven kind").adapter(turn),
            events: Vec::new(),
            is_rpc,
            has_load: recorded.contains_key("session/load"),
            recorded,
            theirs: BTreeMap::new(),
            ours: BTreeMap::new(),
            is_steered: STEERED.iter().any(|it| recording.path.ends_with(it)),
            answered: 0,
        }
    }

    fn did(&mut self, acts: Vec<Act>) {
        for act in &acts {
            if let Act::Send(bytes) = act
                && self.is_rpc
            {
                self.sent(&serde_json::from_slice(bytes).expect("a message"));
            }
        }
        // What a request that was not recorded leads to comes after what came with it.
        self.events.extend(told(acts));
        let missing = self.ours.iter().find_map(|(name, ids)| {
            let recorded = self.recorded.get(name).copied().unwrap_or(0);
            ids.get(recorded).copied()
        });
        if let Some(id) = missing {
            self.ours.values_mut().for_each(|ids| ids.retain(|it| *it != id));
            let answer = json!({ "jsonrpc": "2.0", "id": id, "result": {} }).to_string();
            let acts = self.adapter.hear(Heard::Line(answer.as_bytes()));
            self.did(acts);
        }
    }

    fn sent(&mut self, message: &Value) {
        if let (Some(name), Some(id)) = (method(message), message["id"].as_u64()) {
            self.ours.entry(name.to_owned()).or_default().push(id);
        }
    }

    fn agent(&mut self, line: &[u8]) {
        let message = serde_json::from_slice::<Value>(line).ok().filter(|_| self.is_rpc);
        let id =
            message.as_ref().filter(|it| method(it).is_none()).and_then(|it| it["id"].as_u64());
        let acts = match (message.clone(), id.and_then(|id| self.theirs.get(&id))) {
            (Some(mut message), Some((name, place))) => {
                let ours = self.ours.get(name).and_then(|ids| ids.get(*place));
                let Some(ours) = ours else { return };
                message["id"] = json!(ours);
                if self.has_load && name == "initialize" {
                    // The adapter does as that client did.
                    let can = message.pointer_mut("/result/agentCapabilities/sessionCapabilities");
                    can.and_then(Value::as_object_mut).map(|can| can.remove("resume"));
                }
                self.adapter.hear(Heard::Line(message.to_string().as_bytes()))
            }
            _ => self.adapter.hear(Heard::Line(line)),
        };
        self.did(acts);
    }

    fn client(&mut self, message: &Value) {
        let acts = match (method(message), message["id"].as_u64()) {
            (Some(name), Some(id)) => {
                let place = self.theirs.values().filter(|it| it.0 == name).count();
                self.theirs.insert(id, (name.to_owned(), place));
                let is_second =
                    name == "_session/steering" || (name == "session/prompt" && place > 0);
                let words = message["params"]["prompt"][0]["text"].as_str().unwrap_or_default();
                let steers = is_second && self.is_steered;
                steers.then(|| self.adapter.steer(words)).flatten()
            }
            (Some("session/cancel"), None) => Some(self.adapter.cancel()),
            (None, Some(_)) => self.decides(message),
            _ => None,
        };
        self.did(acts.unwrap_or_default());
    }

    fn decides(&mut self, message: &Value) -> Option<Vec<Act>> {
        let outcome = message.get("result")?.get("outcome")?;
        let asked = self.events.iter().filter_map(|event| {
            if let Event::Asked(question) = event { Some(question.id.clone()) } else { None }
        });
        let question = asked.clone().nth(self.answered)?;
        self.answered += 1;
        let is_no =
            outcome["optionId"].as_str().is_none_or(|it| ["reject", "cancel"].contains(&it));
        let decision =
            if is_no { Decision::Deny { why: "no".to_owned() } } else { Decision::Allow };
        Some(self.adapter.decide(&question, &decision))
    }
}

/// The events of one turn: what comes after its end is of another.
fn play<'a>(recording: &Recording, lines: impl Iterator<Item = &'a Line>) -> Vec<Event> {
    let mut player = Player::new(recording);
    let acts = player.adapter.begin();
    player.did(acts);
    for line in lines {
        match line {
            Line::Agent(line) => player.agent(line),
            Line::Client(message) => player.client(message),
        }
        if is_over(&player.events) {
            return player.events;
        }
    }
    let acts = player.adapter.hear(Heard::End);
    player.did(acts);
    player.events
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
        let events = play(&recording, recording.lines.iter());
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
        let whole = play(&recording, recording.lines.iter());
        for cut in 0..recording.lines.len() {
            let events = play(&recording, recording.lines[..cut].iter());
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
    let garbage = garbage.map(|it| Line::Agent(it.to_vec()));
    for recording in recordings() {
        let clean = play(&recording, recording.lines.iter());
        let between =
            recording.lines.iter().enumerate().flat_map(|(at, line)| [&garbage[at % 4], line]);
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
        let renamed = |line: &Line| {
            let Line::Agent(line) = line else { return line.clone() };
            let text = String::from_utf8_lossy(line);
            let text = text.replace("\"type\":", "\"kind\":").replace("\"method\":", "\"verb\":");
            Line::Agent(text.replace("\"result\":", "\"outcome\":").into_bytes())
        };
        let lines: Vec<Line> = recording.lines.iter().map(renamed).collect();
        let events = play(&recording, lines.iter());
        assert_eq!(end(&events), &End::Interrupted, "{}", recording.path.display());
    }
}
