//! Codex, by `codex app-server`: JSON-RPC in lines, without a `jsonrpc` field.
//!
//! One process per turn, though a process could serve many: a second turn is 0.3 s faster in the same process, and then
//! both share one fate. `initialize`, then `thread/start`, `thread/resume` or `thread/fork`, then `turn/start`. `turn/completed` ends the
//! turn, unless a command or a sub-agent still runs: Codex does not wait for those, and ends them with the process.
//!
//! What may happen unasked. With `park` and `deny`: approval policy `untrusted`, sandbox `workspace-write`. Codex then asks
//! before each patch and each command, except for commands of its own list that only read. In the sandbox `read-only` a
//! command that a person has allowed could not write either (measured). A sandbox that can write makes Codex trust the repository, and so the hooks and servers of its
//! `.codex`, if `thread/start` names the directory: it never does, and Codex takes the one that it is started in. With
//! `allow`: `on-request` and `workspace-write`; what goes beyond the workspace is asked and allowed. `never` would refuse
//! the tools of MCP servers. The reviewer is always `user`: a reviewing model would cost, and would decide.
//!
//! Spend: `last` is one call. The calls since `turn/started` are added up, those of sub-agents too, which are in no total
//! of the thread. A limit repeats the `last` of the call before it, with the same total: that is not counted again.
//! There is no price.
//!
//! Silent: retries after a 500, an MCP server that does not start. A refusal has no place for its reason, so the reason
//! is steered into the turn. Codex numbers its questions from 0 in each process; their ids here start with the turn's.

mod ask;
mod read;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::event::{End, Event, Question, Spent, Trouble, TroubleKind};
use super::json::{at, brief, line, object, text};
use super::{
    Act, Adapter, ApprovalMode, Capabilities, Cost, Decision, Driven, Forks, Heard, Launch,
    Transport, Turn,
};

pub(super) const DRIVEN: Driven = Driven {
    name: "codex",
    capabilities: Capabilities {
        resume: true,
        cost: Cost::Unknown,
        reset_time: true,
        steer: true,
        cancel: true,
        approvals: true,
        mcp: true,
        structured_end: true,
    },
    tested: &["0.166.0"],
    env: &[
        "CODEX_*",
        "OPENAI_*",
        "AZURE_OPENAI_*",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
    ],
    needs_command: false,
    resumes_next_minute: false,
    forks: Forks::AtTurn,
    login: "codex login",
    make: |turn| Box::new(Codex::new(turn)),
};

/// After a first count in a resumed thread, these say nothing about whose count it was.
const SAYS_NOTHING_OF_SPEND: [&str; 3] =
    ["account/rateLimits/updated", "thread/status/changed", "error"];

struct Codex {
    turn: Turn,
    stage: Stage,
    /// Our last request; the first is 1.
    sent: u64,
    /// The request that the stage waits for.
    awaited: u64,
    thread: String,
    /// Its own name of the turn that was asked.
    name: Option<String>,
    /// The turns that began in this process, sub-agents' among them: what is said of any other is a replay.
    turns: BTreeSet<String>,
    /// The turns of sub-agents that are not over.
    beside: BTreeSet<String>,
    /// The items that have begun and are not over, by their ids.
    open: BTreeMap<String, Value>,
    asked: BTreeMap<String, ask::Asked>,
    /// Messages that were sent into the turn, by the requests that sent them.
    steers: BTreeMap<u64, u64>,
    /// The last total of each thread.
    totals: BTreeMap<String, Value>,
    spent: Option<Spent>,
    /// The first count of a resumed thread. It is an earlier turn's if a limit follows at once.
    unsure: Option<Spent>,
    windows: read::Windows,
    /// An error that will not be retried.
    trouble: Option<Trouble>,
    said: Option<String>,
    retries: u32,
    not_understood: u64,
}

enum Stage {
    /// `initialize` is sent.
    Greeting,
    /// `thread/start`, `thread/resume` or `thread/fork` is sent.
    Opening,
    /// `turn/start` is sent.
    Starting,
    Running {
        turn: String,
    },
    /// The turn is completed, and work of the agent goes on beside it.
    Lingering {
        text: String,
    },
    Over,
}

impl Codex {
    fn new(turn: Turn) -> Self {
        Self {
            turn,
            stage: Stage::Greeting,
            sent: 0,
            awaited: 0,
            thread: String::new(),
            name: None,
            turns: BTreeSet::new(),
            beside: BTreeSet::new(),
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            steers: BTreeMap::new(),
            totals: BTreeMap::new(),
            spent: None,
            unsure: None,
            windows: read::Windows::default(),
            trouble: None,
            said: None,
            retries: 0,
            not_understood: 0,
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Act {
        self.sent += 1;
        Act::Send(line(&json!({ "id": self.sent, "method": method, "params": params })))
    }

    /// Words for the turn that runs.
    fn say(&mut self, text: &str) -> Option<Act> {
        let Stage::Running { turn } = &self.stage else { return None };
        let params =
            json!({ "threadId": self.thread, "expectedTurnId": turn, "input": input(text) });
        Some(self.request("turn/steer", &params))
    }

    /// A request that the next stage waits for.
    fn go_on(&mut self, stage: Stage, method: &str, params: &Value) -> Act {
        self.stage = stage;
        let act = self.request(method, params);
        self.awaited = self.sent;
        act
    }

    fn line(&mut self, bytes: &[u8]) -> Vec<Act> {
        let Some(message) = object(bytes) else { return self.not_understood() };
        let params = at(&message, "params").unwrap_or(&Value::Null);
        match (text(&message, "method"), at(&message, "id")) {
            (Some(method), Some(id)) => self.asks(method, id, params),
            (Some(method), None) => self.notice(method, params),
            (None, Some(id)) => self.answered(id, &message),
            (None, None) => self.not_understood(),
        }
    }

    fn not_understood(&mut self) -> Vec<Act> {
        self.not_understood += 1;
        vec![Act::Tell(Event::NotUnderstood { lines: self.not_understood })]
    }

    fn answered(&mut self, id: &Value, message: &Value) -> Vec<Act> {
        let id = id.as_u64().filter(|id| (1..=self.sent).contains(id));
        let steered = id.and_then(|id| self.steers.remove(&id));
        match (id, at(message, "result"), at(message, "error")) {
            (_, Some(_), _) if let Some(message) = steered => {
                vec![Act::Tell(Event::Took { message })]
            }
            // A message that was steered, an interrupt: the turn itself shows what came of it.
            (Some(id), Some(_), _) | (Some(id), _, Some(_)) if id != self.awaited => Vec::new(),
            (Some(_), Some(result), _) => self.granted(result),
            (Some(_), None, Some(error)) => self.refused(error),
            _ => self.not_understood(),
        }
    }

    fn granted(&mut self, result: &Value) -> Vec<Act> {
        match &self.stage {
            Stage::Greeting => {
                let (method, params) = self.opening();
                vec![
                    Act::Send(line(&json!({ "method": "initialized" }))),
                    self.go_on(Stage::Opening, method, &params),
                ]
            }
            Stage::Opening => self.opened(result),
            Stage::Starting | Stage::Running { .. } => match text(result, "turn.id") {
                Some(turn) => {
                    self.runs(turn);
                    Vec::new()
                }
                None => self.not_understood(),
            },
            Stage::Lingering { .. } | Stage::Over => Vec::new(),
        }
    }

    fn runs(&mut self, turn: &str) {
        self.name = Some(turn.to_owned());
        self.stage = Stage::Running { turn: turn.to_owned() };
    }

    fn opening(&self) -> (&'static str, Value) {
        let (policy, sandbox) = self.policy();
        let mut params =
            json!({ "approvalPolicy": policy, "approvalsReviewer": "user", "sandbox": sandbox });
        if let Some(model) = &self.turn.model {
            params["model"] = json!(model);
        }
        if let Some(server) = &self.turn.mcp {
            let is_trusted = self.turn.approvals.mode == ApprovalMode::Allow;
            params["config"] = server.for_codex(is_trusted);
        }
        match &self.turn.session {
            Some(session) => {
                params["threadId"] = json!(session);
                params["cwd"] = json!(self.turn.dir);
                params["excludeTurns"] = json!(true);
                let Some(mark) = &self.turn.fork else { return ("thread/resume", params) };
                params["lastTurnId"] = json!(mark.at);
                ("thread/fork", params)
            }
            None => ("thread/start", params),
        }
    }

    /// The approval policy and the sandbox. `permission_mode` names one of them, or both.
    fn policy(&self) -> (String, String) {
        let (mut policy, mut sandbox) = match self.turn.approvals.mode {
            ApprovalMode::Park | ApprovalMode::Deny => ("untrusted", "workspace-write"),
            ApprovalMode::Allow => ("on-request", "workspace-write"),
        };
        let mode = self.turn.permission_mode.as_deref().unwrap_or_default();
        for word in mode.split([' ', ',']).filter(|word| !word.is_empty()) {
            match word {
                "untrusted" | "on-request" | "on-failure" | "never" => policy = word,
                // Also a name that is none: Codex refuses it, and says which there are.
                _ => sandbox = word,
            }
        }
        (policy.to_owned(), sandbox.to_owned())
    }

    fn opened(&mut self, result: &Value) -> Vec<Act> {
        let Some(thread) = text(result, "thread.id") else { return self.not_understood() };
        self.thread = thread.to_owned();
        let mut acts = vec![Act::Tell(Event::Session { id: thread.to_owned() })];
        if let Some(name) = text(result, "model") {
            acts.push(Act::Tell(Event::Model { name: name.to_owned() }));
        }
        let mut params = json!({ "threadId": thread, "input": input(&self.turn.prompt) });
        if let Some(effort) = &self.turn.effort {
            params["effort"] = json!(effort);
        }
        acts.push(self.go_on(Stage::Starting, "turn/start", &params));
        acts
    }

    fn refused(&mut self, error: &Value) -> Vec<Act> {
        let words = text(error, "message").unwrap_or_default();
        let is_resume = matches!(self.stage, Stage::Opening) && self.turn.session.is_some();
        let is_invalid = at(error, "code").and_then(Value::as_i64) == Some(read::INVALID_REQUEST);
        let kind = match at(error, "data.codexErrorInfo") {
            Some(info) => read::kind(info),
            // Both have the same code; only words tell a thread that is busy from one that is not there.
            None if is_resume && words.contains("active writer") => TroubleKind::SessionBusy,
            None if is_resume && is_invalid => TroubleKind::CannotResume,
            // Also a version that knows no such request.
            None if is_resume && self.turn.fork.is_some() => TroubleKind::CannotResume,
            None => TroubleKind::Other,
        };
        self.over(End::Failed { trouble: Trouble::new(kind, brief(words, 2000)) })
    }

    fn notice(&mut self, method: &str, params: &Value) -> Vec<Act> {
        let mut acts = Vec::new();
        if !SAYS_NOTHING_OF_SPEND.contains(&method) {
            acts.extend(self.sure());
        }
        acts.extend(match method {
            "turn/started" => self.turn_started(params),
            "turn/completed" => self.turn_completed(params),
            "item/started" => self.item_started(params),
            "item/completed" => self.item_completed(params),
            "thread/tokenUsage/updated" => self.usage(params),
            "account/rateLimits/updated" => self.limits(params),
            "error" => self.error(params),
            "serverRequest/resolved" => {
                let request = at(params, "requestId");
                self.asked.retain(|_, asked| Some(&asked.request) != request);
                Vec::new()
            }
            "model/rerouted" => text(params, "toModel")
                .map(|name| Act::Tell(Event::Model { name: name.to_owned() }))
                .into_iter()
                .collect(),
            method if read::NOT_NEEDED.contains(&method) => Vec::new(),
            _ => self.not_understood(),
        });
        acts
    }

    fn asks(&mut self, method: &str, request: &Value, params: &Value) -> Vec<Act> {
        let mut acts: Vec<Act> = self.sure().into_iter().collect();
        let Some((tool, words, form)) = ask::read(method, params, &self.open) else {
            // It waits for an answer to each; this one is none that we know.
            let error = json!({ "code": -32601, "message": "not supported by this client" });
            acts.extend(self.not_understood());
            acts.push(Act::Send(line(&json!({ "id": request, "error": error }))));
            return acts;
        };
        // A late decision about an earlier process's request 0 must not meet this one.
        let turn = text(params, "turnId").unwrap_or(&self.thread);
        let id = format!("{turn}.{}", request.as_str().map_or(request.to_string(), str::to_owned));
        let asked = ask::Asked { request: request.clone(), words: words.clone(), form };
        self.asked.insert(id.clone(), asked);
        let question = Question { id: id.clone(), tool, text: words };
        let decided = self.turn.approvals.decide_on(&question);
        acts.push(Act::Tell(Event::Asked(question)));
        if let Some(decision) = decided {
            acts.extend(self.decide(&id, &decision));
        }
        acts
    }
}

impl Adapter for Codex {
    fn launch(&self) -> Launch {
        let mut argv = match self.turn.command.as_slice() {
            [] => vec!["codex".to_owned()],
            command => command.to_vec(),
        };
        // A command of Symphony's has the word in its line.
        if !argv.iter().any(|word| word.split_whitespace().any(|it| it == "app-server")) {
            argv.push("app-server".to_owned());
        }
        argv.extend(self.turn.args.iter().cloned());
        Launch { argv, env: Vec::new(), transport: Transport::Lines, ..Launch::default() }
    }

    fn begin(&mut self) -> Vec<Act> {
        let client =
            json!({ "name": "outlast", "title": "Outlast", "version": env!("CARGO_PKG_VERSION") });
        // `excludeTurns` is one of what it calls experimental.
        let params = json!({ "clientInfo": client, "capabilities": { "experimentalApi": true } });
        vec![self.go_on(Stage::Greeting, "initialize", &params)]
    }

    fn hear(&mut self, heard: Heard<'_>) -> Vec<Act> {
        match heard {
            _ if matches!(self.stage, Stage::Over) => Vec::new(),
            Heard::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Vec::new(),
            Heard::Line(bytes) => self.line(bytes),
            Heard::End => self.over(End::Interrupted),
            Heard::Answer { .. } | Heard::Pushed(_) => Vec::new(),
        }
    }

    fn steer(&mut self, message: u64, text: &str) -> Option<Vec<Act>> {
        let act = self.say(text)?;
        self.steers.insert(self.sent, message);
        Some(vec![act])
    }

    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        if matches!(self.stage, Stage::Over) {
            return Vec::new();
        }
        let Some(asked) = self.asked.remove(question) else { return Vec::new() };
        let answer = json!({ "id": asked.request, "result": asked.answer(decision) });
        let mut acts = vec![Act::Send(line(&answer))];
        if let Some(why) = asked.why(decision) {
            acts.extend(self.say(&why));
        }
        let told = Event::Decided { id: question.to_owned(), decision: decision.clone() };
        acts.push(Act::Tell(told));
        acts
    }

    fn cancel(&mut self) -> Vec<Act> {
        let Stage::Running { turn } = &self.stage else { return Vec::new() };
        let params = json!({ "threadId": self.thread, "turnId": turn });
        vec![self.request("turn/interrupt", &params)]
    }

    fn turn_name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

fn input(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}
