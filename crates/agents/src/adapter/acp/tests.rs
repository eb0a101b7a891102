//! What recordings do not show of ACP: launches, policies, typed errors, replay, garbage.

mod ends;
mod servers;

use super::*;
use crate::adapter::event::{Question, Spent};
use crate::adapter::{ApprovalMode, Approvals, driven};

fn turn() -> Turn {
    Turn {
        prompt: "Do it.".to_owned(),
        dir: "/work".to_owned(),
        command: vec!["agent".to_owned(), "acp".to_owned()],
        ..Turn::default()
    }
}

/// One side of a talk with an adapter: what it sends, and what it tells.
struct Talking {
    adapter: Box<dyn Adapter>,
    sent: Vec<Value>,
    told: Vec<Event>,
    has_closed: bool,
}

impl Talking {
    fn with(kind: &str, turn: Turn) -> Self {
        let adapter = driven(kind).unwrap().adapter(turn);
        let mut talking = Self { adapter, sent: vec![], told: vec![], has_closed: false };
        let acts = talking.adapter.begin();
        talking.did(acts);
        talking
    }

    /// A session of this agent is open, and the prompt was sent.
    fn open(agent: &str, turn: Turn) -> Self {
        let mut talking = Self::with("acp", turn);
        talking.answers(hello(agent));
        talking.answers(opened());
        talking
    }

    fn did(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Send(bytes) => {
                    assert_eq!(bytes.last(), Some(&b'\n'));
                    self.sent.push(serde_json::from_slice(&bytes).unwrap());
                }
                Act::Tell(event) => self.told.push(event),
                Act::CloseInput => self.has_closed = true,
                Act::Connect { .. } | Act::Call { .. } | Act::Listen { .. } => {
                    panic!("not of this transport")
                }
            }
        }
    }

    fn hears(&mut self, message: &Value) {
        let acts = self.adapter.hear(Heard::Line(message.to_string().as_bytes()));
        self.did(acts);
    }

    fn last(&self) -> &Value {
        self.sent.last().unwrap()
    }

    /// Answers the last message.
    fn answers(&mut self, result: Value) {
        let id = self.last()["id"].clone();
        self.hears(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn refuses(&mut self, error: Value) {
        let id = self.last()["id"].clone();
        self.hears(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    }

    fn updates(&mut self, update: Value) {
        self.hears(&json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "s1", "update": update } }));
    }

    fn says(&mut self, id: Option<&str>, words: &str) {
        let mut update = json!({ "sessionUpdate": "agent_message_chunk",
            "content": { "type": "text", "text": words } });
        if let Some(id) = id {
            update["messageId"] = json!(id);
        }
        self.updates(update);
    }

    fn costs(&mut self, dollars: f64) {
        self.updates(json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100,
            "cost": { "amount": dollars, "currency": "USD" } }));
    }

    fn asks(&mut self, id: Value, call: &str, options: Value) {
        self.hears(&json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission",
            "params": { "sessionId": "s1", "options": options, "toolCall": {
                "toolCallId": call, "title": "rm -r x", "kind": "execute",
                "rawInput": { "command": "rm -r x" } } } }));
    }

    fn end(&self) -> &End {
        let ends: Vec<&End> = self
            .told
            .iter()
            .filter_map(|it| if let Event::Ended(end) = it { Some(end) } else { None })
            .collect();
        assert_eq!(ends.len(), 1, "{:?}", self.told);
        ends[0]
    }

    fn trouble(&self) -> TroubleKind {
        match self.end() {
            End::Failed { trouble } => trouble.kind,
            end => panic!("{end:?}"),
        }
    }

    fn spent(&self) -> Option<Spent> {
        let of = |it: &Event| if let Event::Spent(spent) = it { Some(*spent) } else { None };
        self.told.iter().rev().find_map(of)
    }

    fn said(&self) -> Vec<&str> {
        self.told
            .iter()
            .filter_map(|it| if let Event::Said { text } = it { Some(text.as_str()) } else { None })
            .collect()
    }
}

fn hello(agent: &str) -> Value {
    json!({ "protocolVersion": 1, "agentInfo": { "name": agent, "version": "1" },
        "agentCapabilities": { "loadSession": true } })
}

fn opened() -> Value {
    json!({ "sessionId": "s1",
        "modes": { "currentModeId": "default", "availableModes": [] },
        "configOptions": [
            { "id": "model", "category": "model", "currentValue": "default",
                "options": [{ "value": "default" }, { "value": "big" }] },
            { "id": "effort", "category": "thought_level", "currentValue": "low", "options": [] },
        ] })
}

fn options() -> Value {
    json!([
        { "optionId": "1", "name": "Always", "kind": "allow_always" },
        { "optionId": "2", "name": "Once", "kind": "allow_once" },
        { "optionId": "3", "name": "Never", "kind": "reject_always" },
        { "optionId": "4", "name": "No", "kind": "reject_once" },
    ])
}

fn done() -> Value {
    json!({ "stopReason": "end_turn", "usage":
        { "inputTokens": 10, "outputTokens": 2, "cachedReadTokens": 5, "cachedWriteTokens": 3, "totalTokens": 20 } })
}

#[test]
fn the_command_is_started_as_it_is_and_without_one_the_turn_fails() {
    let launch = |turn: Turn| driven("acp").unwrap().adapter(turn).launch();
    let with_args = Turn { args: vec!["--x".to_owned()], ..turn() };
    assert_eq!(launch(with_args).argv, ["agent", "acp", "--x"]);
    assert!(launch(turn()).env.is_empty());
    let opencode = launch(Turn { command: vec!["/opt/opencode".to_owned()], ..turn() });
    assert_eq!(opencode.env[0].0, "OPENCODE_CONFIG_CONTENT");
    assert!(opencode.env[0].1.contains(r#""bash":"ask""#));
    let claude = launch(Turn { command: vec!["claude-agent-acp".to_owned()], ..turn() });
    let off = ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION".to_owned(), "false".to_owned());
    assert_eq!(claude.env, [off]);

    let none = Turn { command: vec![], args: vec!["--x".to_owned()], ..turn() };
    assert!(launch(none.clone()).argv.is_empty());
    let talking = Talking::with("acp", none);
    assert_eq!((talking.trouble(), talking.sent.len()), (TroubleKind::Other, 0));
    assert!(driven("acp").unwrap().needs_command && !driven("gemini").unwrap().needs_command);
}

#[test]
fn gemini_is_started_by_its_own_name_with_the_model_in_its_arguments() {
    let turn = Turn {
        command: vec![],
        model: Some("gemini-2.5-pro".to_owned()),
        args: vec!["--debug".to_owned()],
        ..turn()
    };
    let mut talking = Talking::with("gemini", turn);
    let argv = talking.adapter.launch().argv;
    assert_eq!(argv, ["gemini", "--acp", "-m", "gemini-2.5-pro", "--debug"]);
    talking.answers(hello("gemini-cli"));
    talking.answers(opened());
    assert_eq!(talking.last()["method"], "session/prompt");
}

#[test]
fn a_new_session_is_opened_and_prompted() {
    let mut talking = Talking::with("acp", turn());
    let first = json!({ "protocolVersion": 1,
        "clientInfo": { "name": "outlast", "version": env!("CARGO_PKG_VERSION") },
        "clientCapabilities":
            { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false } });
    assert_eq!(
        *talking.last(),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": first })
    );
    talking.answers(hello("unknown"));
    assert_eq!(
        *talking.last(),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "session/new",
            "params": { "cwd": "/work", "mcpServers": [] } })
    );
    talking.answers(opened());
    assert_eq!(talking.told, [Event::Session { id: "s1".to_owned() }]);
    assert_eq!(
        *talking.last(),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params":
            { "sessionId": "s1", "prompt": [{ "type": "text", "text": "Do it." }] } })
    );
    talking.says(Some("a"), "Do");
    talking.says(Some("a"), "ne.");
    talking.answers(done());
    assert_eq!(*talking.end(), End::Completed { text: "Done.".to_owned() });
    assert!(talking.has_closed);
    // Whether an unknown agent counts all of it is not known either.
    let spent = Spent {
        input_tokens: Some(13),
        output_tokens: Some(2),
        cached_tokens: Some(5),
        cost_usd_micros: None,
        is_floor: true,
    };
    assert_eq!(talking.spent(), Some(spent));
    let told = talking.told.len();
    talking.says(Some("b"), "More.");
    let acts = talking.adapter.hear(Heard::End);
    assert!(acts.is_empty() && talking.told.len() == told, "nothing comes after the end");
}

#[test]
fn a_session_is_resumed_if_the_agent_can_and_else_loaded() {
    let resumed = Turn { session: Some("s1".to_owned()), ..turn() };
    let how = |capabilities: Value| {
        let mut talking = Talking::with("acp", resumed.clone());
        talking.answers(json!({ "protocolVersion": 1, "agentCapabilities": capabilities }));
        talking
    };
    let both = how(json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }));
    assert_eq!(both.last()["method"], "session/resume");
    let load = how(json!({ "loadSession": true, "sessionCapabilities": { "resume": null } }));
    assert_eq!(load.last()["method"], "session/load");
    assert_eq!(
        load.last()["params"],
        json!({ "sessionId": "s1", "cwd": "/work", "mcpServers": [] })
    );
    assert_eq!(how(json!({})).trouble(), TroubleKind::CannotResume);
}

#[test]
fn gemini_is_started_with_its_session_and_one_that_it_has_lost_cannot_be_resumed() {
    let resumed = Turn { session: Some("s1".to_owned()), command: Vec::new(), ..turn() };
    let mut talking = Talking::with("gemini", resumed);
    assert_eq!(talking.adapter.launch().argv, ["gemini", "--acp", "--resume", "s1"]);
    let other = talking.adapter.hear_stderr(b"YOLO mode is enabled");
    assert_eq!(other, []);
    let acts = talking.adapter.hear_stderr(b"Error resuming session: Invalid session identifier");
    talking.did(acts);
    assert_eq!(talking.trouble(), TroubleKind::CannotResume);
    assert_eq!(talking.adapter.hear(Heard::End), []);
}

#[test]
fn why_a_session_cannot_be_resumed_is_typed() {
    let why = |error: Value| {
        let mut talking = Talking::with("acp", Turn { session: Some("s1".to_owned()), ..turn() });
        talking.answers(hello("gemini-cli"));
        talking.refuses(error);
        talking.trouble()
    };
    let lost = json!({ "code": -32603, "message": "Internal error", "data": { "details": "No." } });
    assert_eq!(why(lost), TroubleKind::CannotResume);
    assert_eq!(why(json!({ "code": -32002, "message": "x" })), TroubleKind::CannotResume);
    assert_eq!(why(json!({ "code": -32000, "message": "Log in" })), TroubleKind::Auth);
}

#[test]
fn an_agent_that_we_know_is_put_into_the_mode_in_which_it_asks() {
    let mode = |agent: &str, current: &str, wanted: Option<&str>| {
        let turn = Turn { permission_mode: wanted.map(str::to_owned), ..turn() };
        let mut talking = Talking::with("acp", turn);
        talking.answers(hello(agent));
        let mut opened = opened();
        opened["modes"]["currentModeId"] = json!(current);
        talking.answers(opened);
        talking
    };
    let mut codex = mode("@agentclientprotocol/codex-acp", "agent", None);
    assert_eq!(
        (codex.last()["method"].as_str(), &codex.last()["params"]),
        (Some("session/set_mode"), &json!({ "sessionId": "s1", "modeId": "read-only" }))
    );
    codex.answers(Value::Null);
    assert_eq!(codex.last()["method"], "session/prompt");

    let is_prompted = |talking: Talking| talking.last()["method"] == "session/prompt";
    assert!(is_prompted(mode("gemini-cli", "default", None)));
    assert!(is_prompted(mode("unknown", "wild", None)));
    assert_eq!(mode("gemini-cli", "yolo", None).last()["params"]["modeId"], "default");
    assert_eq!(mode("gemini-cli", "default", Some("plan")).last()["params"]["modeId"], "plan");

    let mut refused = mode("claude-agent-acp", "bypassPermissions", None);
    refused.refuses(json!({ "code": -32603, "message": "no" }));
    assert_eq!(refused.trouble(), TroubleKind::Other);
    assert!(!refused.sent.iter().any(|it| it["method"] == "session/prompt"));
}

#[test]
fn model_and_effort_are_set_by_the_options_of_the_session() {
    let wanted = Turn { model: Some("big".to_owned()), effort: Some("high".to_owned()), ..turn() };
    let mut talking = Talking::open("claude-agent-acp", wanted.clone());
    let set = |id: &str, value: &str| json!({ "sessionId": "s1", "configId": id, "value": value });
    assert_eq!(talking.last()["method"], "session/set_config_option");
    assert_eq!(talking.last()["params"], set("model", "big"));
    talking.answers(json!({ "configOptions": [] }));
    assert_eq!(talking.last()["params"], set("effort", "high"));
    talking.refuses(json!({ "code": -32602, "message": "no such value" }));
    assert_eq!(talking.trouble(), TroubleKind::Other);

    let mut none = Talking::open("claude-agent-acp", wanted.clone());
    none.refuses(json!({ "code": -32602, "message": "no such model" }));
    assert_eq!(none.trouble(), TroubleKind::NoModel);

    let mut listed = Talking::with("acp", Turn { effort: None, ..wanted.clone() });
    listed.answers(hello("unknown"));
    listed.answers(json!({ "sessionId": "s1", "models": { "currentModelId": "small" } }));
    assert_eq!(listed.last()["method"], "session/set_model");
    assert_eq!(listed.last()["params"]["modelId"], "big");

    let mut bare = Talking::with("acp", wanted);
    bare.answers(hello("unknown"));
    bare.answers(json!({ "sessionId": "s1" }));
    assert_eq!(bare.trouble(), TroubleKind::NoModel);
}

#[test]
fn a_question_waits_for_a_person_and_is_answered_by_the_kind_of_an_option() {
    let mut talking = Talking::open("unknown", turn());
    let sent = talking.sent.len();
    talking.asks(json!(7), "c1", options());
    let question = Question {
        id: "c1".to_owned(),
        tool: Some("execute".to_owned()),
        text: "execute: rm -r x".to_owned(),
    };
    assert_eq!(talking.told.last(), Some(&Event::Asked(question)));
    assert_eq!(talking.sent.len(), sent, "a person decides");

    let acts = talking.adapter.decide("c1", &Decision::Allow);
    let bytes =
        br#"{"id":7,"jsonrpc":"2.0","result":{"outcome":{"optionId":"2","outcome":"selected"}}}"#;
    assert_eq!(acts[0], Act::Send([bytes.as_slice(), b"\n"].concat()));
    assert!(talking.adapter.decide("c1", &Decision::Allow).is_empty(), "it is answered once");

    talking.asks(json!("q"), "c2", options());
    let no = Decision::Deny { why: "not now".to_owned() };
    let acts = talking.adapter.decide("c2", &no);
    talking.did(acts);
    assert_eq!(talking.last()["id"], "q");
    assert_eq!(talking.last()["result"]["outcome"]["optionId"], "4");
    let ended = Event::ToolEnded { id: "c2".to_owned(), is_error: true };
    assert_eq!(talking.told.last(), Some(&ended));
}

/// Codex calls each edit "Edit files".
#[test]
fn a_yes_to_an_edit_is_for_its_files_and_no_others() {
    let asked = |path: &str, granted: Vec<String>| {
        let approvals = Approvals { granted, ..Approvals::default() };
        let mut talking = Talking::open("unknown", Turn { approvals, ..turn() });
        let sent = talking.sent.len();
        talking.hears(&json!({ "id": 1, "method": "session/request_permission",
            "params": { "sessionId": "s1", "options": options(), "toolCall": { "toolCallId": "c1",
                "title": "Edit files", "kind": "edit", "locations": [{ "path": path }] } } }));
        let of = |it: &Event| {
            if let Event::Asked(question) = it { Some(question.text.clone()) } else { None }
        };
        (talking.told.iter().find_map(of).expect("it asks"), talking.sent.len() > sent)
    };
    let (question, is_answered) = asked("/p/a", Vec::new());
    assert_eq!((question.as_str(), is_answered), ("edit: Edit files /p/a", false));
    assert!(asked("/p/a", vec![question.clone()]).1);
    assert!(!asked("/p/b", vec![question]).1);
}

#[test]
fn a_policy_decides_at_once_and_never_more_than_this_once() {
    let answer = |mode: ApprovalMode, allow: &[&str], options: Value| {
        let allow = allow.iter().map(|it| (*it).to_owned()).collect();
        let mut talking = Talking::open(
            "unknown",
            Turn { approvals: Approvals { mode, allow, ..Approvals::default() }, ..turn() },
        );
        talking.asks(json!(7), "c1", options);
        talking.last()["result"]["outcome"].clone()
    };
    let selected = |id: &str| json!({ "outcome": "selected", "optionId": id });
    assert_eq!(answer(ApprovalMode::Allow, &[], options()), selected("2"));
    assert_eq!(answer(ApprovalMode::Deny, &[], options()), selected("4"));
    assert_eq!(answer(ApprovalMode::Deny, &["exec*"], options()), selected("2"));
    // A title is the model's to choose, and no name.
    assert_eq!(answer(ApprovalMode::Deny, &["rm*"], options()), selected("4"));
    let always = json!([{ "optionId": "1", "kind": "allow_always" }]);
    assert_eq!(answer(ApprovalMode::Allow, &[], always), json!({ "outcome": "cancelled" }));
}

#[test]
fn a_turn_that_ends_at_a_refusal_is_no_success() {
    let approvals = Approvals { mode: ApprovalMode::Deny, ..Approvals::default() };
    for (reason, goes_on) in [("end_turn", false), ("cancelled", false), ("end_turn", true)] {
        let mut talking = Talking::open("unknown", Turn { approvals: approvals.clone(), ..turn() });
        talking.asks(json!(7), "c1", options());
        talking.updates(
            json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed" }),
        );
        if goes_on {
            talking.says(None, "Then not.");
        }
        talking.hears(&json!({ "id": 3, "result": { "stopReason": reason } }));
        match talking.end() {
            End::Completed { text } => assert!(goes_on && text == "Then not."),
            End::Failed { trouble } => {
                assert_eq!(
                    (trouble.kind, trouble.text.as_str()),
                    (TroubleKind::Cancelled, ENDS_AT_NO)
                );
            }
            End::Interrupted | End::NeverStarted { .. } => panic!("it has ended"),
        }
    }
}

#[test]
fn what_we_do_not_offer_is_answered_so() {
    let mut talking = Talking::open("OpenCode", turn());
    talking.hears(&json!({ "id": 4, "method": "fs/write_text_file", "params": {} }));
    assert_eq!(talking.last()["id"], 4);
    assert_eq!(talking.last()["error"]["code"], -32601);
    assert!(!talking.told.iter().any(|it| matches!(it, Event::NotUnderstood { .. })));
    talking.hears(&json!({ "id": 5, "method": "elicitation/create", "params": {} }));
    assert_eq!(talking.last()["error"]["code"], -32601);
    assert_eq!(talking.told.last(), Some(&Event::NotUnderstood { lines: 1 }));
}

#[test]
fn claude_is_steered_by_a_second_prompt_and_the_turn_ends_with_both() {
    let mut talking = Talking::with("acp", turn());
    assert!(talking.adapter.steer(7, "too early").is_none());
    talking.answers(hello("claude-agent-acp"));
    talking.answers(opened());
    let acts = talking.adapter.steer(7, "Also this.").unwrap();
    talking.did(acts);
    assert_eq!(talking.last()["method"], "session/prompt");
    assert_eq!(talking.last()["params"]["prompt"][0]["text"], "Also this.");
    let nothing = json!({ "inputTokens": 0, "outputTokens": 0 });
    talking.hears(&json!({ "id": 3, "result": { "stopReason": "end_turn", "usage": nothing } }));
    assert!(!talking.told.iter().any(|it| matches!(it, Event::Ended(_))));
    talking.says(Some("b"), "Both done.");
    talking.answers(done());
    assert_eq!(*talking.end(), End::Completed { text: "Both done.".to_owned() });
    let spent = talking.spent().unwrap();
    assert_eq!((spent.input_tokens, spent.is_floor), (Some(13), false));
    assert!(talking.adapter.steer(7, "too late").is_none());
}

#[test]
fn a_message_that_codex_did_not_take_into_its_turn_is_a_prompt() {
    let start = || {
        let mut talking = Talking::open("codex-acp", turn());
        talking.answers(json!({}));
        let acts = talking.adapter.steer(7, "Also this.").unwrap();
        talking.did(acts);
        assert_eq!(talking.last()["method"], "_session/steering");
        // The turn was just over.
        talking.hears(&json!({ "id": 4, "result": done() }));
        talking
    };
    let mut taken = start();
    taken.answers(json!({ "outcome": "injected" }));
    assert_eq!(*taken.end(), End::Completed { text: String::new() });
    let spent = taken.spent().unwrap();
    assert_eq!((spent.input_tokens, spent.is_floor), (Some(13), false));

    let mut late = start();
    late.refuses(json!({ "code": -32600, "message": "no active turn" }));
    assert_eq!(late.last()["method"], "session/prompt");
    late.says(Some("b"), "That too.");
    late.answers(done());
    assert_eq!(*late.end(), End::Completed { text: "That too.".to_owned() });
    let mut gemini = Talking::open("gemini-cli", turn());
    assert!(gemini.adapter.steer(7, "no").is_none());
}
