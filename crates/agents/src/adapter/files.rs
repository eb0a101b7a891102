//! The files between a daemon and a driver, which may be of different builds: fields are added with a default, and
//! nothing is renamed.

use std::path::PathBuf;

use outlast_engine::{SecretRules, SessionMark};
use serde::{Deserialize, Serialize};

use super::{Adapter, Declared, Driven, End, Forks, Question, Spent, Turn, Unusable, driven};

/// `drive.json`: what the daemon has the driver do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    pub kind: String,
    pub turn: Turn,
    /// Where the agent's own name of the conversation is kept for the next attempt.
    pub session_file: PathBuf,
    /// Which turn of the run it is.
    #[serde(default)]
    pub turn_number: Option<u32>,
    /// Why a new conversation begins, if the run had another one before.
    #[serde(default)]
    pub begins: Option<String>,
    /// Touched while the agent works.
    #[serde(default)]
    pub heartbeat: Option<PathBuf>,
    /// What the attempt may use up before it is ended.
    #[serde(default)]
    pub caps: Caps,
    /// How long the process waits for a person's answer before it is ended.
    #[serde(default)]
    pub patience_ms: u64,
    /// True if a question that no person has answered by then is refused, and the process goes on.
    #[serde(default)]
    pub refuses: bool,
    /// The operator's table of this agent; `None` is a kind that is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Declared>,
    /// Which variables of the environment are secret.
    #[serde(default)]
    pub secrets: SecretRules,
    /// The prompt for a conversation that begins anew, if [`Turn::fork`] cannot be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_afresh: Option<String>,
}

impl Orders {
    /// The adapter of the agent, for one conversation.
    pub fn adapter(&self, turn: Turn) -> Result<Box<dyn Adapter>, Unusable> {
        match (&self.declared, driven(&self.kind)) {
            (Some(table), _) => table.adapter(turn),
            (None, Some(built_in)) => Ok(built_in.adapter(turn)),
            (None, None) => Err(Unusable::NoDriver { kind: self.kind.clone() }),
        }
    }

    /// True if a conversation of this agent cannot be gone on with in the minute in which it began.
    pub fn resumes_next_minute(&self) -> bool {
        self.spoken().is_some_and(|agent| agent.resumes_next_minute)
    }

    pub fn forks(&self) -> Forks {
        self.spoken().map_or(Forks::No, |agent| agent.forks)
    }

    /// The built-in kind whose protocol the agent speaks.
    fn spoken(&self) -> Option<&'static Driven> {
        let like = self.declared.as_ref().map(|table| table.like.as_deref());
        driven(like.unwrap_or(Some(self.kind.as_str()))?)
    }

    /// Variables of the agent on top of the run's own.
    pub fn set_env(&self) -> impl Iterator<Item = (&String, &String)> {
        self.declared.iter().flat_map(|table| &table.set_env)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Caps {
    pub tokens: Option<u64>,
    pub cost_usd_micros: Option<u64>,
}

impl Caps {
    /// What of these is used up, in words.
    pub fn exceeded(&self, spent: &Spent) -> Option<&'static str> {
        let tokens =
            spent.input_tokens.unwrap_or(0).saturating_add(spent.output_tokens.unwrap_or(0));
        let is_over = |cap: Option<u64>, used: u64| cap.is_some_and(|cap| used >= cap);
        if is_over(self.tokens, tokens) {
            return Some("all tokens of the run are used");
        }
        is_over(self.cost_usd_micros, spent.cost_usd_micros.unwrap_or(0))
            .then_some("all money of the run is spent")
    }
}

/// `agent-end.json`: how the turn ended, by the driver's word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub end: End,
    #[serde(default)]
    pub spent: Option<Spent>,
    /// The question that a person has to answer before the turn can go on.
    #[serde(default)]
    pub question: Option<Question>,
    /// Where the conversation stood then, if a copy of it up to there can be gone on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionMark>,
}

/// `session.json`: the conversation that the next attempt goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub kind: String,
    pub id: String,
    /// What the attempts of this conversation have used up together, as far as their ends were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// The turn that it began in; drivers of older builds do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_in: Option<u32>,
    /// The last turn that an attempt went on with it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// When it was first heard of, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ms: Option<u64>,
    /// Each time that a copy of a conversation was to be gone on with and a new one began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub afresh: Vec<Afresh>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Afresh {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    pub why: String,
}

/// How full a conversation is, in tokens, by the agent's last word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    pub used: u64,
    /// What the model takes; `None` if the agent has not said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

impl Context {
    /// The part that is used, in millionths; `None` if the window is not known.
    pub fn millionths(&self) -> Option<u64> {
        let window = u128::from(self.window.filter(|window| *window > 0)?);
        let part = u128::from(self.used) * 1_000_000 / window;
        Some(u64::try_from(part).unwrap_or(u64::MAX))
    }
}

impl Session {
    /// A conversation that begins in this turn.
    pub fn begun(kind: &str, id: &str, turn: Option<u32>) -> Self {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        Self {
            kind,
            id,
            spent: None,
            began_in: turn,
            last_turn: turn,
            context: None,
            began_ms: None,
            afresh: Vec::new(),
        }
    }

    /// True if the name can be given to a program as it is: neither an option, nor a path out of its place, nor a text.
    pub fn is_sound(&self) -> bool {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "._:-/=+@".contains(it);
        let id = &self.id;
        (1..=256).contains(&id.len())
            && id.chars().all(is_plain)
            && !id.starts_with(['-', '/', '.'])
            && !id.contains("..")
    }
}

/// After so many bytes of events a driver writes only those that decide something: no tools and no texts.
pub const MOST_EVENTS: u64 = 64 << 20;

/// A line of `agent.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    pub at_ms: u64,
    #[serde(flatten)]
    pub event: super::Event,
}

/// What the last line of an `agent.jsonl` that says so has the attempt used up.
pub fn last_spent(events: &[u8]) -> Option<Spent> {
    let spent = |line: &[u8]| match serde_json::from_slice::<Stamped>(line).ok()?.event {
        super::Event::Spent(spent) => Some(spent),
        _ => None,
    };
    events.rsplit(|byte| *byte == b'\n').find_map(spent)
}

/// The questions of which an `agent.jsonl` says that they were decided.
pub fn decided_questions(events: &[u8]) -> Vec<String> {
    let decided = |line: &[u8]| match serde_json::from_slice::<Stamped>(line).ok()?.event {
        super::Event::Decided { id, .. } => Some(id),
        _ => None,
    };
    events.split(|byte| *byte == b'\n').filter_map(decided).collect()
}
