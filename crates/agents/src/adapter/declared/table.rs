//! The table that describes an agent, `[agents.NAME]`: how it is started, and what its lines say where.
//!
//! A path is `message.usage.input_tokens`, with `*` for each of a list. A match is `{ type = "result", is_error = false }`.
//! A key that is not known is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::find::{Paths, When};
use crate::adapter::{Capabilities, Cost, TroubleKind, Turn};

/// An agent that takes a prompt, prints lines of JSON and exits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Declared {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables on top of the run's own.
    pub env: BTreeMap<String, String>,
    pub prompt: Prompt,
    /// The last argument, before a prompt that is one.
    pub prompt_flag: Option<String>,
    /// Arguments that go on with a conversation; `{session}` is its id.
    pub resume: Vec<String>,
    /// What it says on standard error if there is no such conversation, a part of the line.
    pub cannot_resume: Vec<String>,
    /// Arguments for a run that allows everything: without them the agent is to be safe in a repository of others.
    pub allow_args: Vec<String>,
    pub model_flag: Option<String>,
    pub effort_flag: Option<String>,
    pub permission_flag: Option<String>,
    /// Where the conversation's id is, on any line.
    pub session: Paths,
    /// Where the model's name is, on any line.
    pub model: Paths,
    pub said: Vec<Said>,
    pub tool_started: Vec<ToolStarted>,
    pub tool_ended: Vec<ToolEnded>,
    pub usage: Vec<Usage>,
    pub background: Option<Background>,
    pub result: Outcome,
    pub trouble: Vec<TroubleLine>,
    pub retry: Vec<Retry>,
    /// Lines that are known and not needed.
    pub ignore: Vec<When>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prompt {
    #[default]
    Stdin,
    /// The last argument. Every process of the machine can read it.
    Arg,
    /// The last argument is the path of a file with the prompt.
    File,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    pub when: When,
    pub text: Paths,
    /// The text comes in pieces, a line each.
    #[serde(default)]
    pub pieces: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolStarted {
    pub when: When,
    /// The parts of the line that the rest is about; without it, the line.
    #[serde(default)]
    pub each: Option<String>,
    /// Which of those parts.
    #[serde(default)]
    pub is: When,
    pub id: Paths,
    pub name: Paths,
    #[serde(default)]
    pub about: Paths,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolEnded {
    pub when: When,
    #[serde(default)]
    pub each: Option<String>,
    #[serde(default)]
    pub is: When,
    pub id: Paths,
    /// What the part has if the tool failed.
    #[serde(default)]
    pub failed: When,
}

/// Several paths, and all that a path finds, are added up. Of several tables each counts what it names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub when: When,
    pub scope: Scope,
    /// Of a message that comes more than once, its id.
    #[serde(default)]
    pub id: Paths,
    #[serde(default)]
    pub input: Paths,
    #[serde(default)]
    pub output: Paths,
    #[serde(default)]
    pub cached: Paths,
    /// In dollars.
    #[serde(default)]
    pub cost: Paths,
    /// Whether `input` has `cached` in it.
    #[serde(default)]
    pub input_includes_cached: bool,
    /// These figures hold until others of the turn come.
    #[serde(default)]
    pub floor: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// What is new since the last such line.
    Message,
    /// All of this process.
    Turn,
    /// All of the conversation, in earlier processes too.
    Session,
}

/// Work that goes on beside the turn: while there is some, no result is the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    pub when: When,
    /// What finds a value for each piece of work.
    pub each: Paths,
}

/// The line that ends a turn. One that fits both lists is a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Outcome {
    pub completed: Vec<When>,
    pub failed: Vec<When>,
    /// The answer; without it, what was said last.
    pub text: Paths,
    /// Why it failed.
    pub error: Paths,
}

/// What a failure is. A line before the last counts for a last one that says no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TroubleLine {
    pub when: When,
    pub kind: TroubleKind,
    /// When the provider answers again; of several the latest.
    #[serde(default)]
    pub until: Paths,
    #[serde(default)]
    pub unit: Unit,
    #[serde(default)]
    pub text: Paths,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    #[default]
    S,
    Ms,
    Rfc3339,
}

/// The agent tries again by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    pub when: When,
    /// Without it they are counted.
    #[serde(default)]
    pub attempt: Paths,
    #[serde(default)]
    pub most: Paths,
    #[serde(default)]
    pub delay_ms: Paths,
    #[serde(default)]
    pub text: Paths,
}

/// Why a table, or a turn by it, cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("`command` is empty")]
    NoCommand,
    #[error("`result.completed` is empty: no line could say that a turn has ended well")]
    NoResult,
    #[error("a match of `{of}` is empty and would fit each line")]
    FitsAll { of: &'static str },
    #[error("a table of `usage` names none of input, output, cached, cost")]
    CountsNothing,
    #[error("`resume` does not have {{session}}, the place of the conversation's id")]
    ResumesNothing,
    #[error("`resume` needs `session`, the path of the conversation's id")]
    NoSession,
    #[error("the table has no `{key}`, which this turn needs")]
    TurnNeeds { key: &'static str },
    #[error("the prompt is to be a file, and there is none")]
    NoPromptFile,
}

impl Declared {
    pub fn check(&self) -> Result<(), Unusable> {
        if self.command.is_empty() {
            return Err(Unusable::NoCommand);
        }
        if self.result.completed.is_empty() {
            return Err(Unusable::NoResult);
        }
        if let Some((of, _)) = self.matches().into_iter().find(|(_, when)| when.is_empty()) {
            return Err(Unusable::FitsAll { of });
        }
        let counts_nothing = |usage: &Usage| {
            [&usage.input, &usage.output, &usage.cached, &usage.cost].iter().all(|it| it.is_empty())
        };
        if self.usage.iter().any(counts_nothing) {
            return Err(Unusable::CountsNothing);
        }
        match self.resume.iter().any(|arg| arg.contains("{session}")) {
            false if !self.resume.is_empty() => Err(Unusable::ResumesNothing),
            true if self.session.is_empty() => Err(Unusable::NoSession),
            _ => Ok(()),
        }
    }

    pub(super) fn check_turn(&self, turn: &Turn) -> Result<(), Unusable> {
        let needed = [
            ("resume", turn.session.is_some() && self.resume.is_empty()),
            ("model_flag", turn.model.is_some() && self.model_flag.is_none()),
            ("effort_flag", turn.effort.is_some() && self.effort_flag.is_none()),
            ("permission_flag", turn.permission_mode.is_some() && self.permission_flag.is_none()),
        ];
        if let Some((key, _)) = needed.into_iter().find(|(_, is_missing)| *is_missing) {
            return Err(Unusable::TurnNeeds { key });
        }
        match self.prompt {
            Prompt::File if turn.prompt_file.is_none() => Err(Unusable::NoPromptFile),
            Prompt::File | Prompt::Stdin | Prompt::Arg => Ok(()),
        }
    }

    pub fn capabilities(&self) -> Capabilities {
        let has_cost = self.usage.iter().any(|usage| !usage.cost.is_empty());
        Capabilities {
            resume: !self.resume.is_empty(),
            cost: if has_cost { Cost::Reported } else { Cost::Unknown },
            reset_time: self.trouble.iter().any(|trouble| !trouble.until.is_empty()),
            steer: false,
            cancel: false,
            approvals: false,
            mcp: false,
            structured_end: false,
        }
    }

    fn matches(&self) -> Vec<(&'static str, &When)> {
        let mut all: Vec<(&'static str, &When)> = Vec::new();
        all.extend(self.result.completed.iter().map(|it| ("result.completed", it)));
        all.extend(self.result.failed.iter().map(|it| ("result.failed", it)));
        all.extend(self.said.iter().map(|it| ("said", &it.when)));
        all.extend(self.tool_started.iter().map(|it| ("tool_started", &it.when)));
        all.extend(self.tool_ended.iter().map(|it| ("tool_ended", &it.when)));
        all.extend(self.usage.iter().map(|it| ("usage", &it.when)));
        all.extend(self.background.iter().map(|it| ("background", &it.when)));
        all.extend(self.trouble.iter().map(|it| ("trouble", &it.when)));
        all.extend(self.retry.iter().map(|it| ("retry", &it.when)));
        all.extend(self.ignore.iter().map(|it| ("ignore", it)));
        all
    }
}
