//! The files between a daemon and a driver, which may be of different builds: fields are added with a default, and
//! nothing is renamed.

use std::path::PathBuf;

use outlast_engine::SecretRules;
use serde::{Deserialize, Serialize};

use super::{End, Question, Spent, Turn};

/// `drive.json`: what the daemon has the driver do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    pub kind: String,
    pub turn: Turn,
    /// Where the agent's own name of the conversation is kept for the next attempt.
    pub session_file: PathBuf,
    /// Touched while the agent works.
    #[serde(default)]
    pub heartbeat: Option<PathBuf>,
    /// What the attempt may use up before it is ended.
    #[serde(default)]
    pub caps: Caps,
    /// Which variables of the environment are secret.
    #[serde(default)]
    pub secrets: SecretRules,
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
}

/// `session.json`: the conversation that the next attempt goes on with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub kind: String,
    pub id: String,
    /// What the attempts of this conversation have used up together, as far as their ends were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
}

impl Session {
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
