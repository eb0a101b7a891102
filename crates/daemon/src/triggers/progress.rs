//! How far a trigger has come, as the next daemon finds it.

use outlast_engine::Time;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Of a schedule: everything up to here is settled. Of a poll: when it was last made.
    #[serde(default)]
    pub(crate) cursor_ms: u64,
    /// Occurrences that were never let in.
    #[serde(default)]
    pub(crate) skipped: u64,
    /// Tries in a row that came to nothing, and when the next one is made.
    #[serde(default)]
    pub(crate) failures: u32,
    #[serde(default)]
    pub(crate) retry_at_ms: Option<u64>,
}

impl Progress {
    pub(crate) fn cursor(self) -> Time {
        Time(self.cursor_ms)
    }

    pub(crate) fn retry_at(self) -> Option<Time> {
        self.retry_at_ms.map(Time)
    }

    /// After one more failure.
    pub(crate) fn failed(self, now: Time, least_ms: u64) -> Self {
        let failures = self.failures.saturating_add(1);
        let wait_ms = backoff_ms(failures).max(least_ms);
        Self { failures, retry_at_ms: Some(now.plus_ms(wait_ms).0), ..self }
    }

    pub(crate) fn succeeded(self) -> Self {
        Self { failures: 0, retry_at_ms: None, ..self }
    }

    pub(crate) fn json(self) -> String {
        serde_json::to_string(&self).expect("plain data")
    }
}

/// 5 s, 10 s, 20 s, … 10 min.
pub(super) fn backoff_ms(failures: u32) -> u64 {
    (5_000_u64 << failures.saturating_sub(1).min(10)).min(600_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_tried_again_later_and_later() {
        let mut progress = Progress::default();
        let waits: Vec<u64> = (0..12)
            .map(|_| {
                progress = progress.failed(Time(0), 0);
                progress.retry_at_ms.expect("there is a next try") / 1000
            })
            .collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600]);
        assert_eq!(progress.failed(Time(0), 3_600_000).retry_at(), Some(Time(3_600_000)));
        assert_eq!(progress.succeeded(), Progress::default());
    }

    #[test]
    fn what_an_earlier_version_left_is_read() {
        assert_eq!(
            serde_json::from_str::<Progress>("{}").expect("fields may be missing"),
            Progress::default()
        );
    }
}
