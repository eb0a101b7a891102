//! opencode, by `opencode serve`: HTTP calls on loopback, and its events as server-sent events.
//!
//! One server a turn. A server for many turns would save some seconds each, and all of them would end with it. Only the
//! server has what a run needs: questions that wait, steering, and a limit with its end. `opencode run` is silent until
//! the reset.
//!
//! The turn is over once the session is idle and no session of a sub-agent is at work. Idle alone is no success: a
//! refused tool without a reason, an abort and an error all end idle. The last step's `stop` says that the agent is done.
//!
//! Spend: each finished step has its own tokens and cost, sub-agents' too; cached tokens are not in its input, reasoning
//! is not in its output. The sum is a floor until the turn is complete. A cost of 0 may also be a price that it does not
//! know. A session without a title costs a call that no step shows, so each session gets one.
//!
//! By default opencode asks almost nothing, and a repository can bring it plugins, servers and rules. So everything but
//! reading asks, and unless all is allowed the repository's own configuration, language servers and formatters are off.

mod config;
mod events;
mod trouble;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::event::{End, Event, Spent, Trouble, TroubleKind};
use super::json::{brief, object, text};
use super::{
    Act, Adapter, ApprovalMode, Capabilities, Cost, Decision, Driven, Forks, Heard, Launch,
    Transport, Turn,
};

pub(super) const DRIVEN: Driven = Driven {
    name: "opencode",
    capabilities: Capabilities {
        resume: true,
        cost: Cost::Reported,
        reset_time: true,
        steer: true,
        cancel: true,
        approvals: true,
        mcp: true,
        structured_end: false,
    },
    tested: &["1.18.33"],
    env: &[
        "OPENCODE_*",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "ANTHROPIC_*",
        "OPENAI_*",
        "OPENROUTER_*",
        "GOOGLE_*",
        "GEMINI_*",
        "AWS_*",
        "AZURE_*",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "NODE_EXTRA_CA_CERTS",
    ],
    needs_command: false,
    resumes_next_minute: false,
    forks: Forks::No,
    login: "opencode auth login",
    make: |turn| Box::new(Opencode::new(turn)),
};

const USER: &str = "opencode";
const LISTENING: &str = "listening on ";
const LOOPBACK: &str = "http://127.0.0.1:";
const MOST_ABOUT: usize = 200;
const MOST_TITLE: usize = 60;
const MOST_TEXT: usize = 2000;

struct Opencode {
    turn: Turn,
    stage: Stage,
    session: Option<String>,
    /// What each call was for; its number is its place.
    calls: Vec<Call>,
    /// The messages of this turn. A part of any other message is of an earlier turn.
    messages: BTreeMap<String, Author>,
    /// Text parts that were told.
    told: BTreeSet<String>,
    /// Uses of tools, by the id of their part.
    tools: BTreeMap<String, Tool>,
    asked: BTreeMap<String, Asked>,
    /// What each finished step has used up, by the id of its part.
    steps: BTreeMap<String, Spent>,
    last: LastStep,
    /// What the session has failed with, unless a later step begins.
    failure: Option<Trouble>,
    /// Why the turn was aborted by us.
    stopping: Option<Trouble>,
    /// Sessions of sub-agents that are at work.
    children: BTreeSet<String>,
    background: u32,
    model: Option<String>,
    not_understood: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its address is not known yet.
    Starting,
    /// The stream of events has not begun yet.
    Listening,
    /// The session was asked for.
    Opening,
    /// The prompt was sent.
    Prompted,
    Busy,
    /// The session is idle, and a sub-agent is at work.
    Idle,
    Over,
}

#[derive(Clone, Copy)]
enum Call {
    Session,
    Prompt,
    Steer(u64),
    Reply,
    Abort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    User,
    Agent,
    /// A sub-agent, or the agent as it sums up its own conversation.
    Aside,
}

struct Tool {
    call: String,
    /// Its name and what it is used on.
    label: String,
    is_ended: bool,
}

enum Asked {
    Permission,
    /// With this many questions, each of which wants an answer.
    Questions(usize),
}

/// The agent's last step: what it said in it, and why it ended.
#[derive(Default)]
struct LastStep {
    said: Vec<String>,
    finish: Option<String>,
}

impl Opencode {
    /// What the server is configured with, for this process.
    fn config(&self, is_trusted: bool) -> Value {
        let mut config = config::config(&self.turn.dir, is_trusted);
        if let Some(server) = &self.turn.mcp {
            server.lay_over(&mut config);
        }
        config
    }

    fn new(turn: Turn) -> Self {
        Self {
            turn,
            stage: Stage::Starting,
            session: None,
            calls: Vec::new(),
            messages: BTreeMap::new(),
            told: BTreeSet::new(),
            tools: BTreeMap::new(),
            asked: BTreeMap::new(),
            steps: BTreeMap::new(),
            last: LastStep::default(),
            failure: None,
            stopping: None,
            children: BTreeSet::new(),
            background: 0,
            model: None,
            not_understood: 0,
        }
    }

    fn not_understood(&mut self) -> Vec<Act> {
        self.not_understood += 1;
        vec![Act::Tell(Event::NotUnderstood { lines: self.not_understood })]
    }

    fn call(&mut self, of: Call, method: &'static str, path: String, body: Option<&Value>) -> Act {
        let call = self.calls.len() as u64;
        self.calls.push(of);
        Act::Call { call, method, path, body: body.map(Value::to_string) }
    }

    /// The password goes to this address, so no other than loopback is believed.
    fn line(&mut self, line: &[u8]) -> Vec<Act> {
        let words = String::from_utf8_lossy(line);
        let address = words.split_once(LISTENING).map(|(_, address)| address.trim());
        let port = address.and_then(|it| it.strip_prefix(LOOPBACK)?.parse::<u16>().ok());
        match port.filter(|_| self.stage == Stage::Starting) {
            Some(port) => {
                self.stage = Stage::Listening;
                let address = format!("{LOOPBACK}{port}");
                let listen = Act::Listen { path: "/event".to_owned() };
                vec![Act::Connect { address, user: USER }, listen]
            }
            None => self.not_understood(),
        }
    }

    /// Goes on with the session, or begins one: no event of it comes before the stream has begun.
    fn open(&mut self) -> Vec<Act> {
        self.stage = Stage::Opening;
        match self.turn.session.clone() {
            Some(id) if !is_plain(&id) => {
                let words = format!("{} is no session of opencode", brief(&id, MOST_ABOUT));
                self.failed(Trouble::new(TroubleKind::CannotResume, words))
            }
            Some(id) => vec![self.call(Call::Session, "GET", format!("/session/{id}"), None)],
            None => {
                let first = self.turn.prompt.trim().lines().next().unwrap_or("Outlast");
                let body = json!({ "title": brief(first, MOST_TITLE) });
                vec![self.call(Call::Session, "POST", "/session".to_owned(), Some(&body))]
            }
        }
    }

    fn answer(&mut self, call: u64, status: u16, body: &[u8]) -> Vec<Act> {
        let of = usize::try_from(call).ok().and_then(|place| self.calls.get(place).copied());
        let is_ok = (200..300).contains(&status);
        match (of, is_ok) {
            (Some(Call::Session), true) => self.opened(body),
            (Some(Call::Session), false) => {
                self.failed(trouble::of_answer(status, body, self.turn.session.is_some()))
            }
            (Some(Call::Prompt), false) => self.failed(trouble::of_answer(status, body, false)),
            // The abort was to bring idle. Without it, nothing more is to be waited for.
            (Some(Call::Abort), false) => self.over(),
            (Some(Call::Steer(_) | Call::Reply), false) | (None, _) => self.not_understood(),
            (Some(Call::Steer(message)), true) => vec![Act::Tell(Event::Took { message })],
            (Some(Call::Prompt | Call::Reply | Call::Abort), true) => Vec::new(),
        }
    }

    fn opened(&mut self, body: &[u8]) -> Vec<Act> {
        let session = object(body);
        let Some(id) = session.as_ref().and_then(|it| text(it, "id")).filter(|id| is_plain(id))
        else {
            return self.failed(Trouble::new(TroubleKind::Other, "its session has no id"));
        };
        self.session = Some(id.to_owned());
        self.stage = Stage::Prompted;
        let prompt = self.prompt(Call::Prompt, &self.turn.prompt.clone());
        let told = Act::Tell(Event::Session { id: id.to_owned() });
        std::iter::once(told).chain(prompt).collect()
    }

    fn prompt(&mut self, of: Call, words: &str) -> Option<Act> {
        let path = format!("/session/{}/prompt_async", self.session.as_ref()?);
        let mut body = json!({ "parts": [{ "type": "text", "text": words }] });
        if let Some(model) = &self.turn.model {
            let (provider, model) = model.split_once('/').unwrap_or((model, ""));
            body["model"] = json!({ "providerID": provider, "modelID": model });
        }
        if let Some(effort) = &self.turn.effort {
            body["variant"] = json!(effort);
        }
        if let Some(agent) = &self.turn.permission_mode {
            body["agent"] = json!(agent);
        }
        Some(self.call(of, "POST", path, Some(&body)))
    }

    fn abort(&mut self, why: Trouble) -> Option<Act> {
        let path = format!("/session/{}/abort", self.session.as_ref()?);
        self.stopping = Some(why);
        Some(self.call(Call::Abort, "POST", path, None))
    }

    fn spent(&self) -> Spent {
        self.steps.values().fold(Spent::default(), |sum, step| sum.and(step))
    }

    fn failed(&mut self, trouble: Trouble) -> Vec<Act> {
        self.failure = Some(trouble);
        self.over()
    }

    fn over(&mut self) -> Vec<Act> {
        let end = match (self.stopping.take().or(self.failure.take()), self.last.finish.as_deref())
        {
            (Some(trouble), _) => End::Failed { trouble },
            (None, Some("stop")) => End::Completed { text: self.last.said.join("\n\n") },
            (None, finish) => End::Failed { trouble: trouble::of_finish(finish) },
        };
        let mut acts = Vec::new();
        if matches!(end, End::Completed { .. }) {
            acts.push(Act::Tell(Event::Spent(Spent { is_floor: false, ..self.spent() })));
        }
        self.stage = Stage::Over;
        acts.push(Act::Tell(Event::Ended(end)));
        acts
    }
}

impl Adapter for Opencode {
    fn launch(&self) -> Launch {
        let mut argv = match self.turn.command.as_slice() {
            [] => vec!["opencode".to_owned()],
            command => command.to_vec(),
        };
        argv.extend(["serve", "--port", "0", "--hostname", "127.0.0.1"].map(str::to_owned));
        argv.extend(self.turn.args.iter().cloned());
        let is_trusted = self.turn.approvals.mode == ApprovalMode::Allow;
        let mut env = vec![
            ("OPENCODE_SERVER_USERNAME", USER.to_owned()),
            ("OPENCODE_SERVER_PASSWORD", self.turn.secret.clone()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_CONFIG_CONTENT", self.config(is_trusted).to_string()),
        ];
        if !is_trusted {
            env.push(("OPENCODE_DISABLE_PROJECT_CONFIG", "1".to_owned()));
        }
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Launch { argv, env, transport: Transport::Http, ..Launch::default() }
    }

    fn begin(&mut self) -> Vec<Act> {
        Vec::new()
    }

    fn hear(&mut self, heard: Heard<'_>) -> Vec<Act> {
        match heard {
            _ if self.stage == Stage::Over => Vec::new(),
            Heard::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Vec::new(),
            Heard::Line(bytes) => self.line(bytes),
            Heard::Answer { call, status, body } => self.answer(call, status, body),
            Heard::Pushed(data) => self.pushed(data),
            Heard::End => {
                self.stage = Stage::Over;
                vec![Act::Tell(Event::Ended(End::Interrupted))]
            }
        }
    }

    /// A message that comes just as the turn ends stays in the conversation, and the next turn sees it.
    fn steer(&mut self, message: u64, text: &str) -> Option<Vec<Act>> {
        let is_open = matches!(self.stage, Stage::Prompted | Stage::Busy);
        if !is_open || self.stopping.is_some() {
            return None;
        }
        self.prompt(Call::Steer(message), text).map(|act| vec![act])
    }

    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        let Some(asked) = self.asked.remove(question) else { return Vec::new() };
        let (path, body) = match asked {
            Asked::Permission => {
                (format!("/permission/{question}/reply"), config::permitted(decision))
            }
            Asked::Questions(count) => {
                let answers = vec![json!([config::answered(decision)]); count];
                (format!("/question/{question}/reply"), json!({ "answers": answers }))
            }
        };
        let told = Event::Decided { id: question.to_owned(), decision: decision.clone() };
        vec![self.call(Call::Reply, "POST", path, Some(&body)), Act::Tell(told)]
    }

    fn cancel(&mut self) -> Vec<Act> {
        let why = Trouble::new(TroubleKind::Cancelled, "cancelled");
        match self.stage {
            Stage::Over => Vec::new(),
            // Nothing was begun that could be aborted.
            Stage::Starting | Stage::Listening | Stage::Opening => self.failed(why),
            Stage::Prompted | Stage::Busy | Stage::Idle if self.stopping.is_some() => Vec::new(),
            Stage::Prompted | Stage::Busy | Stage::Idle => self.abort(why).into_iter().collect(),
        }
    }
}

/// An id that is a part of a path as it is.
fn is_plain(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it))
}
