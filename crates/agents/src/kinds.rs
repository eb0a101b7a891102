//! The kinds of agents: one row each, which loop files, checks, defaults and plans read.
//!
//! A kind that is known and not runnable yet is refused when a run is made, not when a file is read. `workflow`
//! depends on this crate for this table and for the schemas of tools.

use crate::{exec, file};

/// A kind of agent, by the name that `agent.kind` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    /// What an attempt of this kind answers by; `None` for a kind that this version cannot run.
    pub answers_by: Option<AnswersBy>,
    /// How long an attempt may be silent if the loop file does not say; `None` is for ever.
    pub stall_window_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswersBy {
    /// Its exit status, unless it wrote a response file.
    ExitStatus,
    /// Its response file alone.
    ResponseFile,
    /// What its driver heard of the end of its turn, unless it wrote a response file.
    Driver,
}

const MINUTE_MS: u64 = 60_000;

/// An agent that reports on the way is silent for minutes only if it hangs.
const OF_A_TALKER_MS: Option<u64> = Some(5 * MINUTE_MS);

pub const KINDS: [Kind; 8] = [
    // Silence must not kill a command that says nothing of itself.
    Kind { name: exec::KIND, answers_by: Some(AnswersBy::ExitStatus), stall_window_ms: None },
    Kind {
        name: file::KIND,
        answers_by: Some(AnswersBy::ResponseFile),
        stall_window_ms: Some(30 * MINUTE_MS),
    },
    driven("claude"),
    driven("codex"),
    driven("gemini"),
    driven("opencode"),
    driven("pi"),
    driven("acp"),
];

const fn driven(name: &'static str) -> Kind {
    Kind { name, answers_by: Some(AnswersBy::Driver), stall_window_ms: OF_A_TALKER_MS }
}

pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl Kind {
    pub const fn is_runnable(&self) -> bool {
        self.answers_by.is_some()
    }
}
