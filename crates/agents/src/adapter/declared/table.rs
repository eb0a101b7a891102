//! The table that describes an agent, `[agents.NAME]`: how it is started, and what its lines say where, or which built-in
//! agent it speaks like.
//!
//! A path is `message.usage.input_tokens`, with `*` for each of a list. A match is `{ type = "result", is_error = false }`.
//! A key that is not known is refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::find::{Paths, When};
use crate::adapter::{Capabilities, Cost, Driven, TroubleKind, Turn, driven};
use crate::silence::{OF_A_TALKER_MS, OF_A_WORKER_MS};

/// An agent that speaks the protocol of a built-in one, or that takes a prompt, prints lines of JSON and exits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Declared {
    /// The built-in kind whose protocol it speaks. What stands below `login` is then known.
    pub like: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Names of variables that the CLI needs and that a loop file need not name; a name may end in `*`.
    pub env: Vec<String>,
    /// Variables on top of the run's own.
    pub set_env: BTreeMap<String, String>,
    /// How a person logs in again.
    pub login: Option<String>,
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
    #[error("is empty: which program is it?")]
    NoCommand,
    #[error("there is no agent {kind:?} to be like")]
    LikeWhat { kind: String },
    #[error("has a zero byte, which no program can be given")]
    ZeroByte { key: &'static str },
    #[error("{name:?} is not the name of a variable")]
    NoVariable { key: &'static str, name: String },
    #[error("is empty: no line could say that a turn has ended well")]
    NoResult,
    #[error("a match is empty and would fit each line")]
    FitsAll { of: &'static str },
    #[error("names none of input, output, cached, cost")]
    CountsNothing,
    #[error("does not have {{session}}, the place of the conversation's id")]
    ResumesNothing,
    #[error("is missing: `resume` needs the path of the conversation's id")]
    NoSession,
    #[error("the table has no `{key}`, which this turn needs")]
    TurnNeeds { key: &'static str },
    #[error("the prompt is to be a file, and there is none")]
    NoPromptFile,
    #[error("there is no driver for agents of kind {kind}")]
    NoDriver { kind: String },
}

impl Unusable {
    /// The key of the table that it is about, if it is about one.
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::NoCommand => Some("command"),
            Self::LikeWhat { .. } => Some("like"),
            Self::ZeroByte { key } | Self::NoVariable { key, .. } | Self::TurnNeeds { key } => {
                Some(key)
            }
            Self::NoResult => Some("result.completed"),
            Self::FitsAll { of } => Some(of),
            Self::CountsNothing => Some("usage"),
            Self::ResumesNothing => Some("resume"),
            Self::NoSession => Some("session"),
            Self::NoPromptFile | Self::NoDriver { .. } => None,
        }
    }
}

impl Declared {
    pub fn check(&self) -> Result<(), Unusable> {
        self.check_launch()?;
        match self.base()? {
            Some(base) if base.needs_command && self.has_no_program() => Err(Unusable::NoCommand),
            Some(_) => Ok(()),
            None => self.check_lines(),
        }
    }

    /// The built-in agent that it is like.
    pub(super) fn base(&self) -> Result<Option<&'static Driven>, Unusable> {
        let Some(kind) = &self.like else { return Ok(None) };
        driven(kind).map(Some).ok_or_else(|| Unusable::LikeWhat { kind: kind.clone() })
    }

    fn check_launch(&self) -> Result<(), Unusable> {
        let flags = [
            ("prompt_flag", &self.prompt_flag),
            ("model_flag", &self.model_flag),
            ("effort_flag", &self.effort_flag),
            ("permission_flag", &self.permission_flag),
        ];
        let lists = [
            ("command", &self.command),
            ("resume", &self.resume),
            ("allow_args", &self.allow_args),
        ];
        let flags = flags.into_iter().flat_map(|(key, flag)| flag.iter().map(move |it| (key, it)));
        let lists = lists.into_iter().flat_map(|(key, list)| list.iter().map(move |it| (key, it)));
        let values = self.set_env.values().map(|value| ("set_env", value));
        if let Some((key, _)) = flags.chain(lists).chain(values).find(|(_, it)| it.contains('\0')) {
            return Err(Unusable::ZeroByte { key });
        }
        let names = self.env.iter().map(|name| ("env", name));
        let stems = names.map(|(key, name)| (key, name, name.strip_suffix('*').unwrap_or(name)));
        let set = self.set_env.keys().map(|name| ("set_env", name, name.as_str()));
        match stems.chain(set).find(|(_, _, stem)| !is_variable(stem)) {
            Some((key, name, _)) => Err(Unusable::NoVariable { key, name: name.clone() }),
            None => Ok(()),
        }
    }

    fn check_lines(&self) -> Result<(), Unusable> {
        if self.has_no_program() {
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

    fn has_no_program(&self) -> bool {
        self.command.first().is_none_or(|program| program.trim().is_empty())
    }

    pub(super) fn check_turn(&self, turn: &Turn) -> Result<(), Unusable> {
        let needed = [
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
        if let Ok(Some(base)) = self.base() {
            return base.capabilities;
        }
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

    /// All variables that the CLI needs and that a loop file need not name.
    pub fn env_names(&self) -> Vec<&str> {
        let of_base = self.base().ok().flatten().map_or(&[][..], |base| base.env);
        of_base.iter().copied().chain(self.env.iter().map(String::as_str)).collect()
    }

    /// How a person logs in again, if that is known.
    pub fn login(&self) -> Option<&str> {
        let of_base = self.base().ok().flatten().map(|base| base.login);
        self.login.as_deref().or(of_base)
    }

    /// How long an attempt may be silent if the loop file does not say. Without lines about tools, a tool that runs is
    /// silence.
    pub fn stall_window_ms(&self) -> Option<u64> {
        let tells_of_tools = self.like.is_some() || !self.tool_started.is_empty();
        if tells_of_tools { OF_A_TALKER_MS } else { OF_A_WORKER_MS }
    }

    /// The program, and arguments before ours. A command of the run stands in for the program.
    pub(super) fn command_of(&self, turn: &Turn) -> Vec<String> {
        let (program, rest) = self.command.split_at(self.command.len().min(1));
        let program = if turn.command.is_empty() { program } else { &turn.command };
        [program, rest].concat()
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

fn is_variable(name: &str) -> bool {
    let is_word = name.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    !name.is_empty() && !name.starts_with(|first: char| first.is_ascii_digit()) && is_word
}
