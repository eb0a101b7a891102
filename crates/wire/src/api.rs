//! What a client and the daemon say to each other: the bodies of the HTTP API.
//!
//! Keys are stable. Readers skip what they do not know; nothing is renamed or removed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::shim::{EnvVar, Exit, Survivor, Window};

/// The header by which a client asks for framed output (see [`OutputFrame`]).
pub const FRAMES: &str = "application/vnd.outlast.output";

/// The header by which a client asks for a list one object a line, to be read as it comes.
pub const LINES: &str = "application/x-ndjson";

/// The protocol name of an HTTP upgrade that carries an attached terminal.
pub const TTY_UPGRADE: &str = "outlast-tty";

/// `POST /v1/runs`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateRun {
    /// Chosen by the client, so that asking again after a lost answer makes no second run.
    /// 12 characters of `0-9a-z` without `i l o u`; made by the daemon when absent.
    #[serde(default)]
    pub id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    /// One run exists per key, however often it is asked for.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub task: Option<String>,
    pub command: Vec<String>,
    /// An absolute path.
    pub dir: String,
    /// The environment of the command, whole.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Object>))]
    pub env: Vec<EnvVar>,
    #[serde(default)]
    pub umask: Option<u32>,
    /// Present for a terminal run: its first window.
    #[serde(default)]
    pub tty: Option<Window>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub parent: Option<String>,
    #[serde(default)]
    pub limits: AskedLimits,
    /// How many times a failed attempt is tried again.
    #[serde(default)]
    pub retry: u32,
    /// The first delay between attempts; it doubles up to five minutes.
    #[serde(default)]
    pub backoff_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AskedLimits {
    #[serde(default)]
    pub turn_timeout_ms: Option<u64>,
    #[serde(default)]
    pub stall_window_ms: Option<u64>,
    #[serde(default)]
    pub run_timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Created {
    pub id: String,
    /// True if a run with this id or key was there already.
    pub existed: bool,
}

/// One row of `GET /v1/runs`, the newest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunRow {
    pub id: String,
    pub name: Option<String>,
    pub state: String,
    pub reason_code: Option<String>,
    pub health: String,
    /// The command or the task, on one line.
    pub what: String,
    pub turn: u32,
    pub attempt: u32,
    pub created_at: String,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub exit: Option<Exit>,
    pub labels: BTreeMap<String, String>,
    pub survivors: u32,
    /// Something the daemon cannot do for this run just now, and why.
    pub trouble: Option<Trouble>,
}

/// `GET /v1/runs/{run}`: everything known about a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunView {
    pub id: String,
    pub name: Option<String>,
    pub key: Option<String>,
    pub state: String,
    /// For people.
    pub reason: Option<String>,
    /// For scripts.
    pub reason_code: Option<String>,
    /// How the last attempt ended: `exited`, `signaled`, `never_started`, `stalled`, `timed_out`,
    /// `stopped`, `interrupted` or `lost`.
    pub outcome: Option<String>,
    pub health: String,
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
    pub exit: Option<Exit>,
    pub usage: Usage,
    pub limits: BTreeMap<String, LimitView>,
    pub workspace: String,
    pub tty: bool,
    pub parent: Option<String>,
    pub root: String,
    pub children: Vec<String>,
    pub labels: BTreeMap<String, String>,
    /// Of the command, while it lives.
    pub pid: Option<u32>,
    /// Of the shim, while one lives.
    pub shim_pid: Option<u32>,
    pub output_bytes: u64,
    pub restarts: Restarts,
    pub notices: Notices,
    pub summary: Option<String>,
    pub survivors: Vec<Survivor>,
    /// How surely `stop` can find the whole tree: `subreaper` or `best_effort`.
    pub containment: String,
    pub trouble: Option<Trouble>,
    /// The number of the last event.
    pub seq: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AgentView {
    pub kind: String,
    pub command: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd: f64,
    /// False if somebody spent without saying how much.
    pub known: bool,
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

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Notices {
    pub pending: u32,
    pub delivered: u32,
}

/// What keeps the daemon from knowing or writing the state of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Trouble {
    /// `disk_full`, `unreadable`, `unreachable`, …
    pub code: String,
    pub message: String,
    pub since: String,
}

/// `POST /v1/runs/{run}/stop`
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StopRun {
    /// Kill at once instead of asking first.
    #[serde(default)]
    pub now: bool,
}

/// `GET /v1/runs/{run}/wait`: the answer comes when the run ends or rests, or when the time is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Waited {
    /// True if the run still goes on.
    pub timed_out: bool,
    pub run: RunView,
}

/// `GET /v1/daemon`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DaemonStatus {
    pub running: bool,
    pub pid: Option<u32>,
    pub version: Option<String>,
    pub epoch: Option<u64>,
    pub started_at: Option<String>,
    pub home: String,
    pub socket: String,
    pub runs: Option<RunCounts>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunCounts {
    pub live: u64,
    pub resting: u64,
    pub ended: u64,
}

/// `POST /v1/gc`
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GcReport {
    pub dry_run: bool,
    pub removed: Vec<GcItem>,
    pub skipped: Vec<GcItem>,
    pub freed_bytes: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct GcItem {
    pub run: String,
    pub why: String,
    pub bytes: u64,
}

/// `GET /v1/doctor`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DoctorReport {
    /// True if nothing needs a person.
    pub healthy: bool,
    pub findings: Vec<Finding>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// `ok`, `warning` or `problem`.
    pub level: Level,
    /// What was looked at: `database`, `journal`, `run`, `disk`, …
    pub subject: String,
    pub message: String,
    pub hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Level {
    Ok,
    Warning,
    Problem,
}

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
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
}

/// One frame of `GET /v1/runs/{run}/output` when [`FRAMES`] is accepted:
/// `length: u32 LE, head: u16 LE, <head bytes of JSON>, <data>`; `length` counts all that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum OutputFrame {
    /// What follows belongs to this attempt.
    Attempt { turn: u32, attempt: u32 },
    /// The frame's data is the output's bytes from `offset` on; without any, they will begin there.
    Data { offset: u64, stream: crate::output::Stream, at_ms: u64 },
    /// Bytes `from..to` are gone from the spool.
    Gap { from: u64, to: u64 },
    /// Nothing more will come.
    End,
}

/// A frame, its data, and how many bytes the two took.
pub type Framed<'a> = (OutputFrame, &'a [u8], usize);

impl OutputFrame {
    pub fn encode(&self, data: &[u8]) -> Vec<u8> {
        let head = serde_json::to_vec(self).expect("a frame's head is plain data");
        let head_length = u16::try_from(head.len()).expect("a frame's head is short");
        let length = u32::try_from(2 + head.len() + data.len())
            .expect("a frame's data is one read of a file");
        let mut frame = Vec::with_capacity(4 + length as usize);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&head_length.to_le_bytes());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(data);
        frame
    }

    /// The first whole frame in `bytes`, its data, and how many bytes it took; `Ok(None)` if more are needed.
    pub fn decode(bytes: &[u8]) -> Result<Option<Framed<'_>>, serde_json::Error> {
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let Some((head_length, body)) = frame.split_first_chunk::<2>() else {
            return Err(serde::de::Error::custom("a frame without a head"));
        };
        let Some((head, data)) =
            body.split_at_checked(usize::from(u16::from_le_bytes(*head_length)))
        else {
            return Err(serde::de::Error::custom("a head longer than its frame"));
        };
        Ok(Some((serde_json::from_slice(head)?, data, 4 + length)))
    }
}

/// What `run`, `attach` and `wait` exit with for a run in this state; `None` while it goes on.
pub fn exit_status(state: &str, reason_code: Option<&str>) -> Option<u8> {
    match (state, reason_code) {
        ("completed", _) => Some(0),
        ("failed", Some("lost")) => Some(6),
        ("failed", _) => Some(1),
        ("blocked", _) => Some(3),
        ("exhausted", _) => Some(4),
        ("stopped", _) => Some(5),
        _ => None,
    }
}
