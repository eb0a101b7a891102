//! What holds if nobody says anything.

/// `None` is off.
pub(super) struct Defaults {
    pub(super) turn_timeout_ms: Option<u64>,
    pub(super) stall_window_ms: Option<u64>,
    pub(super) run_timeout_ms: Option<u64>,
    pub(super) max_turns: Option<u64>,
    pub(super) max_attempts: Option<u64>,
    pub(super) max_stall_restarts: Option<u64>,
    pub(super) no_progress_turns: Option<u64>,
}

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

pub(super) const INITIAL_BACKOFF_MS: u64 = 10_000;
pub(super) const MAX_BACKOFF_MS: u64 = 300_000;
pub(super) const HOOK_TIMEOUT_MS: u64 = MINUTE_MS;
pub(super) const CHECK_TIMEOUT_MS: u64 = 10 * MINUTE_MS;
pub(super) const TOOL_TIMEOUT_MS: u64 = MINUTE_MS;

pub(super) const ENV: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_*", "TERM", "SHELL", "TMPDIR", "XDG_*"];

impl Defaults {
    pub(super) fn of_kind(kind: &str) -> Self {
        Self {
            turn_timeout_ms: Some(HOUR_MS),
            stall_window_ms: stall_window_ms(kind),
            run_timeout_ms: Some(2 * HOUR_MS),
            max_turns: Some(20),
            max_attempts: Some(5),
            max_stall_restarts: Some(3),
            no_progress_turns: Some(3),
        }
    }

    /// Of a command without a file, which runs as under nohup.
    pub(super) fn plain() -> Self {
        Self {
            turn_timeout_ms: None,
            stall_window_ms: None,
            run_timeout_ms: None,
            max_turns: Some(20),
            max_attempts: Some(1),
            max_stall_restarts: None,
            no_progress_turns: Some(3),
        }
    }
}

/// Silence must not kill a command that says nothing of itself.
fn stall_window_ms(kind: &str) -> Option<u64> {
    match kind {
        "exec" => None,
        "file" => Some(30 * MINUTE_MS),
        _ => Some(5 * MINUTE_MS),
    }
}
