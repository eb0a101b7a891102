//! What a run was asked to be. Written once, in `RunCreated`, and never changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Hook, RunId, SecretRules, Strategy, Window};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    pub name: Option<String>,
    /// One run exists per key.
    pub key: Option<String>,
    pub task: Option<String>,
    pub agent: Agent,
    /// Where the command runs: an absolute path.
    pub dir: String,
    pub umask: Option<u32>,
    /// Present for a terminal run: its first window.
    pub tty: Option<Window>,
    pub labels: BTreeMap<String, String>,
    pub parent: Option<RunId>,
    pub limits: Limits,
    pub retry: Retry,
    /// The file the run was made from, as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow: Option<Workflow>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub workspace: Workspace,
    #[serde(default, skip_serializing_if = "is_default")]
    pub hooks: Hooks,
    #[serde(default, skip_serializing_if = "is_default")]
    pub checks: Checks,
    #[serde(default, skip_serializing_if = "is_default")]
    pub output: OutputPolicy,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub model_class: ModelClass,
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_interrupt: OnInterrupt,
    #[serde(default, skip_serializing_if = "is_default")]
    pub queue: Queue,
    /// Where notices about the run go: names of sinks, or addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notify: Vec<String>,
    /// Patterns; a line of output that one of them matches is told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watches: Vec<String>,
    /// How often sinks are told of new output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub health: HealthRules,
    #[serde(default, skip_serializing_if = "is_default")]
    pub driving: Driving,
    /// Which variables of its environment are secret. Their values are in no spec.
    #[serde(default, skip_serializing_if = "is_default")]
    pub secrets: SecretRules,
}

/// How an agent that speaks a protocol is driven. Names of models and modes are the vendor's own, passed through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Driving {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Arguments after our own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    pub approvals: Approvals,
    /// Tools that it may use without a question; a name may end in `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// How long the process waits for a person before it is ended and the run rests; absent is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// After how long a question is refused that no person has answered; absent is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_default")]
    pub session: SessionRules,
    /// The operator's table of this agent as it was when the run was made: JSON, as it was written. `None` is a kind
    /// that is built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
}

/// When an agent begins a new conversation, between two turns; with neither rule it never does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRules {
    /// After so many turns of the old one.
    pub every: Option<u32>,
    /// Once so much of the old one's context was in use, in millionths.
    pub refresh_at_millionths: Option<u32>,
}

/// What happens when an agent asks whether it may do something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approvals {
    /// The run rests until a person has answered.
    #[default]
    Park,
    Deny,
    Allow,
}

impl Approvals {
    pub const ALL: [Self; 3] = [Self::Park, Self::Deny, Self::Allow];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Park => "park",
            Self::Deny => "deny",
            Self::Allow => "allow",
        }
    }

    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|approvals| approvals.word() == word)
    }
}

/// From when on a run is not doing well. 0 turns a rule off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRules {
    /// So long nothing was heard of a live attempt.
    pub silent_after_ms: u64,
    /// So many attempts at one turn have failed.
    pub thrash_attempts: u32,
    /// So much of a limit is used up, in per cent.
    pub near_limit_percent: u32,
}

impl Default for HealthRules {
    fn default() -> Self {
        Self { silent_after_ms: 300_000, thrash_attempts: 3, near_limit_percent: 80 }
    }
}

/// What made the run, if it was no person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The trigger's name.
    pub trigger: String,
    /// Which of its occurrences: a time, a delivery, a file, an item.
    pub occurrence: String,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl RunSpec {
    /// A single command in a directory, and nothing else.
    pub fn command(agent: Agent, dir: String) -> Self {
        Self {
            name: None,
            key: None,
            task: None,
            agent,
            dir,
            umask: None,
            tty: None,
            labels: BTreeMap::new(),
            parent: None,
            limits: Limits::default(),
            retry: Retry::default(),
            workflow: None,
            workspace: Workspace::default(),
            hooks: Hooks::default(),
            checks: Checks::default(),
            output: OutputPolicy::default(),
            tools: Vec::new(),
            model_class: ModelClass::default(),
            on_interrupt: OnInterrupt::default(),
            queue: Queue::default(),
            notify: Vec::new(),
            watches: Vec::new(),
            heartbeat_ms: None,
            origin: None,
            health: HealthRules::default(),
            driving: Driving::default(),
            secrets: SecretRules::default(),
        }
    }

    /// True if something has to be made or asked before the first turn.
    pub(crate) fn needs_preparation(&self) -> bool {
        self.workspace.strategy != Strategy::Inplace
            || !self.checks.before_run.is_empty()
            || self.hooks.before_run.is_some()
            || self.hooks.after_run.is_some()
    }

    /// The command, the task or the start of the prompt on one line, for lists; the start of it if it is long.
    pub fn what(&self) -> String {
        let whole = match (&self.task, &self.workflow) {
            (Some(task), _) => task.split_whitespace().collect::<Vec<_>>().join(" "),
            (None, Some(workflow)) => first_line(&workflow.prompt)
                .filter(|line| !line.contains('{'))
                .unwrap_or_else(|| workflow.path.clone()),
            (None, None) => self.agent.command.join(" "),
        };
        match whole.char_indices().nth(LONGEST_WHAT) {
            Some((cut, _)) => format!("{}…", &whole[..cut]),
            None => whole,
        }
    }
}

fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

/// In characters: more than any screen shows of it.
const LONGEST_WHAT: usize = 200;

/// What executes a turn. Which kinds there are, and what they do, is the agents' business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub kind: String,
    pub command: Vec<String>,
}

/// Ceilings, each of its own kind. The first two are kept by the shim, so that they hold while no daemon lives.
/// `None` is no ceiling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub turn_timeout_ms: Option<u64>,
    pub stall_window_ms: Option<u64>,
    pub run_timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// How often in a row a silent attempt is started anew before the run is blocked. `None`: a stall is a
    /// failure like any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_stall_restarts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost_usd_micros: Option<u64>,
    /// How many turns in a row may change nothing, or claim done and be refuted, before the run is blocked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_progress_turns: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// Tries at one turn, the first among them.
    pub max_attempts: u32,
    pub initial_backoff_ms: u64,
    pub max_backoff_ms: u64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 1, initial_backoff_ms: 10_000, max_backoff_ms: 300_000 }
    }
}

/// A loop file, pinned: what it says later does not matter to this run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// Where it was read from: an absolute path.
    pub path: String,
    /// Of the whole file, in hexadecimal.
    pub sha256: String,
    /// The prompt's template; checked when the run was made.
    pub prompt: String,
}

/// Where the turns work. The directory itself is `RunSpec::dir`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    pub strategy: Strategy,
    /// The directory that `dir` is made in, and never leaves; an absolute path. `None` for `inplace`.
    pub root: Option<String>,
    /// The repository that a worktree is of; an absolute path.
    pub repository: Option<String>,
    #[serde(default)]
    pub retain: Retain,
}

/// How long a workspace is kept after its run has ended; `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retain {
    pub completed_ms: Option<u64>,
    pub failed_ms: Option<u64>,
    pub stopped_ms: Option<u64>,
    pub exhausted_ms: Option<u64>,
}

impl Default for Retain {
    fn default() -> Self {
        const DAY_MS: u64 = 24 * 60 * 60 * 1000;
        Self {
            completed_ms: Some(7 * DAY_MS),
            failed_ms: None,
            stopped_ms: None,
            exhausted_ms: None,
        }
    }
}

/// Shell commands of the host around a run's life, each run with `sh -c` in the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hooks {
    pub after_create: Option<String>,
    pub before_run: Option<String>,
    pub after_turn: Option<String>,
    pub after_run: Option<String>,
    pub before_remove: Option<String>,
    /// `None` is the default of a minute.
    pub timeout_ms: Option<u64>,
}

impl Hooks {
    /// The command of one of them.
    pub fn command(&self, hook: Hook) -> Option<&String> {
        match hook {
            Hook::AfterCreate => self.after_create.as_ref(),
            Hook::BeforeRun => self.before_run.as_ref(),
            Hook::AfterTurn => self.after_turn.as_ref(),
            Hook::AfterRun => self.after_run.as_ref(),
            Hook::BeforeRemove => self.before_remove.as_ref(),
        }
    }
}

/// Shell commands by which the host verifies a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    /// "Ready": before the first turn.
    pub before_run: Vec<String>,
    /// "Done": after a turn that says so.
    pub done: Vec<String>,
    /// Of each; `None` is the default of ten minutes.
    pub timeout_ms: Option<u64>,
}

/// What leaves the run by itself, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPolicy {
    pub emit_to: Vec<String>,
    pub silent_unless_blocked: bool,
    pub require_approval_before_emit: bool,
}

impl Default for OutputPolicy {
    fn default() -> Self {
        Self {
            emit_to: vec!["log".to_owned()],
            silent_unless_blocked: false,
            require_approval_before_emit: false,
        }
    }
}

/// A command of the host that the agent may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub command: Vec<String>,
    /// JSON, as it was written.
    pub input_schema: Option<String>,
    pub class: ToolClass,
    pub cost: ToolCost,
    pub timeout_ms: u64,
    /// Why the operator does not let it be used, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled: Option<String>,
}

/// What happens if a call is made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolClass {
    /// Nothing: it changes nothing.
    Read,
    /// Nothing: the second call finds the first one's work.
    Idempotent,
    /// Nothing, under the same key.
    Keyed,
    /// Harm.
    Unsafe,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCost {
    #[default]
    Light,
    Heavy,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelClass {
    #[default]
    Frontier,
    /// Is not offered heavy tools.
    SmallLocal,
}

/// What follows when the end of an attempt was not observed, or the machine went down under it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInterrupt {
    /// It is the end of a command that may have done its work. After a reboot the retry policy applies.
    #[default]
    Fail,
    /// The next attempt, which is told.
    Resume,
    /// A person decides.
    Block,
}

/// How the run waits for its turn among others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Higher goes first.
    pub priority: i32,
    /// At most so many runs made from the same file at once.
    pub most_of_workflow: Option<u32>,
}
