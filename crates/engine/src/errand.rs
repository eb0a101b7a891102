//! Errands: commands of the host that a run needs between its attempts. Hooks, checks, tool calls.
//!
//! An errand is launched, held and ended exactly as an attempt is, so that a hook survives a daemon's
//! death, dies with its whole tree at its timeout, and has its output and its exit on disk.

use serde::{Deserialize, Serialize};

use crate::{Cause, Outcome, RunSpec, StepState};

/// What an errand is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "purpose", rename_all = "snake_case")]
pub enum Purpose {
    /// The worktree is checked out.
    Checkout,
    Hook {
        hook: Hook,
    },
    /// The check of this number, from 0, of those before the first turn.
    Ready {
        check: u32,
    },
    /// The check of this number, from 0, of those that verify a claim of done.
    Done {
        check: u32,
    },
    /// What is in the workspace is kept.
    Snapshot {
        cause: Cause,
    },
    /// The workspace goes back to this commit of a snapshot.
    Restore {
        to: String,
    },
    /// The call of this number, from 0, of the turn that was committed last.
    Tool {
        call: u32,
        name: String,
        key: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    AfterCreate,
    BeforeRun,
    AfterTurn,
    AfterRun,
    BeforeRemove,
}

impl Hook {
    pub fn word(self) -> &'static str {
        match self {
            Self::AfterCreate => "after_create",
            Self::BeforeRun => "before_run",
            Self::AfterTurn => "after_turn",
            Self::AfterRun => "after_run",
            Self::BeforeRemove => "before_remove",
        }
    }
}

impl Purpose {
    /// What is run for it, as the loop file has it.
    pub(crate) fn command(&self, spec: &RunSpec) -> String {
        let check = |checks: &[String], at: u32| {
            usize::try_from(at).ok().and_then(|at| checks.get(at).cloned())
        };
        let command = match self {
            Self::Checkout => Some("git worktree add".to_owned()),
            Self::Snapshot { .. } => Some("snapshot of the workspace".to_owned()),
            Self::Restore { to } => Some(format!("restore of snapshot {to}")),
            Self::Hook { hook } => spec.hooks.command(*hook).cloned(),
            Self::Ready { check: at } => check(&spec.checks.before_run, *at),
            Self::Done { check: at } => check(&spec.checks.done, *at),
            Self::Tool { name, .. } => {
                let tool = spec.tools.iter().find(|tool| tool.name == *name);
                tool.map(|tool| tool.command.join(" "))
            }
        };
        command.unwrap_or_default()
    }

    /// In few words, for people.
    pub fn label(&self) -> String {
        match self {
            Self::Checkout => "checkout".to_owned(),
            Self::Snapshot { cause } => format!("snapshot {}", cause.word()),
            Self::Restore { .. } => "restore".to_owned(),
            Self::Hook { hook } => format!("hook {}", hook.word()),
            Self::Ready { check } => format!("check before_run {}", check + 1),
            Self::Done { check } => format!("check done {}", check + 1),
            Self::Tool { name, .. } => format!("tool {name}"),
        }
    }
}

/// The errand that is alive, or the last one there was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errand {
    /// 1, 2, 3, … within the run.
    pub number: u32,
    pub purpose: Purpose,
    pub state: StepState,
    pub tail: String,
    /// How many errands before it had the same purpose, and no end that was observed.
    pub earlier_tries: u32,
}

/// What the end of an errand says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Result {
    Passed,
    Failed {
        why: String,
    },
    /// No end was observed, or nothing ran.
    Unknown {
        may_have_run: bool,
    },
}

/// How often an errand is made again whose end was not observed.
pub(crate) const RETRIES: u32 = 3;

impl Errand {
    /// True if its end was not observed, and it is not made again for that.
    pub(crate) fn is_given_up(&self) -> bool {
        let is_shortage = self.state.end.as_ref().is_some_and(|(outcome, _)| outcome.is_shortage());
        self.earlier_tries >= RETRIES && !is_shortage
    }

    pub(crate) fn result(&self) -> Option<Result> {
        self.state.end.as_ref().map(|(outcome, _)| result(outcome))
    }
}

pub(crate) fn result(outcome: &Outcome) -> Result {
    let failed = |why: String| Result::Failed { why };
    match outcome {
        Outcome::Exited { code: 0 } => Result::Passed,
        Outcome::Exited { code } => failed(format!("exit code {code}")),
        Outcome::Signaled { signal } => failed(format!("killed by signal {signal}")),
        Outcome::TimedOut { .. } => failed("it took too long".to_owned()),
        Outcome::Stalled { .. } => failed("it was silent for too long".to_owned()),
        Outcome::Stopped { .. } => failed("it was stopped".to_owned()),
        Outcome::BadResponse { why, .. } | Outcome::Impeded { why, .. } => failed(why.clone()),
        Outcome::NeverStarted { code, .. } if code.is_ours() => {
            Result::Unknown { may_have_run: false }
        }
        Outcome::NeverStarted { why, .. } => failed(format!("never started: {why}")),
        Outcome::Interrupted { .. } | Outcome::Lost => Result::Unknown { may_have_run: true },
    }
}
