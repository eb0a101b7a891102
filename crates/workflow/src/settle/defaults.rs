//! The defaults: what holds where neither file nor flag says anything.

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
/// Also of a hook and a check of a run that was made before these were part of its spec.
pub const HOOK_TIMEOUT_MS: u64 = MINUTE_MS;
pub const CHECK_TIMEOUT_MS: u64 = 10 * MINUTE_MS;
pub(super) const TOOL_TIMEOUT_MS: u64 = MINUTE_MS;

pub(super) const ENV: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "LC_*", "TERM", "SHELL", "TMPDIR", "XDG_*"];

impl Defaults {
    /// Of a loop whose agent may be silent for so long. Its time and its turns have no limit: it is made for nights, and
    /// money, tokens, silence, tries and turns without progress bound it.
    pub(super) fn of_loop(stall_window_ms: Option<u64>) -> Self {
        Self {
            turn_timeout_ms: Some(HOUR_MS),
            stall_window_ms,
            run_timeout_ms: None,
            max_turns: None,
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
            max_turns: None,
            max_attempts: Some(1),
            max_stall_restarts: None,
            no_progress_turns: Some(3),
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast_agents::KINDS;

    use super::*;
    use crate::keys::{WORKFLOW, lookup};
    use crate::settle::symphony::MAX_TURNS;

    #[test]
    fn the_words_about_defaults_are_the_defaults() {
        let of_loop = Defaults::of_loop(None);
        for (key, default) in [
            ("hooks.timeout_ms", Some(HOOK_TIMEOUT_MS)),
            ("checks.timeout_ms", Some(CHECK_TIMEOUT_MS)),
            ("tools[].timeout_ms", Some(TOOL_TIMEOUT_MS)),
            ("retry.initial_backoff_ms", Some(INITIAL_BACKOFF_MS)),
            ("retry.max_backoff_ms", Some(MAX_BACKOFF_MS)),
            ("agent.max_retry_backoff_ms", Some(MAX_BACKOFF_MS)),
            ("limits.turn_timeout_ms", of_loop.turn_timeout_ms),
            ("limits.run_timeout_ms", of_loop.run_timeout_ms),
            ("limits.max_attempts", of_loop.max_attempts),
            ("limits.max_stall_restarts", of_loop.max_stall_restarts),
            ("limits.no_progress_turns", of_loop.no_progress_turns),
        ] {
            let words = default.map_or("off".to_owned(), |default| default.to_string());
            let key = lookup(WORKFLOW, key).expect("a key");
            assert_eq!(key.default, words, "{}", key.path);
        }
        let turns = lookup(WORKFLOW, "agent.max_turns").map(|key| key.default);
        assert_eq!(turns, Some(format!("off, {MAX_TURNS} in a file of Symphony's").as_str()));
        let env = lookup(WORKFLOW, "agent.env").map(|key| key.default.to_owned());
        assert_eq!(env, Some(ENV.join(" ")));
    }

    #[test]
    fn the_words_about_silence_are_those_of_the_kinds() {
        let window = |ms: Option<u64>| ms.map_or("off".to_owned(), |ms| ms.to_string());
        let [exec, file, rest @ ..] = KINDS;
        let words = format!(
            "{} for {}, {} for {}, else {}",
            window(exec.stall_window_ms),
            exec.name,
            window(file.stall_window_ms),
            file.name,
            window(rest[0].stall_window_ms)
        );
        assert!(rest.iter().all(|kind| kind.stall_window_ms == rest[0].stall_window_ms));
        let stall = lookup(WORKFLOW, "limits.stall_window_ms");
        assert_eq!(stall.map(|key| key.default), Some(words.as_str()));
    }
}
