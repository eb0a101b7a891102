//! The turn's own limits: its whole time, and how long it may be silent.
//!
//! Pure: told the time, it answers whether a limit is reached. Time in which we could not have heard
//! anything (suspended, stopped, or with a full disk) does not count as the child's silence.

use std::time::{Duration, Instant};

use outlast_wire::shim::{EndCause, Limits as Spec};

use crate::clock::earlier;

/// A wait that took this much longer than asked was not spent listening.
const LATE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    timeout_at: Option<Instant>,
    stall_window: Option<Duration>,
    heard: Instant,
}

impl Limits {
    pub(crate) fn new(spec: &Spec, started: Instant) -> Self {
        Self {
            // A time beyond the clock's end is never reached.
            timeout_at: spec
                .turn_timeout_ms
                .and_then(|ms| started.checked_add(Duration::from_millis(ms))),
            stall_window: spec.stall_window_ms.map(Duration::from_millis),
            heard: started,
        }
    }

    /// There was a sign of life at that time, or the shim did not listen until then.
    pub(crate) fn heard(&mut self, at: Instant) {
        self.heard = self.heard.max(at);
    }

    /// A wait of `asked` took until `now`.
    pub(crate) fn waited(&mut self, asked: Duration, took: Duration, now: Instant) {
        if took > asked + LATE {
            self.heard(now);
        }
    }

    pub(crate) fn reached(&self, now: Instant) -> Option<EndCause> {
        if self.timeout_at.is_some_and(|at| now >= at) {
            Some(EndCause::TimedOut)
        } else if self.stall_at().is_some_and(|at| now >= at) {
            Some(EndCause::Stalled)
        } else {
            None
        }
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        earlier(self.timeout_at, self.stall_at())
    }

    fn stall_at(&self) -> Option<Instant> {
        self.heard.checked_add(self.stall_window?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn limits(turn_timeout_ms: Option<u64>, stall_window_ms: Option<u64>, now: Instant) -> Limits {
        Limits::new(&Spec { turn_timeout_ms, stall_window_ms, grace_ms: 0 }, now)
    }

    #[test]
    fn output_defers_the_stall_and_not_the_timeout() {
        let now = clock::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut limits = limits(Some(1000), Some(300), now);
        assert_eq!(limits.reached(at(299)), None);
        limits.heard(at(299));
        assert_eq!(limits.reached(at(598)), None);
        assert_eq!(limits.reached(at(599)), Some(EndCause::Stalled));
        limits.heard(at(990));
        assert_eq!(limits.reached(at(1000)), Some(EndCause::TimedOut));
    }

    #[test]
    fn an_older_sign_of_life_takes_nothing_back() {
        let now = clock::now();
        let at = |ms| now + Duration::from_millis(ms);
        let mut limits = limits(None, Some(300), now);
        limits.heard(at(200));
        limits.heard(at(100));
        assert_eq!(limits.reached(at(499)), None);
    }

    #[test]
    fn a_machine_that_slept_was_not_a_child_that_was_silent() {
        let now = clock::now();
        let mut limits = limits(None, Some(5_000), now);
        let late = now + Duration::from_secs(9);
        limits.waited(Duration::from_secs(5), Duration::from_secs(9), late);
        assert_eq!(limits.reached(late), None);
    }
}
