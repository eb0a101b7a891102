//! Whether a shim that is connected still answers.
//!
//! Pure: told the time that the machine was awake, it says what is due. A shim is asked while something is due
//! that it has to see to (a stop, a limit), and when a client wants to know; an idle run is never asked, so it
//! costs nothing. A shim that does not answer is first called unreachable. If something is due it is woken, and
//! if that does not help either, the daemon sees to it itself.

/// A shim answers within this.
pub(super) const ANSWER_WITHIN_MS: u64 = 3_000;

/// After it was woken, a shim has this long before its tree is ended without it.
pub(super) const WAKE_WITHIN_MS: u64 = 5_000;

/// Between two questions while something is due.
const ASK_AGAIN_MS: u64 = 5_000;

/// A client's question is answered by news that is not older than this.
const FRESH_MS: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Pulse {
    heard_ms: u64,
    /// Since when a question is open, and what was done about that.
    open: Option<(u64, Stage)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Asked,
    Unreachable,
    Woken,
}

/// What to do about a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    Ask,
    SayUnreachable,
    /// It may be stopped by a signal, which another one ends.
    Wake,
    TakeOver,
}

impl Pulse {
    pub(super) fn new(now_ms: u64) -> Self {
        Self { heard_ms: now_ms, open: None }
    }

    /// Something came from the shim. True if it had been called unreachable.
    pub(super) fn heard(&mut self, now_ms: u64) -> bool {
        self.heard_ms = now_ms;
        self.open.take().is_some_and(|(_, stage)| stage != Stage::Asked)
    }

    /// A client wants to know, or an order was given. True if the shim is to be asked.
    pub(super) fn wants_to_know(&mut self, now_ms: u64, is_order: bool) -> bool {
        let is_fresh = now_ms < self.heard_ms + FRESH_MS && !is_order;
        let asks = self.open.is_none() && !is_fresh;
        if asks {
            self.open = Some((now_ms, Stage::Asked));
        }
        asks
    }

    /// What is to be done now; saying so counts as having done it.
    pub(super) fn due(&mut self, now_ms: u64, is_due: bool) -> Option<Do> {
        if self.wake_at(is_due).is_none_or(|at_ms| now_ms < at_ms) {
            return None;
        }
        let (since_ms, stage, what) = match self.open {
            None => (now_ms, Stage::Asked, Do::Ask),
            Some((since_ms, Stage::Asked)) => (since_ms, Stage::Unreachable, Do::SayUnreachable),
            Some((since_ms, Stage::Unreachable)) => (since_ms, Stage::Woken, Do::Wake),
            Some((since_ms, Stage::Woken)) => (since_ms, Stage::Woken, Do::TakeOver),
        };
        // How long it has to wake up counts from when it was woken.
        let is_step = matches!(what, Do::SayUnreachable | Do::Wake);
        let since_ms = if is_step { now_ms } else { since_ms };
        self.open = Some((since_ms, stage));
        Some(what)
    }

    /// When [`Pulse::due`] has an answer, given whether something is due that the shim has to see to.
    pub(super) fn wake_at(&self, is_due: bool) -> Option<u64> {
        match self.open {
            None => is_due.then_some(self.heard_ms + ASK_AGAIN_MS),
            Some((since_ms, Stage::Asked)) => Some(since_ms + ANSWER_WITHIN_MS),
            Some((since_ms, Stage::Unreachable)) => is_due.then_some(since_ms),
            Some((since_ms, Stage::Woken)) => is_due.then_some(since_ms + WAKE_WITHIN_MS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is done by itself until `until_ms`, and when.
    fn story(pulse: &mut Pulse, is_due: bool, until_ms: u64) -> Vec<(u64, Do)> {
        let mut done = Vec::new();
        while let Some(at_ms) = pulse.wake_at(is_due).filter(|at_ms| *at_ms <= until_ms) {
            let what = pulse.due(at_ms, is_due).expect("it is time");
            done.push((at_ms, what));
            if what == Do::TakeOver {
                break;
            }
        }
        done
    }

    #[test]
    fn an_idle_shim_is_never_asked() {
        assert_eq!(story(&mut Pulse::new(7), false, u64::MAX), []);
    }

    #[test]
    fn a_client_that_asks_is_told_within_seconds_and_nothing_more_is_done() {
        let mut pulse = Pulse::new(0);
        assert!(pulse.wants_to_know(60_000, false));
        assert!(!pulse.wants_to_know(60_001, false), "it is asked already");
        assert_eq!(story(&mut pulse, false, u64::MAX), [(63_000, Do::SayUnreachable)]);
        assert!(pulse.heard(70_000), "it was unreachable");
        assert!(!pulse.wants_to_know(70_500, false), "that was just now");
        assert_eq!(story(&mut pulse, false, u64::MAX), []);
    }

    #[test]
    fn an_order_that_is_not_answered_is_carried_out_without_the_shim() {
        let mut pulse = Pulse::new(0);
        assert!(pulse.wants_to_know(10, true), "an order is asked about, however fresh the news");
        let done = story(&mut pulse, true, u64::MAX);
        let expected = [(3_010, Do::SayUnreachable), (3_010, Do::Wake), (8_010, Do::TakeOver)];
        assert_eq!(done, expected);
    }

    #[test]
    fn what_becomes_due_while_a_shim_is_unreachable_wakes_it_at_once() {
        let mut pulse = Pulse::new(0);
        assert!(pulse.wants_to_know(2_000, false));
        assert_eq!(pulse.due(5_000, false), Some(Do::SayUnreachable));
        assert_eq!(pulse.due(90_000, true), Some(Do::Wake));
        assert_eq!(pulse.wake_at(true), Some(95_000));
    }

    #[test]
    fn a_shim_that_answers_is_asked_again_while_something_is_due() {
        let mut pulse = Pulse::new(0);
        for round in 1..4 {
            let at_ms = pulse.wake_at(true).expect("something is due");
            assert_eq!((at_ms, pulse.due(at_ms, true)), (round * 5_000, Some(Do::Ask)));
            assert!(!pulse.heard(at_ms));
        }
    }
}
