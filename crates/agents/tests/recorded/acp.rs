//! Recordings of agents that speak ACP: requests and answers in both directions.

use std::collections::BTreeMap;

use outlast_agents::adapter::{
    Act, Adapter, ApprovalMode, Approvals, Decision, Event, Heard, Turn, driven,
};
use serde_json::{Value, json};

use super::{Recording, by_client, is_over, told};

/// The recordings whose client steers as our adapter does. In the others the second message is not sent.
const STEERED: [&str; 3] = [
    "acp-claude-agent-acp-0.99.1/steer.jsonl",
    "acp-codex-acp-2.6.0/steer-extension.jsonl",
    "acp-opencode-1.18.33/steer.jsonl",
];

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
        let said: Vec<Value> = recording.lines.iter().filter_map(|line| by_client(line)).collect();
        let client = || said.iter();
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
            approvals: Approvals { mode, ..Approvals::default() },
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
                steers.then(|| self.adapter.steer(0, words)).flatten()
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
pub(super) fn play<'a>(recording: &Recording, lines: impl Iterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut player = Player::new(recording);
    let begun = player.adapter.begin();
    player.did(begun);
    for line in lines {
        match by_client(line) {
            Some(said) => player.client(&said),
            None => player.agent(line),
        }
        if is_over(&player.events) {
            return player.events;
        }
    }
    let acts = player.adapter.hear(Heard::End);
    player.did(acts);
    player.events
}
