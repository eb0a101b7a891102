//! The end of a tree as a plan in time: TERM, a grace, KILL in rounds, and at last the admission that it
//! did not work.
//!
//! Pure: it is told the time and answers with what is due. The caller sends the signals.

use std::time::{Duration, Instant};

/// How long KILL is repeated in quick rounds before survivors are admitted.
const KILL_FOR: Duration = Duration::from_secs(10);
/// The first pause between two rounds, which doubles up to the second.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The pause after survivors were admitted.
const SLOW: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    NotAsked,
    /// TERM was sent.
    Grace {
        kill_at: Instant,
    },
    Killing {
        next: Instant,
        pause: Duration,
        until: Instant,
    },
    /// Survivors were admitted; KILL goes on at a slow pace.
    Incomplete {
        next: Instant,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    Kill,
    /// KILL, and if a process is left even so, say which.
    KillAndAdmit,
}

impl Ending {
    /// A peer or a limit asks for the end. True if this is the first time, and TERM is due.
    pub(crate) fn ask(&mut self, now: Instant, grace: Duration) -> bool {
        let kill_at = now + grace;
        match *self {
            Self::NotAsked => {
                *self = Self::Grace { kill_at };
                true
            }
            Self::Grace { kill_at: earlier } => {
                *self = Self::Grace { kill_at: earlier.min(kill_at) };
                false
            }
            Self::Killing { .. } | Self::Incomplete { .. } => {
                *self = Self::killing(now);
                false
            }
        }
    }

    /// What is due by now; asking counts as having done it.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        if self.wake_at().is_none_or(|at| now < at) {
            return None;
        }
        match *self {
            Self::NotAsked => None,
            Self::Grace { .. } => {
                *self = Self::Killing { next: now + PAUSE, pause: PAUSE, until: now + KILL_FOR };
                Some(Due::Kill)
            }
            Self::Killing { until, .. } if now >= until => {
                *self = Self::Incomplete { next: now + SLOW };
                Some(Due::KillAndAdmit)
            }
            Self::Killing { pause, until, .. } => {
                let pause = (pause * 2).min(PAUSE_MAX);
                *self = Self::Killing { next: now + pause, pause, until };
                Some(Due::Kill)
            }
            Self::Incomplete { .. } => {
                *self = Self::Incomplete { next: now + SLOW };
                Some(Due::Kill)
            }
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        match self {
            Self::NotAsked => None,
            Self::Grace { kill_at } => Some(*kill_at),
            Self::Killing { next, .. } | Self::Incomplete { next } => Some(*next),
        }
    }

    fn killing(now: Instant) -> Self {
        Self::Killing { next: now, pause: PAUSE, until: now + KILL_FOR }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_shorter_grace_takes_over_and_a_longer_one_does_not() {
        let now = clock::now();
        let mut ending = Ending::NotAsked;
        assert!(ending.ask(now, secs(10)));
        assert!(!ending.ask(now, secs(60)));
        assert_eq!(ending.wake_at(), Some(now + secs(10)));
        ending.ask(now, Duration::ZERO);
        assert_eq!(ending.due(now), Some(Due::Kill));
    }

    #[test]
    fn kill_rounds_end_in_an_admission_and_a_new_order_begins_again() {
        let now = clock::now();
        let mut ending = Ending::NotAsked;
        ending.ask(now, secs(1));
        assert_eq!(ending.due(now), None);
        let mut at = now;
        let mut rounds = Vec::new();
        while rounds.last() != Some(&Due::KillAndAdmit) {
            at = ending.wake_at().expect("an end was asked for");
            rounds.extend(ending.due(at));
            assert!(rounds.len() < 40, "rounds are bounded");
        }
        assert!(at - now >= secs(11));
        assert_eq!(ending.wake_at(), Some(at + SLOW));
        ending.ask(at, Duration::ZERO);
        assert_eq!(ending.due(at), Some(Due::Kill));
    }
}
