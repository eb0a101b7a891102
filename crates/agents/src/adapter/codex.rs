//! Codex, by `codex app-server`: JSON-RPC in lines, without a `jsonrpc` field.
//!
//! One process a turn, though a process could serve many: a second turn is 0.3 s faster in the same process, and then
//! both have one fate. `initialize`, `thread/start` or `thread/resume`, `turn/start`; `turn/completed` is the last word.
//! A command that the agent has left running is not over with the turn, so the turn then waits for it.
//!
//! What may be done unasked. With `park` and `deny`: approval policy `untrusted`, sandbox `read-only`. Codex then asks
//! before each patch and each command but the reading ones of its own list, and those cannot write. A sandbox that may
//! write would also make Codex trust the repository, and with it the hooks and servers of its `.codex`; for the same
//! reason `thread/start` names no directory. With `allow`: `on-request` and `workspace-write`, and what goes beyond the
//! workspace is asked and allowed. `never` is no choice: it refuses the tools of MCP servers. The reviewer is always
//! `user`, because a reviewing model would cost and decide.
//!
//! Spend: `last` is one call. All of them since `turn/started` are added up, those of sub-agents too, which no total of
//! the thread has. The same `last` comes again with news of a limit: then the total beside it has not moved.
//!
//! Silent: two errors 500 in a row, a server of MCP that does not start, a denial's reason (it is steered after it).

mod ask;
mod read;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::event::{End, Event, Question, Spent, Trouble, TroubleKind};
use super::json::{at, brief, line, list, object, text, whole, yes};
use super::{
    Act, Adapter, ApprovalMode, Capabilities, Cost, Decision, Driven, Heard, Launch, Transport,
    Turn,
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
    login: "codex login",
    make: |turn| Box::new(Codex::new(turn)),
};

/// Known, and nothing that we need.
const NOT_NEEDED: [&str; 41] = [
    "account/login/completed",
    "account/updated",
    "app/list/updated",
    "configWarning",
    "deprecationNotice",
    "guardianWarning",
    "hook/completed",
    "hook/started",
    "item/agentMessage/delta",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "mcpServer/oauthLogin/completed",
    "mcpServer/startupStatus/updated",
    "model/verification",
    "rawResponseItem/completed",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/archived",
    "thread/closed",
    "thread/compacted",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "thread/unarchived",
    "turn/diff/updated",
    "turn/plan/updated",
    "turn/settings/updated",
    "warning",
];

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
    /// The turns that began in this process, sub-agents' among them: what is said of any other is a replay.
    turns: BTreeSet<String>,
    /// The turns of sub-agents that are not over.
    beside: BTreeSet<String>,
    /// The items that have begun and are not over, by their ids.
    open: BTreeMap<String, Value>,
    asked: BTreeMap<String, ask::Asked>,
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
    /// `thread/start` or `thread/resume` is sent.
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
            turns: BTreeSet::new(),
            beside: BTreeSet::new(),
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
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
        match (id, at(message, "result"), at(message, "error")) {
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
                    self.stage = Stage::Running { turn: turn.to_owned() };
                    Vec::new()
                }
                None => self.not_understood(),
            },
            Stage::Lingering { .. } | Stage::Over => Vec::new(),
        }
    }

    fn opening(&self) -> (&'static str, Value) {
        let (policy, sandbox) = self.policy();
        let mut params =
            json!({ "approvalPolicy": policy, "approvalsReviewer": "user", "sandbox": sandbox });
        if let Some(model) = &self.turn.model {
            params["model"] = json!(model);
        }
        match &self.turn.session {
            Some(session) => {
                params["threadId"] = json!(session);
                params["cwd"] = json!(self.turn.dir);
                params["excludeTurns"] = json!(true);
                ("thread/resume", params)
            }
            None => ("thread/start", params),
        }
    }

    /// The approval policy and the sandbox. `permission_mode` names one of them, or both.
    fn policy(&self) -> (String, String) {
        let (mut policy, mut sandbox) = match self.turn.approvals.mode {
            ApprovalMode::Park | ApprovalMode::Deny => ("untrusted", "read-only"),
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
            method if NOT_NEEDED.contains(&method) => Vec::new(),
            _ => self.not_understood(),
        });
        acts
    }

    fn is_own(&self, params: &Value) -> bool {
        text(params, "threadId") == Some(&self.thread)
    }

    fn turn_started(&mut self, params: &Value) -> Vec<Act> {
        let Some(turn) = text(params, "turn.id") else { return self.not_understood() };
        self.turns.insert(turn.to_owned());
        if !self.is_own(params) {
            self.beside.insert(turn.to_owned());
        } else if matches!(self.stage, Stage::Starting) {
            self.stage = Stage::Running { turn: turn.to_owned() };
        }
        Vec::new()
    }

    fn turn_completed(&mut self, params: &Value) -> Vec<Act> {
        let Some(turn) = at(params, "turn") else { return self.not_understood() };
        let id = text(turn, "id").unwrap_or_default();
        match &self.stage {
            Stage::Running { turn: ours } if ours == id => self.completed(turn),
            _ => {
                let was_beside = self.beside.remove(id);
                if was_beside { self.lingers() } else { Vec::new() }
            }
        }
    }

    fn completed(&mut self, turn: &Value) -> Vec<Act> {
        let text_of = |item: &Value| text(item, "text").map(str::to_owned);
        let items = list(turn, "items").iter().rev();
        let last = items.filter(|it| text(it, "type") == Some("agentMessage")).find_map(text_of);
        let end = match text(turn, "status") {
            Some("completed") => match (self.trouble.take(), last.or_else(|| self.said.take())) {
                (Some(trouble), _) => End::Failed { trouble },
                (None, None) if self.spent.is_none() => End::Failed { trouble: self.nothing() },
                (None, text) => End::Completed { text: text.unwrap_or_default() },
            },
            Some("failed") => {
                let error = at(turn, "error").filter(|error| !error.is_null());
                let trouble = error.map(|error| self.trouble_of(error)).or(self.trouble.take());
                let unsaid = || Trouble::new(TroubleKind::Other, "the turn failed");
                End::Failed { trouble: trouble.unwrap_or_else(unsaid) }
            }
            Some("interrupted") => {
                let trouble = Trouble::new(TroubleKind::Cancelled, "the turn was interrupted");
                End::Failed { trouble }
            }
            _ => return self.not_understood(),
        };
        match end {
            End::Completed { text } if self.live() > 0 => {
                self.stage = Stage::Lingering { text };
                self.lingers()
            }
            end => self.over(end),
        }
    }

    /// A turn that is completed, of which no model knows anything.
    fn nothing(&self) -> Trouble {
        let until_ms = self.windows.until_ms();
        let kind = if until_ms.is_some() { TroubleKind::Quota } else { TroubleKind::Other };
        let text = "the turn was completed, and no model had answered".to_owned();
        Trouble { kind, until_ms, text }
    }

    /// Commands and sub-agents that outlive the turn.
    fn live(&self) -> usize {
        let is_command = |item: &&Value| text(item, "type") == Some("commandExecution");
        self.open.values().filter(is_command).count() + self.beside.len()
    }

    fn lingers(&mut self) -> Vec<Act> {
        let Stage::Lingering { text } = &self.stage else { return Vec::new() };
        let live = self.live();
        let text = text.clone();
        let count = u32::try_from(live).unwrap_or(u32::MAX);
        let mut acts = vec![Act::Tell(Event::Background { live: count })];
        if live == 0 {
            acts.extend(self.over(End::Completed { text }));
        }
        acts
    }

    fn over(&mut self, end: End) -> Vec<Act> {
        let mut acts = Vec::new();
        if let Some(spent) = &mut self.spent {
            // Of a call that was cut off, nothing was counted.
            spent.is_floor = !matches!(end, End::Completed { .. });
            acts.push(Act::Tell(Event::Spent(*spent)));
        }
        self.stage = Stage::Over;
        if end != End::Interrupted {
            acts.push(Act::CloseInput);
        }
        acts.push(Act::Tell(Event::Ended(end)));
        acts
    }

    fn item_started(&mut self, params: &Value) -> Vec<Act> {
        let Some((id, item)) = self.item(params) else { return Vec::new() };
        let tool = read::tool(item);
        self.open.insert(id.to_owned(), item.clone());
        let started = |(name, about)| Event::ToolStarted { id: id.to_owned(), name, about };
        tool.map(|tool| Act::Tell(started(tool))).into_iter().collect()
    }

    fn item_completed(&mut self, params: &Value) -> Vec<Act> {
        let Some((id, item)) = self.item(params) else { return Vec::new() };
        self.open.remove(id);
        let mut acts = Vec::new();
        if read::tool(item).is_some() {
            let is_error = read::has_failed(item);
            acts.push(Act::Tell(Event::ToolEnded { id: id.to_owned(), is_error }));
        }
        // What a sub-agent says is said to the agent.
        if text(item, "type") == Some("agentMessage") && self.is_own(params) {
            let text = text(item, "text").unwrap_or_default().to_owned();
            (self.said, self.trouble) = (Some(text.clone()), None);
            acts.push(Act::Tell(Event::Said { text }));
        }
        acts.extend(self.lingers());
        acts
    }

    /// An item of a turn that began in this process.
    fn item<'v>(&self, params: &'v Value) -> Option<(&'v str, &'v Value)> {
        let item = at(params, "item")?;
        let is_new = self.turns.contains(text(params, "turnId")?);
        Some((text(item, "id").filter(|_| is_new)?, item))
    }

    fn usage(&mut self, params: &Value) -> Vec<Act> {
        let usage = at(params, "tokenUsage").unwrap_or(&Value::Null);
        let thread = text(params, "threadId");
        let (Some(thread), Some(total), Some(last)) =
            (thread, at(usage, "total"), at(usage, "last"))
        else {
            return self.not_understood();
        };
        let before = self.totals.insert(thread.to_owned(), total.clone());
        if !text(params, "turnId").is_some_and(|turn| self.turns.contains(turn)) {
            return Vec::new();
        }
        let mut acts = Vec::new();
        if let Some(used) = whole(last, "totalTokens").filter(|_| self.is_own(params)) {
            let window = whole(usage, "modelContextWindow");
            acts.push(Act::Tell(Event::Context { used, window }));
        }
        if before.as_ref() != Some(total) {
            self.unsure = Some(read::spent(last));
            let is_first_of_resumed = before.is_none() && self.turn.session.is_some();
            if !(is_first_of_resumed && self.is_own(params)) {
                acts.extend(self.sure());
            }
        }
        acts
    }

    fn sure(&mut self) -> Option<Act> {
        let call = self.unsure.take()?;
        let spent = self.spent.unwrap_or_default().and(&call);
        self.spent = Some(spent);
        Some(Act::Tell(Event::Spent(spent)))
    }

    fn limits(&mut self, params: &Value) -> Vec<Act> {
        let Some(limits) = at(params, "rateLimits") else { return self.not_understood() };
        if !self.windows.merge(limits) {
            return Vec::new();
        }
        let (text, until_ms) = (self.windows.to_string(), self.windows.until_ms());
        let trouble = Trouble { kind: TroubleKind::Quota, until_ms, text };
        vec![Act::Tell(Event::Window { trouble })]
    }

    fn error(&mut self, params: &Value) -> Vec<Act> {
        let Some(error) = at(params, "error") else { return self.not_understood() };
        let trouble = self.trouble_of(error);
        if trouble.kind == TroubleKind::Quota {
            self.unsure = None;
        }
        let mut acts: Vec<Act> = self.sure().into_iter().collect();
        if yes(params, "willRetry") {
            self.retries += 1;
            let counted = text(error, "message").and_then(read::attempt);
            let (attempt, most) = counted.map_or((self.retries, None), |(n, of)| (n, Some(of)));
            acts.push(Act::Tell(Event::Retries { attempt, most, delay_ms: None, trouble }));
        } else if self.is_own(params) && !read::is_of_a_request(error) {
            self.trouble = Some(trouble);
        }
        acts
    }

    fn trouble_of(&self, error: &Value) -> Trouble {
        let kind = read::kind(at(error, "codexErrorInfo").unwrap_or(&Value::Null));
        let words = [text(error, "message"), text(error, "additionalDetails")];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        let is_limit = matches!(kind, TroubleKind::Quota | TroubleKind::Throttle);
        let until_ms = self.windows.until_ms().filter(|_| is_limit);
        Trouble { kind, until_ms, text: brief(&words.join(": "), 2000) }
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
        // Codex counts its requests from nothing in each process; a decision must never meet another question.
        let turn = text(params, "turnId").unwrap_or(&self.thread);
        let id = format!("{turn}.{}", request.as_str().map_or(request.to_string(), str::to_owned));
        let asked = ask::Asked { request: request.clone(), words: words.clone(), form };
        self.asked.insert(id.clone(), asked);
        let decided = tool.as_deref().and_then(|tool| self.turn.approvals.decide(tool));
        acts.push(Act::Tell(Event::Asked(Question { id: id.clone(), tool, text: words })));
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
        argv.push("app-server".to_owned());
        argv.extend(self.turn.args.iter().cloned());
        Launch { argv, env: Vec::new(), transport: Transport::Lines }
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

    fn steer(&mut self, text: &str) -> Option<Vec<Act>> {
        let Stage::Running { turn } = &self.stage else { return None };
        let params =
            json!({ "threadId": self.thread, "expectedTurnId": turn, "input": input(text) });
        Some(vec![self.request("turn/steer", &params)])
    }

    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        if matches!(self.stage, Stage::Over) {
            return Vec::new();
        }
        let Some(asked) = self.asked.remove(question) else { return Vec::new() };
        let answer = json!({ "id": asked.request, "result": asked.answer(decision) });
        let mut acts = vec![Act::Send(line(&answer))];
        if let Some(why) = asked.why(decision) {
            acts.extend(self.steer(&why).unwrap_or_default());
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
}

fn input(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}
