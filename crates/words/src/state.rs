//! The states of a run by name, how a run ends, and what a waiting run waits for.

use crate::ReasonCode;
use crate::vocabulary::{Word, vocabulary};

vocabulary! {
    StateName {
        Queued "queued"
        Preparing "preparing"
        Running "running"
        Waiting "waiting"
        Verifying "verifying"
        Blocked "blocked"
        Finishing "finishing"
        Completed "completed"
        Failed "failed"
        Stopped "stopped"
        Exhausted "exhausted"
    }
}

vocabulary! {
    /// The four ways a run ends.
    Verdict {
        Completed "completed"
        Failed "failed"
        Stopped "stopped"
        Exhausted "exhausted"
    }
}

vocabulary! {
    /// What a waiting run waits for, as the journal says it. A journal says `timer` of a run that waits for a budget,
    /// and `slot` of one that waits for its place after a restart: it did so before there were causes for these, and
    /// older builds read it. [`WaitCause`] tells them apart.
    WaitWord {
        Backoff "backoff"
        Slot "slot"
        RateLimit "rate_limit"
        Children "children"
        Timer "timer"
        Message "message"
        Paused "paused"
    }
}

/// What a waiting run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitCause {
    /// Before the next attempt.
    Backoff,
    /// Until fewer others run.
    Slot,
    /// Until it is its turn to start something after a restart of the daemon.
    RestartPacing,
    /// Until the agent's provider lets it go on.
    RateLimit,
    Children,
    Timer,
    /// Until a budget that it shares with other runs has room again.
    Budget,
    /// Until it is told something.
    Message,
    /// Until a person lets it go on.
    Paused,
    /// Until another run has ended, which it was to start after.
    Predecessor,
}

impl WaitCause {
    /// The cause that a journal means. An older journal may have any other reason code beside the word.
    pub fn of(word: WaitWord, code: &Word<ReasonCode>) -> Self {
        match (word, code.known()) {
            (WaitWord::Timer, Some(ReasonCode::Budget)) => Self::Budget,
            (WaitWord::Timer, Some(ReasonCode::After)) => Self::Predecessor,
            (WaitWord::Slot, Some(ReasonCode::ResumeHeld)) => Self::RestartPacing,
            (WaitWord::Backoff, _) => Self::Backoff,
            (WaitWord::Slot, _) => Self::Slot,
            (WaitWord::RateLimit, _) => Self::RateLimit,
            (WaitWord::Children, _) => Self::Children,
            (WaitWord::Timer, _) => Self::Timer,
            (WaitWord::Message, _) => Self::Message,
            (WaitWord::Paused, _) => Self::Paused,
        }
    }

    /// As the journal says it, and the `phase` of a run.
    pub fn written(self) -> WaitWord {
        match self {
            Self::Backoff => WaitWord::Backoff,
            Self::Slot | Self::RestartPacing => WaitWord::Slot,
            Self::RateLimit => WaitWord::RateLimit,
            Self::Children => WaitWord::Children,
            Self::Timer | Self::Budget | Self::Predecessor => WaitWord::Timer,
            Self::Message => WaitWord::Message,
            Self::Paused => WaitWord::Paused,
        }
    }
}

impl Verdict {
    pub fn name(self) -> StateName {
        match self {
            Self::Completed => StateName::Completed,
            Self::Failed => StateName::Failed,
            Self::Stopped => StateName::Stopped,
            Self::Exhausted => StateName::Exhausted,
        }
    }
}

impl Word<StateName> {
    /// True of the four ends. A state of a newer build is taken for one in which the run goes on.
    pub fn has_ended(&self) -> bool {
        self.known().and_then(StateName::verdict).is_some()
    }
}

impl StateName {
    /// The verdict that this state is, if it is one of the four ends.
    pub fn verdict(self) -> Option<Verdict> {
        match self {
            Self::Completed => Some(Verdict::Completed),
            Self::Failed => Some(Verdict::Failed),
            Self::Stopped => Some(Verdict::Stopped),
            Self::Exhausted => Some(Verdict::Exhausted),
            Self::Queued
            | Self::Preparing
            | Self::Running
            | Self::Waiting
            | Self::Verifying
            | Self::Blocked
            | Self::Finishing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_known_again_from_what_a_journal_says_of_it() {
        let read = |cause: WaitCause, code: &str| WaitCause::of(cause.written(), &Word::of(code));
        assert_eq!(read(WaitCause::Budget, "budget"), WaitCause::Budget);
        assert_eq!(read(WaitCause::RestartPacing, "resume_held"), WaitCause::RestartPacing);
        assert_eq!(read(WaitCause::Timer, "timer"), WaitCause::Timer);
        assert_eq!(read(WaitCause::Slot, "slot"), WaitCause::Slot);
        assert_eq!(read(WaitCause::Backoff, "exit_code"), WaitCause::Backoff);
        // A failed attempt's reason is no cause.
        assert_eq!(read(WaitCause::Backoff, "budget"), WaitCause::Backoff);
        assert_eq!(read(WaitCause::Timer, "a_word_of_another_build"), WaitCause::Timer);
    }
}
