//! Runs as clients see them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use outlast_words::{
    BlockReason, Exit, Health, ReasonCode, StateName, Survivor, TroubleCode, Word,
};

/// One row of `GET /v1/runs`, the newest first. Every row has every key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunRow {
    pub id: String,
    pub name: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word<StateName>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub reason_code: Option<Word<ReasonCode>>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub health: Word<Health>,
    /// Since when, and why, while the run goes on.
    #[serde(default)]
    pub health_since: Option<String>,
    #[serde(default)]
    pub health_why: Option<String>,
    /// When it came into its state; told while the run goes on.
    #[serde(default)]
    pub changed_at: Option<String>,
    /// When it goes on by itself, or the next of its limits is reached.
    #[serde(default)]
    pub wake_at: Option<String>,
    /// Asked to rest: it rests, or will after the turn it is at.
    #[serde(default)]
    pub paused: bool,
    /// The time that it has worked, without its rests; absent for one that ended before this was kept.
    #[serde(default)]
    pub worked_ms: Option<u64>,
    /// Failed attempts of this turn, of at most [`Self::max_attempts`].
    #[serde(default)]
    pub attempts_failed: u32,
    /// How often a turn is attempted; told while the run goes on.
    #[serde(default)]
    pub max_attempts: Option<u32>,
    /// Attempts in a row that were silent for too long.
    #[serde(default)]
    pub stalls: u32,
    /// The command or the task, on one line.
    pub what: String,
    /// What the next turn is asked to do, as [`RunView::task`] has it; cut. A command has none.
    #[serde(default)]
    pub task: Option<String>,
    pub turn: u32,
    pub attempt: u32,
    pub created_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Exit>))]
    pub exit: Option<Exit>,
    pub labels: BTreeMap<String, String>,
    pub survivors: u32,
    /// Something the daemon cannot do for this run just now, and why.
    pub trouble: Option<Trouble>,
    /// What it is at while it goes on; see [`RunView::phase`].
    #[serde(default)]
    pub phase: Option<String>,
    /// What a person is asked, until it is answered; cut.
    #[serde(default)]
    pub question: Option<String>,
    /// What the last turn that was committed said; cut. [`RunView::summary`] has all of it.
    #[serde(default)]
    pub summary: Option<String>,
    /// The last line that it wrote. `GET /v1/runs` tells it of open runs, `GET /v1/watch` of all.
    #[serde(default)]
    pub last_line: Option<String>,
    /// Of a loop.
    #[serde(default)]
    pub max_turns: Option<u32>,
    #[serde(default)]
    pub cost_usd: f64,
    #[serde(default)]
    pub tokens: u64,
    /// False if an attempt did not report all that it used: then the two are an upper bound at best.
    #[serde(default = "yes")]
    pub known: bool,
    /// True if every attempt reported its money, or its tokens, also where the other is missing.
    #[serde(default)]
    pub money_known: bool,
    #[serde(default)]
    pub tokens_known: bool,
    /// How much of the money and of the tokens was not reported, and is held for what was not.
    #[serde(default)]
    pub unreported_usd: f64,
    #[serde(default)]
    pub unreported_tokens: u64,
    /// How many attempts did not report all that they used, of a run whose agent could. With no ceiling nothing is held
    /// for them, and what they used is unknown.
    #[serde(default)]
    pub unreported_attempts: u64,
    /// The run that started it.
    #[serde(default)]
    pub parent: Option<String>,
    /// What made it, if it was no person.
    #[serde(default)]
    pub trigger: Option<String>,
    /// The number of the event that an answer or a resume would answer, while the run is blocked or paused.
    #[serde(default)]
    pub asks_seq: Option<u64>,
    /// What its agent is at, while an agent is driven.
    #[serde(default)]
    pub agent: Option<super::AgentRow>,
}

fn yes() -> bool {
    true
}

fn is_nothing(cost_usd: &f64) -> bool {
    *cost_usd == 0.0
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

/// `GET /v1/runs/{run}`: everything known about a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunView {
    pub id: String,
    pub name: Option<String>,
    /// How it can be named on a command line: by its name if that means this run now, else by its id.
    #[serde(default)]
    pub called: Option<String>,
    pub key: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub state: Word<StateName>,
    /// For people.
    pub reason: Option<String>,
    /// For scripts.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub reason_code: Option<Word<ReasonCode>>,
    /// How the last attempt ended: `exited`, `signaled`, `never_started`, `stalled`, `timed_out`,
    /// `bad_response`, `stopped`, `interrupted` or `lost`.
    pub outcome: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub health: Word<Health>,
    /// Since when, and why, while the run goes on.
    #[serde(default)]
    pub health_since: Option<String>,
    #[serde(default)]
    pub health_why: Option<String>,
    pub task: Option<String>,
    pub agent: AgentView,
    pub turn: u32,
    pub attempt: u32,
    pub turns_committed: u32,
    pub created_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub last_progress_at: Option<String>,
    pub wake_at: Option<String>,
    /// Why it does not go on, while it waits for a budget or for a slot.
    #[serde(default)]
    pub waiting: Option<WaitingView>,
    /// How long it worked so far: time at rest is not counted.
    #[serde(default)]
    pub worked_ms: Option<u64>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Exit>))]
    pub exit: Option<Exit>,
    pub usage: Usage,
    pub limits: BTreeMap<String, LimitView>,
    pub workspace: String,
    pub tty: bool,
    pub parent: Option<String>,
    pub root: String,
    pub children: Vec<String>,
    /// What it and those below it share, of a run that has children or a budget for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<super::PotsView>,
    pub labels: BTreeMap<String, String>,
    /// Of the command, while it lives.
    pub pid: Option<u32>,
    /// Of the shim, while one lives.
    pub shim_pid: Option<u32>,
    /// The systemd scope that the shim and all of its step live in, where there is one.
    #[serde(default)]
    pub scope: Option<String>,
    pub output_bytes: u64,
    pub restarts: Restarts,
    pub notices: Notices,
    pub summary: Option<String>,
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<super::schemas::Survivor>))]
    pub survivors: Vec<Survivor>,
    /// How surely `stop` can find the whole tree: `subreaper` or `best_effort`.
    pub containment: String,
    pub trouble: Option<Trouble>,
    /// The number of the last event.
    pub seq: u64,
    /// What it is at: `turn 3 attempt 1`, `hook before_run`, `check done 2/3`, `tool fetch`, `backoff`,
    /// `queue`.
    #[serde(default)]
    pub phase: Option<String>,
    /// What it will not fall behind of: `turn 2 committed`.
    #[serde(default)]
    pub checkpoint: Option<String>,
    /// Present while it rests until a person acts.
    #[serde(default)]
    pub blocked: Option<BlockedView>,
    /// What a person is asked, until it is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<AsksView>,
    #[serde(default)]
    pub inbox: InboxView,
    #[serde(default)]
    pub workflow: Option<WorkflowView>,
    #[serde(default)]
    pub priority: i32,
    /// Of the workspace: `inplace`, `dir` or `worktree`.
    #[serde(default)]
    pub strategy: String,
    /// Of a worktree: the branch that it is on.
    #[serde(default)]
    pub branch: Option<String>,
    /// What its turns changed; `None` if it has no snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<super::SnapshotsView>,
    /// Of a fork: where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<super::ForkedFrom>,
    #[serde(default)]
    pub paused: bool,
    /// The last line that it wrote.
    #[serde(default)]
    pub last_line: Option<String>,
    /// Set if the run was rebuilt from its directory, because its journal was lost or stood behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<RecoveredView>,
    /// What made it, if it was no person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<super::OriginView>,
    /// Of an exhausted run: what `outlast raise` gives it to go on with, such as `--max-turns +10`, within the operator's
    /// ceilings. Absent if no raise would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_room: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RecoveredView {
    pub at: String,
    /// What its directory did not prove.
    pub missing: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BlockedView {
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub reason_code: Word<BlockReason>,
    /// What the person is asked.
    #[serde(default)]
    pub question: Option<String>,
    pub since: String,
}

/// A question that is open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AsksView {
    /// The number of the event that asked it; an answer names it.
    pub seq: u64,
    pub turn: u32,
    /// `approval`: a yes or a no to what the turn has to say. `permission`: a yes or a no to a tool that the agent wants
    /// to use. `question`: what its model wants to know. `block`: anything else.
    pub kind: String,
    /// The tool, if the agent waits for a permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What an agent that waits would do, or what it asks. Of a run that is blocked, `blocked` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Messages to the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct InboxView {
    /// Not yet taken by a turn.
    #[serde(default)]
    pub unread: u32,
}

/// The loop file that the run was made from, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WorkflowView {
    pub path: String,
    pub sha256: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentView {
    pub kind: String,
    pub command: Vec<String>,
    /// What it is at, while it is driven.
    #[serde(flatten)]
    pub activity: super::Activity,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd: f64,
    /// False if an attempt did not report all that it used: then the figures are an upper bound at best.
    pub known: bool,
    /// True if every attempt reported its money, or its tokens, also where the other is missing.
    #[serde(default)]
    pub money_known: bool,
    #[serde(default)]
    pub tokens_known: bool,
    /// How much of the money and of the tokens was not reported, and is held for what was not; left out if nothing is.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub unreported_usd: f64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreported_tokens: u64,
    /// How many attempts did not report all that they used, of a run whose agent could; left out if none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreported_attempts: u64,
}

/// Why a run that wants to go on does not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WaitingView {
    /// `budget` or `slot`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub cause: Word<ReasonCode>,
    /// For people: `today's budget is spent ($50.00 of $50.00)`.
    pub reason: String,
    /// When it goes on by itself, if that is known.
    pub until: Option<String>,
    /// The time zone in which a day of the budget ends.
    pub tz: Option<String>,
    /// The children that hold what it lacks, the one that holds most first; left out if none does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<String>,
    /// What of the config holds it: `[budgets.day]`.
    pub setting: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitView {
    pub used: u64,
    pub max: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Restarts {
    pub stall: u32,
    pub crash: u32,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Notices {
    pub pending: u32,
    pub delivered: u32,
    /// Those that their sinks did not want, by their level or because a person was there.
    #[serde(default)]
    pub muted: u32,
    #[serde(default)]
    pub given_up: u32,
    /// The last thing that went wrong with one that waits or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What keeps the daemon from knowing or writing the state of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Trouble {
    /// `disk_full`, `unreadable`, `unreachable`, …
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Word<TroubleCode>,
    pub message: String,
    pub since: String,
}

/// `GET /v1/runs/{run}/wait`: the answer comes when the run ends or rests, or when the time is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waited {
    /// True if the run still goes on.
    pub timed_out: bool,
    pub run: RunView,
}
