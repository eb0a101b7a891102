//! pi, by `pi --mode rpc`: commands on its standard input, responses and events on its standard output.
//!
//! One process a turn: it saves half a second to keep one, and all turns of a process share its fate. The events are those
//! of `--mode json`, and both are recorded. The turn is over at `agent_settled`, after all retries; whether it went well is
//! in the `stopReason` of the last `turn_end` and nowhere else: the exit code is 0 on a 401, a spent quota and a 500.
//!
//! Spend: each assistant message has its own `usage`, and later events repeat it, so it is counted at `message_end` alone.
//! A call that was cut off says 0, which makes the sum a floor.
//!
//! The conversation's file is written with the first answer. Before that its id names nothing, so it is told only then.
//! That there is no such conversation is said on standard error alone.
//!
//! pi asks for no approval. Unless all is allowed it therefore gets only the tools that read, and those that the policy
//! names: the others do not exist for the model. What an extension of the user asks in a dialog comes to us as a question.
//! The tools of the run come as an extension that is loaded for one process, since pi has no MCP.
//! pi ignores extensions and settings of a workspace that the user has not trusted, and this adapter leaves that as it is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use self::dialog::Dialog;
use self::trouble::{end_of, failed, refusal, retries, status};
use super::event::{End, Event, Question, Spent, Trouble, TroubleKind};
use super::json::{at, brief, line, list, micros, object, text, whole, yes};
use super::{
    Act, Adapter, ApprovalMode, Approvals, Capabilities, Cost, Decision, Driven, Forks, Heard,
    Launch, McpServer, Transport, Turn,
};

mod dialog;
#[cfg(test)]
mod tests;
mod trouble;

pub(super) const DRIVEN: Driven = Driven {
    name: "pi",
    capabilities: Capabilities {
        resume: true,
        cost: Cost::Reported,
        reset_time: true,
        steer: true,
        cancel: true,
        approvals: false,
        mcp: false,
        structured_end: false,
    },
    tested: &["0.87.1"],
    env: &[
        "PI_*",
        "ANTHROPIC_*",
        "OPENAI_*",
        "AZURE_OPENAI_*",
        "GEMINI_API_KEY",
        "GOOGLE_*",
        "AWS_*",
        "GROQ_API_KEY",
        "XAI_API_KEY",
        "MISTRAL_API_KEY",
        "DEEPSEEK_API_KEY",
        "OPENROUTER_API_KEY",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "NODE_EXTRA_CA_CERTS",
    ],
    needs_command: false,
    resumes_next_minute: false,
    forks: Forks::No,
    login: "pi, then /login",
    make: |turn| Box::new(Pi::new(turn)),
};

const TOOLS_THAT_READ: [&str; 4] = ["read", "grep", "find", "ls"];
const TOOLS_THAT_ACT: [&str; 4] = ["bash", "powershell", "edit", "write"];

/// A yes-or-no dialog of an extension, as a policy names it.
const CONFIRM: &str = "confirm";

/// In the attempt's directory. Of another kind of file pi would leave a compiled copy behind, for each attempt one.
const EXTENSION_FILE: &str = "pi-tools.mjs";

const NO_SUCH_SESSION: &str = "No session found matching";

const MOST_ABOUT: usize = 200;

/// The id of a message into the turn begins with it.
const STEER: &str = "steer-";

struct Pi {
    turn: Turn,
    /// The conversation's id, and whether a later process could go on with it.
    session: Option<String>,
    is_session_told: bool,
    model: Option<String>,
    window: Option<u64>,
    /// What is counted for good.
    counted: Spent,
    /// What the message that is being written has used up so far.
    open: Option<Spent>,
    /// The message of the last turn's end: the verdict on all of it.
    verdict: Option<Value>,
    /// What extensions have asked, by the id of the request.
    asked: BTreeMap<String, Dialog>,
    state: State,
    is_cut_off: bool,
    not_understood: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Prompted,
    Running,
    Over,
}

impl Pi {
    fn new(turn: Turn) -> Self {
        Self {
            turn,
            session: None,
            is_session_told: false,
            model: None,
            window: None,
            counted: Spent::default(),
            open: None,
            verdict: None,
            asked: BTreeMap::new(),
            state: State::Starting,
            is_cut_off: false,
            not_understood: 0,
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Vec<Act> {
        let Some(message) = object(bytes) else { return self.not_understood() };
        match text(&message, "type") {
            Some("response") => self.response(&message),
            // The first line of `--mode json`.
            Some("session") => self.session(text(&message, "id")),
            Some("agent_start") => {
                self.state = State::Running;
                Vec::new()
            }
            Some("message_update") => {
                self.open = at(&message, "usage").map(used);
                Vec::new()
            }
            Some("message_end") => self.said(&message),
            Some("tool_execution_start") => tool_started(&message).into_iter().collect(),
            Some("tool_execution_end") => tool_ended(&message).into_iter().collect(),
            Some("turn_end") => {
                self.verdict = at(&message, "message").cloned();
                Vec::new()
            }
            Some("compaction_end") => self.count(at(&message, "result.usage")),
            Some("auto_retry_start") => vec![Act::Tell(retries(&message))],
            Some("extension_ui_request") => self.dialog(&message),
            Some("agent_settled") => self.settled(),
            // Known, and nothing that we need.
            Some(
                "agent_end"
                | "turn_start"
                | "message_start"
                | "tool_execution_update"
                | "queue_update"
                | "compaction_start"
                | "auto_retry_end"
                | "entry_appended"
                | "extension_error"
                | "session_info_changed"
                | "thinking_level_changed"
                | "summarization_retry_scheduled"
                | "summarization_retry_attempt_start"
                | "summarization_retry_finished",
            ) => Vec::new(),
            _ => self.not_understood(),
        }
    }

    fn not_understood(&mut self) -> Vec<Act> {
        self.not_understood += 1;
        vec![Act::Tell(Event::NotUnderstood { lines: self.not_understood })]
    }

    fn response(&mut self, message: &Value) -> Vec<Act> {
        match (text(message, "command"), yes(message, "success")) {
            (Some("get_state"), _) => self.state(message),
            (Some("steer"), true) => {
                let id = text(message, "id").and_then(|id| id.strip_prefix(STEER)?.parse().ok());
                id.map(|message| Act::Tell(Event::Took { message })).into_iter().collect()
            }
            // A command that it could not parse is the prompt, or a message into the turn.
            (Some("prompt" | "parse"), false) => {
                let trouble = refusal(text(message, "error").unwrap_or_default());
                self.over(End::Failed { trouble })
            }
            _ => Vec::new(),
        }
    }

    /// The prompt waits for it: a process that has opened another conversation gets none.
    fn state(&mut self, message: &Value) -> Vec<Act> {
        let id = text(message, "data.sessionId");
        if let (Some(wanted), Some(id)) = (self.turn.session.as_deref(), id)
            && !id.starts_with(wanted)
            && text(message, "data.sessionFile") != Some(wanted)
        {
            let words = format!("pi has opened session {id} and not {wanted}");
            let trouble = Trouble::new(TroubleKind::CannotResume, words);
            return self.over(End::Failed { trouble });
        }
        self.window = whole(message, "data.model.contextWindow");
        let mut acts = self.session(id);
        acts.extend(self.model(text(message, "data.model.id")));
        if self.state == State::Starting {
            self.state = State::Prompted;
            let prompt = json!({ "id": "prompt", "type": "prompt", "message": self.turn.prompt });
            acts.push(Act::Send(line(&prompt)));
        }
        acts
    }

    /// A conversation that is gone on with has a file. A new one has it with the first answer.
    fn session(&mut self, id: Option<&str>) -> Vec<Act> {
        self.session = id.map(str::to_owned).or(self.session.take());
        if self.turn.session.is_some() { self.tell_session() } else { Vec::new() }
    }

    fn tell_session(&mut self) -> Vec<Act> {
        let Some(id) = self.session.clone().filter(|_| !self.is_session_told) else {
            return Vec::new();
        };
        self.is_session_told = true;
        vec![Act::Tell(Event::Session { id })]
    }

    fn model(&mut self, name: Option<&str>) -> Option<Act> {
        let name = name.filter(|name| self.model.as_deref() != Some(name))?.to_owned();
        self.model = Some(name.clone());
        Some(Act::Tell(Event::Model { name }))
    }

    fn said(&mut self, line: &Value) -> Vec<Act> {
        let Some(message) = at(line, "message") else { return self.not_understood() };
        match text(message, "role") {
            Some("assistant") => self.answered(message),
            // A tool that has asked a model itself.
            Some("toolResult") => self.count(at(message, "usage")),
            _ => Vec::new(),
        }
    }

    fn answered(&mut self, message: &Value) -> Vec<Act> {
        let mut acts = self.tell_session();
        acts.extend(self.model(text(message, "model")));
        let texts = texts(message).map(|text| Act::Tell(Event::Said { text: text.to_owned() }));
        acts.extend(texts);
        self.open = None;
        self.is_cut_off |= is_cut_off(message);
        let usage = at(message, "usage").filter(|usage| whole(usage, "totalTokens") != Some(0));
        acts.extend(self.count(usage));
        if let Some(usage) = usage {
            let used = sum(usage, &["input", "cacheRead", "cacheWrite"]);
            acts.push(Act::Tell(Event::Context { used, window: self.window }));
        }
        acts
    }

    fn count(&mut self, usage: Option<&Value>) -> Vec<Act> {
        let Some(usage) = usage else { return Vec::new() };
        self.counted = self.counted.and(&used(usage));
        vec![Act::Tell(Event::Spent(Spent { is_floor: true, ..self.counted }))]
    }

    fn dialog(&mut self, message: &Value) -> Vec<Act> {
        // The other methods show something, and wait for nothing.
        let Some((id, dialog)) = Dialog::of(message) else { return Vec::new() };
        let text = dialog.words(message);
        let decided =
            self.turn.approvals.decide(CONFIRM).filter(|decision| dialog.is_answered_by(decision));
        self.asked.insert(id.clone(), dialog);
        let mut acts = vec![Act::Tell(Event::Asked(Question { id: id.clone(), tool: None, text }))];
        if let Some(decision) = decided {
            acts.extend(self.decide(&id, &decision));
        }
        acts
    }

    fn settled(&mut self) -> Vec<Act> {
        let end = match self.verdict.as_ref() {
            Some(message) => end_of(message),
            None => failed(TroubleKind::Other, "it has settled without an answer"),
        };
        let mut acts = Vec::new();
        if self.is_cut_off || self.counted != Spent::default() {
            let spent = Spent { is_floor: self.is_cut_off, ..self.counted };
            acts.push(Act::Tell(Event::Spent(spent)));
        }
        acts.extend(self.over(end));
        acts
    }

    /// The tools of the run, as a file that this process loads beside the user's own extensions.
    fn extension(&self) -> Option<(String, String)> {
        let (server, dir) = (self.turn.mcp.as_ref()?, self.turn.own_dir.as_ref()?);
        Some((format!("{dir}/{EXTENSION_FILE}"), server.for_pi()))
    }

    /// With its input closed it exits by itself.
    fn over(&mut self, end: End) -> Vec<Act> {
        self.state = State::Over;
        vec![Act::CloseInput, Act::Tell(Event::Ended(end))]
    }

    fn interrupted(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        if let Some(open) = self.open.take().filter(|open| open.input_tokens != Some(0)) {
            let spent = Spent { is_floor: true, ..self.counted.and(&open) };
            acts.push(Act::Tell(Event::Spent(spent)));
        }
        self.state = State::Over;
        acts.push(Act::Tell(Event::Ended(End::Interrupted)));
        acts
    }
}

impl Adapter for Pi {
    fn launch(&self) -> Launch {
        let mut argv = match self.turn.command.as_slice() {
            [] => vec!["pi".to_owned()],
            command => command.to_vec(),
        };
        argv.extend(["--mode", "rpc"].map(str::to_owned));
        let mut flag = |name: &str, value: &Option<String>| {
            argv.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
        };
        flag("--session", &self.turn.session);
        flag("--model", &self.turn.model);
        flag("--thinking", &self.turn.effort);
        flag("--tools", &tools(&self.turn.approvals));
        let extension = self.extension();
        flag("--extension", &extension.as_ref().map(|(path, _)| path.clone()));
        // pi has no modes. It has flags: `approve` trusts the workspace, and an extension may bring `plan`.
        argv.extend(self.turn.permission_mode.iter().map(|mode| format!("--{mode}")));
        argv.extend(self.turn.args.iter().cloned());
        let env = vec![("PI_SKIP_VERSION_CHECK".to_owned(), "1".to_owned())];
        Launch { argv, env, transport: Transport::Lines, files: extension.into_iter().collect() }
    }

    fn begin(&mut self) -> Vec<Act> {
        vec![Act::Send(line(&json!({ "id": "state", "type": "get_state" })))]
    }

    fn hear(&mut self, heard: Heard<'_>) -> Vec<Act> {
        match heard {
            _ if self.state == State::Over => Vec::new(),
            Heard::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Vec::new(),
            Heard::Line(bytes) => self.line(bytes),
            Heard::End => self.interrupted(),
            Heard::Answer { .. } | Heard::Pushed(_) => Vec::new(),
        }
    }

    fn hear_stderr(&mut self, line: &[u8]) -> Vec<Act> {
        let words = String::from_utf8_lossy(line);
        let is_unknown = words.contains(NO_SUCH_SESSION) && self.turn.session.is_some();
        if !is_unknown || self.state != State::Starting {
            return Vec::new();
        }
        let trouble = Trouble::new(TroubleKind::CannotResume, brief(&words, 2000));
        self.over(End::Failed { trouble })
    }

    /// It is read after the tools that now run, in the same turn.
    fn steer(&mut self, message: u64, text: &str) -> Option<Vec<Act>> {
        let id = format!("{STEER}{message}");
        let steer = json!({ "id": id, "type": "steer", "message": text });
        (self.state == State::Running).then(|| vec![Act::Send(line(&steer))])
    }

    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        let Some(dialog) = self.asked.remove(question) else { return Vec::new() };
        let told = Event::Decided { id: question.to_owned(), decision: decision.clone() };
        vec![Act::Send(line(&dialog.answer(question, decision))), Act::Tell(told)]
    }

    fn cancel(&mut self) -> Vec<Act> {
        match self.state {
            State::Prompted | State::Running => {
                vec![Act::Send(line(&json!({ "id": "abort", "type": "abort" })))]
            }
            State::Starting | State::Over => Vec::new(),
        }
    }
}

/// The tools that there are for the model, unless it may use all.
fn tools(approvals: &Approvals) -> Option<String> {
    if approvals.mode == ApprovalMode::Allow || approvals.allow.iter().any(|it| it == "*") {
        return None;
    }
    let mut names: Vec<&str> = TOOLS_THAT_READ.to_vec();
    let is_allowed = |tool: &str| approvals.decide(tool) == Some(Decision::Allow);
    names.extend(TOOLS_THAT_ACT.into_iter().filter(|tool| is_allowed(tool)));
    // A tool of an extension is given by its whole name: there is no list of them to look in.
    let named = approvals.allow.iter().filter(|it| !it.ends_with('*'));
    // Ours may be named as they are for other agents.
    let named: Vec<String> =
        named.map(|it| McpServer::name_for_pi(it).unwrap_or_else(|| it.clone())).collect();
    for name in &named {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    Some(names.join(","))
}

fn sum(usage: &Value, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| whole(usage, name)).fold(0, u64::saturating_add)
}

fn used(usage: &Value) -> Spent {
    Spent {
        input_tokens: Some(sum(usage, &["input", "cacheWrite"])),
        output_tokens: whole(usage, "output"),
        cached_tokens: whole(usage, "cacheRead"),
        cost_usd_micros: micros(usage, "cost.total"),
        is_floor: false,
    }
}

fn texts(message: &Value) -> impl Iterator<Item = &str> {
    list(message, "content").iter().filter_map(|block| text(block, "text"))
}

/// Was it ended in the middle, so that its `usage` knows less than was used up?
fn is_cut_off(message: &Value) -> bool {
    match text(message, "stopReason") {
        Some("aborted") => true,
        Some("error") => status(text(message, "errorMessage").unwrap_or_default()).is_none(),
        _ => false,
    }
}

fn tool_started(message: &Value) -> Option<Act> {
    let (id, name) = (text(message, "toolCallId")?, text(message, "toolName")?);
    let about = at(message, "args").map(about).unwrap_or_default();
    Some(Act::Tell(Event::ToolStarted { id: id.to_owned(), name: name.to_owned(), about }))
}

fn tool_ended(message: &Value) -> Option<Act> {
    let id = text(message, "toolCallId")?.to_owned();
    Some(Act::Tell(Event::ToolEnded { id, is_error: yes(message, "isError") }))
}

/// What a tool is used on: the one word of its input that says most.
fn about(input: &Value) -> String {
    let words = ["command", "path", "pattern"].iter().find_map(|name| text(input, name));
    brief(&words.map_or_else(|| input.to_string(), str::to_owned), MOST_ABOUT)
}
