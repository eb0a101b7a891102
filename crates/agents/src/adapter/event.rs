//! What agents do, in one vocabulary: a line each in the attempt's `agent.jsonl`.
//!
//! Fields may be added; nothing is renamed or removed. A reader skips what it does not know.

use outlast_engine::NeverStarted;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The conversation's own name: what a later attempt goes on with.
    Session {
        id: String,
    },
    /// The run had another conversation before this one, which is left.
    NewConversation {
        why: String,
    },
    /// Which model answers.
    Model {
        name: String,
    },
    /// The agent has said something.
    Said {
        text: String,
    },
    ToolStarted {
        id: String,
        name: String,
        about: String,
    },
    ToolEnded {
        id: String,
        is_error: bool,
    },
    /// What this attempt has used up by now, all of it.
    Spent(Spent),
    /// How full the model's context is.
    Context {
        used: u64,
        window: Option<u64>,
    },
    /// The agent tries again by itself.
    Retries {
        attempt: u32,
        most: Option<u32>,
        delay_ms: Option<u64>,
        trouble: Trouble,
    },
    /// The provider's word on its limits; not a stop by itself.
    Window {
        trouble: Trouble,
    },
    /// The agent asks, and waits.
    Asked(Question),
    /// What was decided about a question.
    Decided {
        id: String,
        decision: super::Decision,
    },
    /// The agent has taken a question back.
    Withdrawn {
        id: String,
    },
    /// The agent has taken a message in the middle of its turn, by the message's number.
    Took {
        message: u64,
    },
    /// Work of the agent that goes on beside the turn.
    Background {
        live: u32,
    },
    /// Lines that were not understood, so far.
    NotUnderstood {
        lines: u64,
    },
    /// The turn is over.
    Ended(End),
}

/// Of a counter that the agent did not give, `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// What was read anew and what was written to a cache.
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// What was read from a cache.
    pub cached_tokens: Option<u64>,
    pub cost_usd_micros: Option<u64>,
    /// True if less than was used up: the agent counts when a call or a turn is over.
    pub is_floor: bool,
}

impl Spent {
    /// Both together. A counter that one of them has is known as far as that goes.
    pub fn and(&self, other: &Self) -> Self {
        self.each(other, |one, other| Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))))
    }

    /// The same figures, none of them less than before: what was counted is not taken back.
    pub fn at_least(&self, before: &Self) -> Self {
        let most = |now: Option<u64>, before: Option<u64>| now.max(before);
        Self {
            input_tokens: most(self.input_tokens, before.input_tokens),
            output_tokens: most(self.output_tokens, before.output_tokens),
            cached_tokens: most(self.cached_tokens, before.cached_tokens),
            cost_usd_micros: most(self.cost_usd_micros, before.cost_usd_micros),
            is_floor: self.is_floor,
        }
    }

    /// What this has more than an earlier state of the same counters.
    pub(super) fn beyond(&self, before: &Self) -> Self {
        self.each(before, |now, before| Some(now?.saturating_sub(before.unwrap_or(0))))
    }

    fn each(&self, other: &Self, of: fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        let of = |one: Option<u64>, other: Option<u64>| one.or(other).and(of(one, other));
        Self {
            input_tokens: of(self.input_tokens, other.input_tokens),
            output_tokens: of(self.output_tokens, other.output_tokens),
            cached_tokens: of(self.cached_tokens, other.cached_tokens),
            cost_usd_micros: of(self.cost_usd_micros, other.cost_usd_micros),
            is_floor: self.is_floor || other.is_floor,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub id: String,
    /// The tool that it wants to use; `None` for a question of the model.
    pub tool: Option<String>,
    /// What it would do, or what it asks.
    pub text: String,
}

impl Question {
    /// True if all of what would be done is shown: no line was cut.
    pub fn is_whole(&self) -> bool {
        !self.text.lines().any(|line| line.ends_with('…'))
    }
}

/// How a turn ended, by the agent's own word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum End {
    /// The agent has finished its turn. That is a claim, and its checks are to come.
    Completed { text: String },
    /// The agent says that the turn failed.
    Failed { trouble: Trouble },
    /// Its output ended, and it has not said that the turn was over.
    Interrupted,
    /// The agent's program could not be started, by the driver's word: nothing of the agent ran.
    NeverStarted { code: NeverStarted, why: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    pub kind: TroubleKind,
    /// When the provider answers again, in milliseconds since 1970; never guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// For people and logs. No prompt has it.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// What the account may use is used up.
    Quota,
    /// Too many requests just now.
    Throttle,
    /// The provider is overloaded or fails.
    Overload,
    /// The login is not valid, or no longer.
    Auth,
    /// The conversation does not fit the model's context.
    ContextFull,
    /// The model or its provider refuses to answer.
    Refusal,
    /// There is no such model, or no such right to it.
    NoModel,
    /// The model does not answer.
    Silent,
    /// The conversation cannot be gone on with.
    CannotResume,
    /// Another process has the conversation.
    SessionBusy,
    /// A cap of the agent itself was reached: turns or money.
    OwnCap,
    /// The turn was cancelled.
    Cancelled,
    Other,
}

impl Trouble {
    pub fn new(kind: TroubleKind, text: impl Into<String>) -> Self {
        Self { kind, until_ms: None, text: text.into() }
    }
}
