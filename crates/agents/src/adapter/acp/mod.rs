//! Agents that speak the Agent Client Protocol: JSON-RPC 2.0, a line each, on standard input and output.
//!
//! One process a turn: `initialize`, then `session/new`, `session/resume` or `session/load`, then `session/prompt`, whose
//! answer is the end of the turn. A process that lives longer would share its fate with every later turn, and saves
//! seconds only. We offer no files and no terminals: the agent uses its own, in the workspace.
//!
//! Safe in a repository of strangers: an agent that we know is put into the mode in which it asks (`agent.rs`), and the
//! turn fails if that mode cannot be set. Of an unknown agent the mode is what it is: only `permission_mode` sets it.
//! A question is answered by the kind of an option, for this once. A refusal has no words: the agent hears only "no".
//!
//! Spend: tokens come with the answer to a prompt, and so a turn that is killed has none. The cost is the session's, over
//! all its processes: what came before is taken off, and is unknown in a resumed session unless the driver says it.
//! Silent: retries, limits until the agent gives up, and work that an agent leaves in the background.

mod agent;
mod errors;
mod settings;
mod spend;
mod talk;
mod tools;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::event::{End, Event, Question, Trouble, TroubleKind};
use super::json::{at, brief, line, list, object, text, whole, yes};
use super::{Act, Adapter, Capabilities, Cost, Decision, Driven, Heard, Launch, Transport, Turn};
use agent::{Agent, Steering};
use settings::Setting;
use spend::Spending;
use talk::Talk;
use tools::Tools;

pub(super) const DRIVEN: Driven = Driven {
    name: "acp",
    capabilities: Capabilities {
        resume: true,
        // Some say it, and only of a session that is new.
        cost: Cost::Unknown,
        reset_time: false,
        steer: true,
        cancel: true,
        approvals: true,
        mcp: true,
        structured_end: false,
    },
    tested: &["claude-agent-acp 0.99.1", "codex-acp 2.6.0", "gemini 0.61.0", "opencode 1.18.33"],
    // Which keys it needs depends on the command: the loop file names them.
    env: &["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"],
    login: "the login of the agent behind the command",
    make: |turn| {
        let launch = launch(&turn);
        Box::new(Acp::new(turn, launch))
    },
};

/// The version of the protocol that we speak.
const PROTOCOL: u64 = 1;

const NO_COMMAND: &str = "an agent of kind `acp` needs a command";
const METHOD_NOT_FOUND: i64 = -32601;
const MOST_ASKED: usize = 2000;

/// Without a command there is nothing to start.
fn launch(turn: &Turn) -> Launch {
    let mut argv = turn.command.clone();
    if !argv.is_empty() {
        argv.extend(turn.args.iter().cloned());
    }
    // opencode does everything unasked unless its configuration says otherwise, and its modes do not change that.
    let is_opencode = turn.command.iter().any(|word| word.contains("opencode"));
    let env = is_opencode.then(|| ("OPENCODE_CONFIG_CONTENT".to_owned(), OPENCODE_ASKS.to_owned()));
    Launch { argv, env: env.into_iter().collect(), transport: Transport::Lines }
}

/// A file of the workspace may allow what it names; a rule of the same name here takes that back.
const OPENCODE_ASKS: &str = r#"{"permission":{"*":"ask","read":"allow","glob":"allow","grep":"allow","list":"allow","todowrite":"allow","edit":"ask","bash":"ask","task":"ask","webfetch":"ask","external_directory":"ask"}}"#;

pub(super) struct Acp {
    turn: Turn,
    launch: Launch,
    agent: Agent,
    session: Option<String>,
    stage: Stage,
    /// Our requests that have no answer yet.
    sent: BTreeMap<u64, Sent>,
    last_id: u64,
    settings: VecDeque<Setting>,
    is_loaded: bool,
    /// Messages and tool calls of the session's history.
    replayed: BTreeSet<String>,
    talk: Talk,
    tools: Tools,
    asked: BTreeMap<String, Asked>,
    /// The last question was answered with "no", and the agent has done nothing since.
    is_denied: bool,
    is_cancelled: bool,
    /// How the prompt ended, while a message that was given to the turn has no answer.
    stop: Option<String>,
    spending: Spending,
    context: Option<(u64, Option<u64>)>,
    model: Option<String>,
    not_understood: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Our prompt has not been sent: all that is heard is history.
    Opening,
    /// It has been, and history may still come.
    Replaying,
    Live,
    Over,
}

/// What a request of ours was for.
enum Sent {
    Initialize,
    Open,
    Set(Setting),
    Prompt,
    Steer(String),
}

/// A question that is open: the agent's id of it, and which option stands for which answer.
struct Asked {
    request: Value,
    call: Option<String>,
    allow: Option<String>,
    reject: Option<String>,
}

impl Acp {
    pub(super) fn new(turn: Turn, launch: Launch) -> Self {
        let spending = Spending::new(turn.session.is_some(), turn.session_cost_usd_micros);
        Self {
            turn,
            launch,
            agent: Agent::Other { can_steer: false },
            session: None,
            stage: Stage::Opening,
            sent: BTreeMap::new(),
            last_id: 0,
            settings: VecDeque::new(),
            is_loaded: false,
            replayed: BTreeSet::new(),
            talk: Talk::default(),
            tools: Tools::default(),
            asked: BTreeMap::new(),
            is_denied: false,
            is_cancelled: false,
            stop: None,
            spending,
            context: None,
            model: None,
            not_understood: 0,
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Vec<Act> {
        let Some(message) = object(bytes) else { return self.not_understood() };
        match (text(&message, "method"), at(&message, "id")) {
            (Some(method), Some(id)) => self.requested(method, id, &message),
            (Some("session/update"), None) => self.updated(&message),
            // Extensions, and notices about the transport.
            (Some(method), None) if method.starts_with(['_', '$']) => Vec::new(),
            (None, Some(id)) => self.answered(id, &message),
            _ => self.not_understood(),
        }
    }

    fn not_understood(&mut self) -> Vec<Act> {
        self.not_understood += 1;
        vec![Act::Tell(Event::NotUnderstood { lines: self.not_understood })]
    }

    fn request(&mut self, method: &str, params: &Value, sent: Sent) -> Act {
        self.last_id += 1;
        self.sent.insert(self.last_id, sent);
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        Act::Send(line(&request))
    }

    fn answered(&mut self, id: &Value, message: &Value) -> Vec<Act> {
        let (result, error) = (at(message, "result"), at(message, "error"));
        let sent = id
            .as_u64()
            .filter(|_| result.is_some() || error.is_some())
            .and_then(|id| self.sent.remove(&id));
        let result = result.unwrap_or(&Value::Null);
        match (sent, error) {
            (None, _) => self.not_understood(),
            (Some(Sent::Steer(words)), _) => self.steered(&words, result),
            (Some(sent), Some(error)) => self.failed(&sent, error),
            (Some(Sent::Initialize), None) => self.open(result),
            (Some(Sent::Open), None) => self.opened(result),
            (Some(Sent::Set(_)), None) => self.go_on(),
            (Some(Sent::Prompt), None) => self.prompted(result),
        }
    }

    fn open(&mut self, result: &Value) -> Vec<Act> {
        if let Some(version) = whole(result, "protocolVersion").filter(|it| *it != PROTOCOL) {
            let words = format!("the agent speaks version {version} of the protocol");
            return self.over(failed(TroubleKind::Other, words));
        }
        self.agent = Agent::of(result);
        let resumes = at(result, "agentCapabilities.sessionCapabilities.resume");
        let method = match self.turn.session {
            None => "session/new",
            Some(_) if resumes.is_some_and(|it| !it.is_null()) => "session/resume",
            Some(_) if yes(result, "agentCapabilities.loadSession") => "session/load",
            Some(_) => {
                let words = "the agent cannot go on with a session";
                return self.over(failed(TroubleKind::CannotResume, words));
            }
        };
        self.is_loaded = method == "session/load";
        let mut params = json!({ "cwd": self.turn.dir, "mcpServers": [] });
        if let Some(session) = &self.turn.session {
            params["sessionId"] = json!(session);
        }
        vec![self.request(method, &params, Sent::Open)]
    }

    fn opened(&mut self, result: &Value) -> Vec<Act> {
        let named = text(result, "sessionId").or(self.turn.session.as_deref()).map(str::to_owned);
        let Some(id) = named else {
            return self.over(failed(TroubleKind::Other, "the agent has not named its session"));
        };
        self.session = Some(id.clone());
        let mut acts = vec![Act::Tell(Event::Session { id })];
        let model = self.turn.model.clone().or_else(|| settings::model_of(result));
        acts.extend(self.model_is(model));
        match settings::of(&self.turn, &self.agent, result) {
            Ok(settings) => self.settings = settings,
            Err(trouble) => {
                acts.extend(self.over(End::Failed { trouble }));
                return acts;
            }
        }
        acts.extend(self.go_on());
        acts
    }

    /// Sets what is still to be set, then prompts.
    fn go_on(&mut self) -> Vec<Act> {
        let session = self.session.clone().unwrap_or_default();
        if let Some(setting) = self.settings.pop_front() {
            let (method, params) = setting.request(&session);
            return vec![self.request(method, &params, Sent::Set(setting))];
        }
        self.stage = if self.is_loaded { Stage::Replaying } else { Stage::Live };
        let prompt = self.turn.prompt.clone();
        vec![self.prompt(&prompt)]
    }

    fn prompt(&mut self, words: &str) -> Act {
        let params = self.prompt_of(words);
        self.request("session/prompt", &params, Sent::Prompt)
    }

    fn prompt_of(&self, words: &str) -> Value {
        json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": words }] })
    }

    fn model_is(&mut self, name: Option<String>) -> Option<Act> {
        let name = name.filter(|name| self.model.as_ref() != Some(name))?;
        self.model = Some(name.clone());
        Some(Act::Tell(Event::Model { name }))
    }

    fn updated(&mut self, message: &Value) -> Vec<Act> {
        let Some(update) = at(message, "params.update") else { return self.not_understood() };
        // What a sub-agent does in a session of its own is told to the agent.
        let session = text(message, "params.sessionId");
        let is_other =
            session.is_some_and(|it| self.session.as_deref().is_some_and(|own| it != own));
        match text(update, "sessionUpdate") {
            _ if is_other => Vec::new(),
            Some("agent_message_chunk") => self.said(update),
            Some("tool_call" | "tool_call_update") => self.tool(update),
            Some("usage_update") => self.used(update),
            Some("user_message_chunk") => {
                if self.stage == Stage::Replaying {
                    self.talk.drop();
                }
                Vec::new()
            }
            // Each of the four sends it once a session is open, the last of a history before it.
            Some("available_commands_update") => {
                self.is_live();
                Vec::new()
            }
            Some("agent_thought_chunk") => self.finish_message(),
            Some(
                "plan"
                | "plan_update"
                | "current_mode_update"
                | "config_option_update"
                | "session_info_update",
            ) => Vec::new(),
            _ => self.not_understood(),
        }
    }

    /// History is over; what was taken for talk until now was of it.
    fn is_live(&mut self) {
        if self.stage == Stage::Replaying {
            self.talk.drop();
            self.stage = Stage::Live;
        }
    }

    /// True if this is of the session's history.
    fn is_replayed(&mut self, id: Option<&str>) -> bool {
        match self.stage {
            Stage::Opening => {
                self.replayed.extend(id.map(str::to_owned));
                true
            }
            Stage::Replaying | Stage::Live | Stage::Over => {
                id.is_some_and(|id| self.replayed.contains(id))
            }
        }
    }

    fn said(&mut self, update: &Value) -> Vec<Act> {
        let id = text(update, "messageId");
        let Some(words) = text(update, "content.text") else { return Vec::new() };
        if self.is_replayed(id) || self.agent.is_notice(words) {
            return Vec::new();
        }
        if id.is_some() {
            self.is_live();
        }
        self.is_denied = false;
        said(self.talk.add(id, words))
    }

    fn finish_message(&mut self) -> Vec<Act> {
        // What may be history is not told.
        let finished = if self.stage == Stage::Replaying { None } else { self.talk.finish() };
        said(finished)
    }

    fn tool(&mut self, update: &Value) -> Vec<Act> {
        let Some(id) = text(update, "toolCallId") else { return self.not_understood() };
        if self.stage == Stage::Replaying {
            self.replayed.insert(id.to_owned());
        }
        if self.is_replayed(Some(id)) {
            return Vec::new();
        }
        let mut acts = self.finish_message();
        self.is_denied &= self.tools.is_known(id);
        acts.extend(self.tools.learn(id, update, &self.agent));
        acts
    }

    fn used(&mut self, update: &Value) -> Vec<Act> {
        self.spending.cost_is(update, self.stage == Stage::Opening);
        if self.stage == Stage::Opening {
            return Vec::new();
        }
        let mut acts: Vec<Act> = self
            .model_is(text(update, "_meta._claude/model").map(str::to_owned))
            .into_iter()
            .collect();
        if let Some(used) = whole(update, "used") {
            let context = (used, whole(update, "size"));
            if self.context.replace(context) != Some(context) {
                acts.push(Act::Tell(Event::Context { used, window: context.1 }));
            }
        }
        acts.extend(self.spending.told(true).map(|spent| Act::Tell(Event::Spent(spent))));
        acts
    }

    fn requested(&mut self, method: &str, id: &Value, message: &Value) -> Vec<Act> {
        if method == "session/request_permission" {
            return self.permission(id, message);
        }
        // Some ask for what we have said that we do not have, and go on without it.
        let is_known = method.starts_with("fs/") || method.starts_with("terminal/");
        let mut acts = if is_known { Vec::new() } else { self.not_understood() };
        let error = json!({ "code": METHOD_NOT_FOUND, "message": "not offered by this client" });
        acts.push(Act::Send(line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))));
        acts
    }

    fn permission(&mut self, id: &Value, message: &Value) -> Vec<Act> {
        self.is_live();
        let mut acts = self.finish_message();
        let call = at(message, "params.toolCall").unwrap_or(&Value::Null);
        let call_id = text(call, "toolCallId").map(str::to_owned);
        acts.extend(call_id.iter().flat_map(|it| self.tools.asks(it, call, &self.agent)));
        let (tool, about) = self.tools.question(call_id.as_deref(), call, MOST_ASKED);
        let of_kind = |kind: &str| {
            let options = list(message, "params.options").iter();
            let found = options
                .filter(|it| text(it, "kind") == Some(kind))
                .find_map(|it| text(it, "optionId"));
            found.map(str::to_owned)
        };
        let asked = Asked {
            request: id.clone(),
            call: call_id.clone(),
            allow: of_kind("allow_once"),
            reject: of_kind("reject_once").or_else(|| of_kind("reject_always")),
        };
        let own = text(message, "id").map_or_else(|| id.to_string(), str::to_owned);
        let name = match call_id {
            Some(call) if !self.asked.contains_key(&call) => call,
            Some(call) => format!("{call}#{own}"),
            None => own,
        };
        self.asked.insert(name.clone(), asked);
        let decided = self.turn.approvals.decide(&tool);
        let words = brief(&format!("{tool}: {about}"), MOST_ASKED);
        let question = Question { id: name.clone(), tool: Some(tool), text: words };
        acts.push(Act::Tell(Event::Asked(question)));
        if let Some(decision) = decided {
            acts.extend(self.decide(&name, &decision));
        }
        acts
    }

    fn prompted(&mut self, result: &Value) -> Vec<Act> {
        let reason = text(result, "stopReason").unwrap_or("no reason").to_owned();
        if self.stage == Stage::Replaying {
            // The end of the history did not show; the last message is ours all the same.
            self.stage = Stage::Live;
        }
        let mut acts = self.finish_message();
        self.spending.prompt_is(result, &self.agent);
        let is_floor = reason == "cancelled" || !self.sent.is_empty();
        acts.extend(self.spending.told(is_floor).map(|spent| Act::Tell(Event::Spent(spent))));
        // A message that was given to the turn has an answer of its own.
        if self.sent.is_empty() {
            let end = self.end_of(&reason);
            acts.extend(self.over(end));
        }
        self.stop = Some(reason);
        acts
    }

    fn end_of(&self, reason: &str) -> End {
        match reason {
            "end_turn" if self.is_denied => failed(
                TroubleKind::Cancelled,
                "the agent ended its turn because a question was answered with no",
            ),
            "end_turn" if self.agent.is_idle(&self.spending) => {
                failed(TroubleKind::Other, "the agent says that it is done, and asked no model")
            }
            "end_turn" => End::Completed { text: self.talk.last().to_owned() },
            "cancelled" => failed(TroubleKind::Cancelled, "the turn was cancelled"),
            "max_tokens" | "max_turn_requests" => failed(TroubleKind::OwnCap, reason),
            "refusal" => failed(TroubleKind::Refusal, reason),
            reason => {
                failed(TroubleKind::Other, format!("the turn ended with {}", brief(reason, 200)))
            }
        }
    }

    /// A message that the running turn does not take is a prompt of its own, and the turn goes on with it.
    fn steered(&mut self, words: &str, result: &Value) -> Vec<Act> {
        if text(result, "outcome") != Some("injected") && !self.is_cancelled {
            return vec![self.prompt(words)];
        }
        match self.stop.take() {
            Some(reason) if self.sent.is_empty() => {
                let end = self.end_of(&reason);
                self.over(end)
            }
            _ => Vec::new(),
        }
    }

    fn failed(&mut self, sent: &Sent, error: &Value) -> Vec<Act> {
        let mut trouble = errors::trouble(error);
        trouble.kind = match (trouble.kind, sent) {
            (TroubleKind::Other, Sent::Open) if self.turn.session.is_some() => {
                TroubleKind::CannotResume
            }
            (TroubleKind::Other, Sent::Set(setting)) => setting.trouble(),
            (TroubleKind::Other, Sent::Prompt) if self.is_cancelled => TroubleKind::Cancelled,
            (kind, _) => kind,
        };
        // Some say the error before they answer with it.
        if self.talk.is_in(&trouble.text) {
            self.talk.drop();
        }
        let mut acts = self.finish_message();
        acts.extend(self.over(End::Failed { trouble }));
        acts
    }

    fn over(&mut self, end: End) -> Vec<Act> {
        self.stage = Stage::Over;
        vec![Act::CloseInput, Act::Tell(Event::Ended(end))]
    }
}

fn said(message: Option<String>) -> Vec<Act> {
    message.map(|text| Act::Tell(Event::Said { text })).into_iter().collect()
}

fn failed(kind: TroubleKind, words: impl Into<String>) -> End {
    End::Failed { trouble: Trouble::new(kind, words) }
}

fn answer(request: &Value, option: Option<&String>) -> Act {
    let outcome = match option {
        Some(option) => json!({ "outcome": "selected", "optionId": option }),
        None => json!({ "outcome": "cancelled" }),
    };
    let result = json!({ "outcome": outcome });
    Act::Send(line(&json!({ "jsonrpc": "2.0", "id": request, "result": result })))
}

impl Adapter for Acp {
    fn launch(&self) -> Launch {
        self.launch.clone()
    }

    fn begin(&mut self) -> Vec<Act> {
        if self.launch.argv.is_empty() {
            return self.over(failed(TroubleKind::Other, NO_COMMAND));
        }
        let params = json!({
            "protocolVersion": PROTOCOL,
            "clientInfo": { "name": "outlast", "version": env!("CARGO_PKG_VERSION") },
            "clientCapabilities":
                { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
        });
        vec![self.request("initialize", &params, Sent::Initialize)]
    }

    fn hear(&mut self, heard: Heard<'_>) -> Vec<Act> {
        match heard {
            _ if self.stage == Stage::Over => Vec::new(),
            Heard::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Vec::new(),
            Heard::Line(bytes) => self.line(bytes),
            Heard::End => {
                let mut acts = self.finish_message();
                self.stage = Stage::Over;
                acts.push(Act::Tell(Event::Ended(End::Interrupted)));
                acts
            }
            Heard::Answer { .. } | Heard::Pushed(_) => Vec::new(),
        }
    }

    fn steer(&mut self, words: &str) -> Option<Vec<Act>> {
        if matches!(self.stage, Stage::Opening | Stage::Over) || self.is_cancelled {
            return None;
        }
        match self.agent.steering() {
            Steering::No => None,
            Steering::Prompt => Some(vec![self.prompt(words)]),
            Steering::Extension => {
                let params = self.prompt_of(words);
                let sent = Sent::Steer(words.to_owned());
                Some(vec![self.request("_session/steering", &params, sent)])
            }
        }
    }

    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        let Some(asked) = self.asked.remove(question) else { return Vec::new() };
        let told = |decision| Act::Tell(Event::Decided { id: question.to_owned(), decision });
        if *decision == Decision::Allow
            && let Some(option) = &asked.allow
        {
            return vec![answer(&asked.request, Some(option)), told(Decision::Allow)];
        }
        let decision = match decision {
            // An option that allows it for ever is more than was decided.
            Decision::Allow => {
                Decision::Deny { why: "the agent offers no way to allow it once".to_owned() }
            }
            decision @ (Decision::Deny { .. } | Decision::Text { .. }) => decision.clone(),
        };
        self.is_denied = true;
        let mut acts = vec![answer(&asked.request, asked.reject.as_ref()), told(decision)];
        acts.extend(asked.call.and_then(|call| self.tools.ended(&call, true)));
        acts
    }

    fn cancel(&mut self) -> Vec<Act> {
        if matches!(self.stage, Stage::Opening | Stage::Over) || self.is_cancelled {
            return Vec::new();
        }
        self.is_cancelled = true;
        let notice = json!({ "jsonrpc": "2.0", "method": "session/cancel",
            "params": { "sessionId": self.session } });
        let mut acts = vec![Act::Send(line(&notice))];
        // By the protocol, each question that is open then has this answer.
        let open = std::mem::take(&mut self.asked);
        acts.extend(open.values().map(|asked| answer(&asked.request, None)));
        acts
    }
}
