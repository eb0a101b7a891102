//! Whether the attempt's directory takes writes, and when to try again if it does not.
//!
//! While it does not, nothing is read from the child: its writes wait in the pipe and nothing is lost.

use std::io;
use std::time::{Duration, Instant};

const RETRY: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Disk {
    Fine,
    Failing { problem: String, retry_at: Instant, pause: Duration },
}

impl Disk {
    /// A write failed. True if it had been fine before, which is news.
    pub(crate) fn fail(&mut self, error: &io::Error, now: Instant) -> bool {
        let (pause, is_news) = match self {
            Self::Fine => (RETRY, true),
            Self::Failing { pause, .. } => ((*pause * 2).min(RETRY_MAX), false),
        };
        *self = Self::Failing { problem: error.to_string(), retry_at: now + pause, pause };
        is_news
    }

    pub(crate) fn problem(&self) -> Option<&str> {
        match self {
            Self::Fine => None,
            Self::Failing { problem, .. } => Some(problem),
        }
    }

    pub(crate) fn is_fine(&self) -> bool {
        matches!(self, Self::Fine)
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        match self {
            Self::Fine => None,
            Self::Failing { retry_at, .. } => Some(*retry_at),
        }
    }
}
