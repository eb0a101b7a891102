//! Agents that speak a protocol: bytes in, events and bytes out. One file per agent; nothing here opens a file, starts a
//! process or reads a clock.
//!
//! An adapter is made for one attempt at one turn. The driver (`crates/drive`) starts what [`Adapter::launch`]
//! names, brings it every line, and carries out what it answers. The driver knows no vendor; an adapter knows no process.
//!
//! Two rules hold for each. A turn is over only once the agent's own last event has come and no background work of the
//! agent lives: an end of its output before that is an interruption, whatever its exit code. And a line that is not
//! understood is counted and kept, never fatal.

mod acp;
mod claude;
mod codex;
mod declared;
mod event;
mod files;
mod gemini;
mod json;
mod mcp;
mod now;
mod opencode;
mod pi;

use std::path::PathBuf;

pub use outlast_engine::SessionMark;
use serde::{Deserialize, Serialize};

pub use declared::{Declared, Unusable};
pub use event::{End, Event, Question, Spent, Trouble, TroubleKind};
pub use files::{
    Afresh, Caps, Context, Ended, MOST_EVENTS, Orders, Session, Stamped, decided_questions,
    last_spent,
};
pub use mcp::McpServer;
pub use now::{Asked, Now, Retrying, Running, Taken};

/// What one attempt at one turn is asked, as the daemon wrote it down for the driver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    pub prompt: String,
    /// The agent's own name of the conversation to go on with; `None` begins one.
    pub session: Option<String>,
    /// The conversation is a copy of that one, which ends with this mark. That one stays as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fork: Option<SessionMark>,
    /// What earlier attempts in that session have cost, as far as it is known.
    pub session_cost_usd_micros: Option<u64>,
    /// The workspace.
    pub dir: String,
    /// The program, and arguments before ours. Empty is the agent's own name on `PATH`.
    pub command: Vec<String>,
    /// Arguments after ours, as the vendor has them.
    pub args: Vec<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub permission_mode: Option<String>,
    pub approvals: Approvals,
    /// Made by the driver for this attempt alone and written nowhere: the password of an agent that is a server.
    #[serde(skip)]
    pub secret: String,
    /// What the attempts before this one have told of the same conversation, together: the base of an agent that counts
    /// over all of it.
    pub spent_before: Option<Spent>,
    /// A file with the prompt, for a command that reads one.
    pub prompt_file: Option<String>,
    /// The MCP server of the run, for this process only. Made by the driver and written nowhere: it has the run's token.
    #[serde(skip)]
    pub mcp: Option<McpServer>,
    /// The attempt's own directory, for files that this process alone reads. Told by the driver, which knows where it is.
    #[serde(skip)]
    pub own_dir: Option<String>,
}

/// Who decides when the agent asks whether it may do something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Approvals {
    pub mode: ApprovalMode,
    /// Names of tools that may be used without a question; `*` at the end stands for anything.
    pub allow: Vec<String>,
    /// What a person has allowed after an earlier attempt had asked: questions, by their words.
    pub granted: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    /// A person decides.
    #[default]
    Park,
    /// Refused at once, and the agent goes on without it.
    Deny,
    /// Allowed at once.
    Allow,
}

impl Approvals {
    /// What is to be done about this question without a person; `None` if a person decides, as about each question of
    /// the model.
    pub fn decide_on(&mut self, question: &Question) -> Option<Decision> {
        let tool = question.tool.as_deref()?;
        if let Some(decision) = self.decide(tool) {
            return Some(decision);
        }
        // What was allowed is allowed once, and only what the person saw whole.
        let at = self.granted.iter().position(|it| question.is_whole() && *it == question.text)?;
        self.granted.remove(at);
        Some(Decision::Allow)
    }

    /// The same for any question of this tool.
    pub fn decide(&self, tool: &str) -> Option<Decision> {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => tool == pattern,
        };
        match self.mode {
            _ if self.allow.iter().any(fits) => Some(Decision::Allow),
            ApprovalMode::Allow => Some(Decision::Allow),
            ApprovalMode::Deny => Some(Decision::Deny { why: DENIED.to_owned() }),
            ApprovalMode::Park => None,
        }
    }
}

const DENIED: &str =
    "The policy of this run does not allow it. Go on without it, or say that you are blocked.";

/// What a person or a policy has decided about a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Deny {
        why: String,
    },
    /// The answer to a question of the model.
    Text {
        text: String,
    },
}

/// How the agent is started and spoken to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    pub argv: Vec<String>,
    /// Variables on top of the run's own.
    pub env: Vec<(String, String)>,
    pub transport: Transport,
    /// Files that have to be there before it starts, by their paths below [`Turn::own_dir`].
    pub files: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Transport {
    /// Lines on its standard input and output.
    #[default]
    Lines,
    /// It is a server on loopback that prints its address, and is called by HTTP.
    Http,
}

/// Something that has come from the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A line of its standard output, without the end of the line.
    Line(&'a [u8]),
    /// The answer to [`Act::Call`] of this number; status 0 is a call that failed.
    Answer { call: u64, status: u16, body: &'a [u8] },
    /// The data of one server-sent event.
    Pushed(&'a [u8]),
    /// Its standard output has ended.
    End,
}

/// Something that the driver is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Write these bytes to its standard input, the end of the line among them.
    Send(Vec<u8>),
    /// Close its standard input.
    CloseInput,
    /// Its HTTP server is at this address. Calls and listening go there, by basic authentication as this user with
    /// [`Turn::secret`]. Comes before either of them, once.
    Connect { address: String, user: &'static str },
    /// Call its HTTP server; a body is JSON.
    Call { call: u64, method: &'static str, path: String, body: Option<String> },
    /// Listen to server-sent events of this path.
    Listen { path: String },
    /// Write this down.
    Tell(Event),
}

/// One agent, for one attempt at one turn.
pub trait Adapter {
    fn launch(&self) -> Launch;

    /// What is said first, once the process runs.
    fn begin(&mut self) -> Vec<Act>;

    fn hear(&mut self, heard: Heard<'_>) -> Vec<Act>;

    /// A line of its standard error, where some agents alone say why they do not start. The driver brings all of them
    /// before [`Heard::End`].
    fn hear_stderr(&mut self, line: &[u8]) -> Vec<Act> {
        let _ = line;
        Vec::new()
    }

    /// Gives the running turn a message; `None` if this agent cannot take one now. Once the agent has it,
    /// [`Event::Took`] names its number.
    fn steer(&mut self, message: u64, text: &str) -> Option<Vec<Act>> {
        let _ = (message, text);
        None
    }

    /// Answers the question of this id.
    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act>;

    /// Ends the turn by the protocol. The tree is ended afterwards in any case.
    fn cancel(&mut self) -> Vec<Act> {
        Vec::new()
    }

    /// The agent's own name of the turn that was asked, for [`Forks::AtTurn`].
    fn turn_name(&self) -> Option<&str> {
        None
    }
}

/// What an agent can do, as far as its protocol goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// A later process goes on with an earlier conversation.
    pub resume: bool,
    pub cost: Cost,
    /// The provider's limits come with the time at which they end.
    pub reset_time: bool,
    pub steer: bool,
    pub cancel: bool,
    pub approvals: bool,
    pub mcp: bool,
    /// The answer can be made to fit a schema.
    pub structured_end: bool,
}

/// Where the price of a turn comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// The agent says it.
    Reported,
    /// Tokens only.
    Unknown,
}

/// How an agent goes on with a copy of a conversation that ends with an earlier turn.
#[derive(Debug, Clone, Copy)]
pub enum Forks {
    No,
    /// By its protocol, at a turn that it has a name for.
    AtTurn,
    /// Its conversations are files of lines that only grow: the first lines of one are a conversation too. The function
    /// takes the variables of the agent and the directory that it works in.
    Cut(fn(&Variable<'_>, &str) -> Option<Transcripts>),
}

/// A variable of the agent's environment, by its name.
pub type Variable<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Where an agent keeps its conversations: `ID.jsonl` in a directory for each directory that it works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcripts {
    pub root: PathBuf,
    /// The directory below `root` for the directory in question.
    pub here: PathBuf,
}

/// A kind that is driven: the row of one agent.
pub struct Driven {
    pub name: &'static str,
    pub capabilities: Capabilities,
    /// The versions that the recordings are of.
    pub tested: &'static [&'static str],
    /// Variables that the CLI needs and that a loop file need not name.
    pub env: &'static [&'static str],
    /// True for a kind whose program only the user knows.
    pub needs_command: bool,
    /// True for one whose conversation cannot be gone on with in the minute in which it began.
    pub resumes_next_minute: bool,
    pub forks: Forks,
    /// How a person logs in again.
    pub login: &'static str,
    make: fn(Turn) -> Box<dyn Adapter>,
}

/// The table of agents that are built in: a row is all that the kinds, the config and `outlast agents` know of one.
pub const DRIVEN: &[Driven] =
    &[claude::DRIVEN, codex::DRIVEN, gemini::DRIVEN, opencode::DRIVEN, pi::DRIVEN, acp::DRIVEN];

/// The names of these, in the same order.
pub const DRIVEN_NAMES: [&str; DRIVEN.len()] = {
    let mut names = [""; DRIVEN.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = DRIVEN[at].name;
        at += 1;
    }
    names
};

pub fn driven(name: &str) -> Option<&'static Driven> {
    DRIVEN.iter().find(|driven| driven.name == name)
}

impl Driven {
    pub fn adapter(&self, turn: Turn) -> Box<dyn Adapter> {
        (self.make)(turn)
    }
}
