//! Calls that an attempt makes under keys: the intent is durable before the effect, the result after it.

use serde::{Deserialize, Serialize};

use crate::OsText;

/// What happens if a call is made twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CallClass {
    /// Nothing: it changes nothing.
    Read,
    /// Nothing: the second call finds the first one's work.
    Idempotent,
    /// Nothing, because its receiver knows the key.
    Keyed,
    /// Harm.
    Unsafe,
}

/// `POST /v1/runs/{run}/calls`: a call is about to be made. Only the live attempt of the run may ask, by its token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BeginCall {
    /// Within the turn; one that begins with the run's id and a slash is for the whole run.
    pub key: String,
    pub class: CallClass,
    /// Of what is called. Another digest under the same key is refused.
    pub digest: String,
    /// What is called, for people.
    pub command: String,
    /// Chosen by the caller for this one time, so that asking again after a lost answer is harmless.
    pub ticket: String,
    /// Make the call again if it ended with another status than 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry_failed: bool,
}

/// Whether the call is to be made, or what it came to.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallAnswer {
    /// The whole key, with the run and the turn.
    pub key: String,
    /// The number of the intent, which the result has to name.
    pub call: u64,
    /// How often it was about to be made, this time included.
    pub tries: u32,
    /// What it came to. Absent if it is to be made now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

/// What a call came to: `exit_code`, or `signal`, or neither and `why` if nothing ran.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallResult {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The first bytes that it wrote.
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub stdout: OsText,
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub stderr: OsText,
    /// How many bytes after these are not kept.
    #[serde(default)]
    pub stdout_left_out: u64,
    #[serde(default)]
    pub stderr_left_out: u64,
}

/// `POST /v1/runs/{run}/calls/result`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct EndCall {
    /// The whole key.
    pub key: String,
    /// The number of the intent.
    pub call: u64,
    #[serde(flatten)]
    pub result: CallResult,
}

/// `POST /v1/runs/{run}/calls/resolve`: a person says what became of a call whose end was not observed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResolveCall {
    /// Chosen by the client: the same id is the same order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The `seq` of the call whose end was not observed, as its giver was shown it; without it, the one that is in doubt
    /// now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The whole key, or what follows the turn in it.
    pub key: String,
    /// True if its effect is there; or else the call may be made again.
    pub was_made: bool,
}

/// A call of a run under a key.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallRow {
    pub key: String,
    /// The number of the event by which it was last about to be made: an order about it names this number.
    #[serde(default)]
    pub seq: u64,
    pub command: String,
    pub class: CallClass,
    pub state: CallState,
    pub turn: u32,
    pub attempt: u32,
    pub tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CallState {
    /// It is being made.
    Open,
    /// It ended with status 0.
    Done,
    /// It ended otherwise.
    Failed,
    /// Its end was not observed.
    Unknown,
}

/// So much of each stream of a call is kept.
pub const LARGEST_CALL_OUTPUT: usize = 1 << 20;
