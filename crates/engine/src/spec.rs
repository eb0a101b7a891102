//! What a run was asked to be. Written once, in `RunCreated`. Only its limits change later, by `LimitsRaised`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Fork, Hook, OnEnd, Room, RunId, SecretRules, SnapshotRules, Strategy, Time, Window};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    pub name: Option<String>,
    /// One run exists per key.
    pub key: Option<String>,
    pub task: Option<String>,
    pub agent: Agent,
    /// Where the command runs: an absolute path.
    pub dir: String,
    /// Where the run was asked for, if its command runs elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_in: Option<String>,
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
    /// What an attempt is charged that did not report what it used; absent in a journal from before this was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreported: Option<Unreported>,
    /// What the first step waits for, besides a slot.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Start,
    /// True if the run's directory has a file that each attempt reads as its standard input, from the first byte.
    #[serde(default, skip_serializing_if = "is_default")]
    pub has_stdin: bool,
    /// What that file held when the run was made; absent in a journal from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<KeptInput>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub tree: TreeRules,
    /// The build of Outlast that the run was made by; absent in a journal from before this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Of a fork: where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Box<Fork>>,
}

/// What proves that a file is still as it was when the run was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptInput {
    pub bytes: u64,
    pub sha256: String,
}

/// What holds for a run and those below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TreeRules {
    /// The most that they may have together. Of a child it is what its parent has reserved for it.
    #[serde(flatten)]
    pub room: Room,
    /// What becomes of its children when it ends.
    #[serde(skip_serializing_if = "is_default")]
    pub children: OnEnd,
}

/// What an attempt is charged that did not report what it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unreported {
    /// A share of both ceilings, of tokens and of money: its agent could have reported, and they have to hold.
    Reserved,
    /// The same of a run that asked for no ceiling: both are the operator's, and however few turns the run has, one of
    /// them is not charged with more than a part of what a whole run may use.
    ReservedCeilings,
    /// A share of the ceiling of tokens, which the run asked for; that of money is the operator's, and not its price.
    ReservedTokens,
    /// A share of the ceiling of money, which the run asked for; that of tokens is the operator's.
    ReservedMoney,
    /// Nothing: a plain command has no agent that could report.
    Nothing,
}

impl Unreported {
    pub fn is_reserved(self) -> bool {
        self != Self::Nothing
    }

    pub(crate) fn reserves_tokens(self) -> bool {
        matches!(self, Self::Reserved | Self::ReservedCeilings | Self::ReservedTokens)
    }

    pub(crate) fn reserves_money(self) -> bool {
        matches!(self, Self::Reserved | Self::ReservedCeilings | Self::ReservedMoney)
    }
}

/// When a run may start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Not before this time of day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<After>,
}

/// The run that has to end first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    pub run: RunId,
    /// What that run is called, if it has a name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// However that run ends. Otherwise this run fails, unless that run completes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub any: bool,
}

impl After {
    /// What that run is called: by its name, if it has one.
    pub fn called(&self) -> &str {
        self.name.as_deref().unwrap_or(self.run.as_str())
    }
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
            asked_in: None,
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
            unreported: None,
            start: Start::default(),
            has_stdin: false,
            stdin: None,
            tree: TreeRules::default(),
            build: None,
            fork: None,
        }
    }

    /// What an attempt of this run is charged that did not report what it used.
    pub fn unreported(&self) -> Unreported {
        // A journal from before has no word on it. A command without a file, which is never made again unasked, was
        // a plain one.
        let is_plain = self.workflow.is_none() && self.on_interrupt == OnInterrupt::Fail;
        let usual = if is_plain { Unreported::Nothing } else { Unreported::Reserved };
        self.unreported.unwrap_or(usual)
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
    /// The commit that a worktree is made at; `None` is the repository's HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Which snapshots are made of it; `None` is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Box<SnapshotRules>>,
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
    /// The next attempt, once what the last one did is undone.
    Restore,
}

/// How the run waits for its turn among others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Higher goes first.
    pub priority: i32,
    /// At most so many runs made from the same file at once.
    pub most_of_workflow: Option<u32>,
    /// The queue that it was started in, by `run --queue`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// From here on that queue has so many slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_of_queue: Option<u32>,
}
