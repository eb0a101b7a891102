//! What a client and the daemon say to each other: the bodies of the HTTP API, one file a noun.
//!
//! Keys are stable. Readers skip what they do not know; nothing is renamed or removed, and what is added
//! may be missing, since the other side may be older.

mod agent;
mod at_turn;
mod budgets;
mod calls;
mod control;
mod creation;
mod daemon;
mod diff;
mod frames;
mod inside;
mod notices;
mod orders;
mod probes;
mod report;
mod rewind;
mod runs;
#[cfg(feature = "openapi")]
mod schemas;
mod tree;
mod triggers;
mod turns;
mod watch;

pub use agent::*;
pub use at_turn::*;
pub use budgets::*;
pub use calls::*;
pub use control::*;
pub use creation::*;
pub use daemon::*;
pub use diff::*;
pub use frames::*;
pub use inside::*;
pub use notices::*;
pub use orders::*;
pub use probes::*;
pub use report::*;
pub use rewind::*;
pub use runs::*;
#[cfg(feature = "openapi")]
pub use schemas::{EventView, WrittenEventView};
pub use tree::*;
pub use triggers::*;
pub use turns::*;
pub use watch::*;

use outlast_words::{Code, ReasonCode, StateName, Word};
use serde::{Deserialize, Serialize};

/// The header by which a client asks for a list one object a line, to be read as it comes.
pub const LINES: &str = "application/x-ndjson";

/// The header by which a call from inside a run says which run that is: the `OUTLAST_TOKEN` of its step.
pub const TOKEN_HEADER: &str = "outlast-token";

/// Says by which way the person came for whom a process of the user asks: `web`, `web:anna`. Kept with what they order.
pub const VIA_HEADER: &str = "outlast-via";

/// A longer `outlast-via` is left out, in bytes.
pub const VIA_MOST: usize = 64;

/// The protocol name of an HTTP upgrade that carries an attached terminal.
pub const TTY_UPGRADE: &str = "outlast-tty";

/// The body of every answer that is not 2xx.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    pub error: ErrorInfo,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ErrorInfo {
    /// Stable: `unknown_run`, `ambiguous_run`, `key_conflict`, …
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub code: Word<Code>,
    pub message: String,
    pub hint: Option<String>,
    /// The id of the run that was meant, if that is known and the run cannot be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Everything that is wrong with a file, each with its own hint, and what is odd about it besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<FileProblem>,
}

/// One thing that is wrong with a loop file or the config, as `outlast check --json` has it, and how bad it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FileProblem {
    /// `error`, `warning` or `note`.
    pub level: String,
    pub code: String,
    pub file: String,
    pub line: Option<usize>,
    pub key: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

/// What `run`, `attach` and `wait` exit with for a run in this state; `None` while it goes on, and in a state of a newer
/// daemon.
pub fn exit_status(state: &Word<StateName>, reason_code: Option<&Word<ReasonCode>>) -> Option<u8> {
    match state.known()? {
        StateName::Completed => Some(0),
        StateName::Failed if reason_code.is_some_and(|code| *code == ReasonCode::Lost) => Some(6),
        StateName::Failed => Some(1),
        StateName::Blocked => Some(3),
        StateName::Exhausted => Some(4),
        StateName::Stopped => Some(5),
        StateName::Queued
        | StateName::Preparing
        | StateName::Running
        | StateName::Waiting
        | StateName::Verifying
        | StateName::Finishing => None,
    }
}
