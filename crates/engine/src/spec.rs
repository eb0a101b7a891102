//! What a run was asked to be. Written once, in `RunCreated`, and never changed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::RunId;

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
}

impl RunSpec {
    /// The command or the task on one line, for lists; the start of it if it is long.
    pub fn what(&self) -> String {
        let whole = match &self.task {
            Some(task) => task.split_whitespace().collect::<Vec<_>>().join(" "),
            None => self.agent.command.join(" "),
        };
        match whole.char_indices().nth(LONGEST_WHAT) {
            Some((cut, _)) => format!("{}…", &whole[..cut]),
            None => whole,
        }
    }
}

/// In characters: more than any screen shows of it.
const LONGEST_WHAT: usize = 200;

/// What executes a turn. Which kinds there are, and what they do, is the agents' business.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub kind: String,
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub rows: u16,
    pub cols: u16,
}

/// Ceilings. The first two are kept by the shim, so that they hold while no daemon lives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub turn_timeout_ms: Option<u64>,
    pub stall_window_ms: Option<u64>,
    pub run_timeout_ms: Option<u64>,
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
