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
mod codex_thread;
mod errors;
mod questions;
mod settings;
mod spend;
mod talk;
mod tools;
mod updates;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::event::{End, Event, Trouble, TroubleKind};
use super::json::{at, brief, line, object, text, whole, yes};
use super::{
    Act, Adapter, Capabilities, Cost, Decision, Driven, Forks, Heard, Launch, Transport, Turn,
};
use agent::{Agent, Steering};
use codex_thread::CodexThread;
use questions::Asked;
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
    needs_command: true,
    resumes_next_minute: false,
    forks: Forks::No,
    login: "the login of the agent behind the command",
    make: |turn| {
        let launch = launch(&turn);
        Box::new(Acp::new(turn, launch))
    },
};

/// The version of the protocol that we speak.
const PROTOCOL: u64 = 1;

const NO_COMMAND: &str = "an agent of kind `acp` needs a command";
const CANCELLED: &str = "the turn was cancelled";
/// Codex and opencode end a turn at a refusal, and opencode says that it ended well.
const ENDS_AT_NO: &str = "the agent ended its turn because a question was answered with no";

/// Without a command there is nothing to start.
fn launch(turn: &Turn) -> Launch {
    let mut argv = turn.command.clone();
    if !argv.is_empty() {
        argv.extend(turn.args.iter().cloned());
    }
    let names = |program: &str| turn.command.iter().any(|word| word.contains(program));
    if names("gemini") {
        argv.extend(gemini_resumes(turn));
    }
    let mut env = Vec::new();
    if names("opencode") {
        env.push(agent::opencode_asks());
    }
    if names("claude-agent-acp") || names("claude-code-acp") {
        env.push(agent::claude_suggests_nothing());
    }
    Launch { argv, env, transport: Transport::Lines, ..Launch::default() }
}

/// What keeps Gemini from deleting the session that it is about to load.
pub(super) fn gemini_resumes(turn: &Turn) -> Vec<String> {
    turn.session.iter().flat_map(|id| ["--resume".to_owned(), id.clone()]).collect()
}

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
    codex_thread: CodexThread,
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
    Steer(u64, String),
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
            codex_thread: CodexThread::default(),
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
        let error = at(message, "error").filter(|it| !it.is_null());
        let result = at(message, "result");
        let sent = id
            .as_u64()
            .filter(|_| result.is_some() || error.is_some())
            .and_then(|id| self.sent.remove(&id));
        let result = result.unwrap_or(&Value::Null);
        match (sent, error) {
            (Some(_), _) if self.is_cancelled && self.stage == Stage::Opening => Vec::new(),
            (None, _) => self.not_understood(),
            (Some(Sent::Steer(message, words)), _) => self.steered(message, &words, result),
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
        let mut params = self.agent.serving(self.turn.mcp.as_ref());
        params["cwd"] = json!(self.turn.dir);
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
        acts.extend(self.tell_model(model));
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

    fn tell_model(&mut self, name: Option<String>) -> Option<Act> {
        let name = name.filter(|name| self.model.as_ref() != Some(name))?;
        self.model = Some(name.clone());
        Some(Act::Tell(Event::Model { name }))
    }

    fn prompted(&mut self, result: &Value) -> Vec<Act> {
        let reason = text(result, "stopReason").unwrap_or("no reason").to_owned();
        if self.stage == Stage::Replaying {
            // The end of the history did not show; the last message is ours even so.
            self.stage = Stage::Live;
        }
        if self.codex_thread.trouble().is_some() {
            // What was said last is the error.
            self.talk.drop();
        }
        let mut acts = self.finish_message();
        self.spending.add_prompt(result, &self.agent);
        if self.sent.is_empty() {
            acts.extend(self.ends(&reason));
        } else {
            // A message that was given to the turn has an answer of its own.
            acts.extend(self.spending.told(true).map(|spent| Act::Tell(Event::Spent(spent))));
            self.stop = Some(reason);
        }
        acts
    }

    fn end_of(&self, reason: &str) -> End {
        if let Some(trouble) = self.codex_thread.trouble().filter(|_| reason == "end_turn") {
            return End::Failed { trouble };
        }
        match reason {
            "end_turn" | "cancelled" if self.is_denied && !self.is_cancelled => {
                failed(TroubleKind::Cancelled, ENDS_AT_NO)
            }
            "end_turn" if self.agent.is_idle(self.spending.has_used()) => {
                failed(TroubleKind::Other, "the agent says that it is done, and asked no model")
            }
            "end_turn" => End::Completed { text: self.talk.last().to_owned() },
            "cancelled" => failed(TroubleKind::Cancelled, CANCELLED),
            "max_tokens" | "max_turn_requests" => failed(TroubleKind::OwnCap, reason),
            "refusal" => failed(TroubleKind::Refusal, reason),
            reason => {
                failed(TroubleKind::Other, format!("the turn ended with {}", brief(reason, 200)))
            }
        }
    }

    /// A message that the running turn does not take is a prompt of its own, and the turn goes on with it.
    fn steered(&mut self, message: u64, words: &str, result: &Value) -> Vec<Act> {
        let is_injected = text(result, "outcome") == Some("injected");
        if !is_injected && !self.is_cancelled {
            return vec![self.prompt(words), Act::Tell(Event::Took { message })];
        }
        let took = is_injected.then_some(Act::Tell(Event::Took { message }));
        let ends = match self.stop.take() {
            Some(reason) if self.sent.is_empty() => self.ends(&reason),
            _ => Vec::new(),
        };
        took.into_iter().chain(ends).collect()
    }

    /// Every prompt of the turn is answered: what it has used up is all there is.
    fn ends(&mut self, reason: &str) -> Vec<Act> {
        let spent = self.spending.told(reason == "cancelled");
        let mut acts: Vec<Act> =
            spent.map(|spent| Act::Tell(Event::Spent(spent))).into_iter().collect();
        let end = self.end_of(reason);
        acts.extend(self.over(end));
        acts
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

fn failed(kind: TroubleKind, words: impl Into<String>) -> End {
    End::Failed { trouble: Trouble::new(kind, words) }
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

    /// Gemini says on standard error that it does not know the session that it was started with, and exits.
    fn hear_stderr(&mut self, line: &[u8]) -> Vec<Act> {
        if self.stage == Stage::Opening && line.starts_with(b"Error resuming session") {
            let words = String::from_utf8_lossy(line).into_owned();
            return self.over(failed(TroubleKind::CannotResume, words));
        }
        Vec::new()
    }

    fn steer(&mut self, message: u64, words: &str) -> Option<Vec<Act>> {
        if matches!(self.stage, Stage::Opening | Stage::Over) || self.is_cancelled {
            return None;
        }
        match self.agent.steering() {
            Steering::No => None,
            Steering::Prompt => Some(vec![self.prompt(words), Act::Tell(Event::Took { message })]),
            Steering::Extension => {
                let params = self.prompt_of(words);
                let sent = Sent::Steer(message, words.to_owned());
                Some(vec![self.request("_session/steering", &params, sent)])
            }
        }
    }

    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        self.decided(question, decision)
    }

    fn cancel(&mut self) -> Vec<Act> {
        if self.stage == Stage::Over || std::mem::replace(&mut self.is_cancelled, true) {
            return Vec::new();
        }
        // Nothing is to be cancelled yet, and nothing more is asked of it.
        if self.stage == Stage::Opening {
            return vec![Act::CloseInput];
        }
        let notice = json!({ "jsonrpc": "2.0", "method": "session/cancel",
            "params": { "sessionId": self.session } });
        let mut acts = vec![Act::Send(line(&notice))];
        // By the protocol, each question that is open then has this answer.
        let open = std::mem::take(&mut self.asked);
        if !self.agent.takes_questions_back() {
            acts.extend(open.values().map(|asked| asked.answered(None)));
        }
        acts
    }
}
