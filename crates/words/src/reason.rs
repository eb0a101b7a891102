//! Why a run is in its state: the `reason_code` of states, events, notices and lists.

use crate::vocabulary::{Word, vocabulary};

vocabulary! {
    ReasonCode {
        // It goes on.
        Created "created"
        Ready "ready"
        ClaimedDone "claimed_done"
        CheckFailed "check_failed"
        BackoffOver "backoff_over"
        RateLimitOver "rate_limit_over"
        SlotFree "slot_free"
        BudgetFree "budget_free"
        Resumed "resumed"
        /// A person let a blocked run go on.
        Released "released"
        /// A person gave an exhausted run more room.
        Raised "raised"
        // It waits. A delay before the next attempt has the reason of the failed one.
        Slot "slot"
        /// Others are started first after a restart.
        ResumeHeld "resume_held"
        RateLimit "rate_limit"
        Children "children"
        Timer "timer"
        Message "message"
        Paused "paused"
        /// For another run, after which it was to start.
        After "after"
        // It rests until a person acts: see `BlockReason`.
        AgentBlocked "agent_blocked"
        NeedsApproval "needs_approval"
        NeedsInput "needs_input"
        AuthExpired "auth_expired"
        PreflightFailed "preflight_failed"
        DoneCheckFailed "done_check_failed"
        NoProgress "no_progress"
        StallRestartsExhausted "stall_restarts_exhausted"
        UnknownCallOutcome "unknown_call_outcome"
        Recovered "recovered"
        NotInJournal "not_in_journal"
        NoSnapshot "no_snapshot"
        RestoreFailed "restore_failed"
        WorkspaceLost "workspace_lost"
        // It ends.
        Done "done"
        ExitCode "exit_code"
        Signaled "signaled"
        NeverStarted "never_started"
        /// Of a child that was meant to be made: there is no such run.
        NotMade "not_made"
        BadResponse "bad_response"
        Interrupted "interrupted"
        Lost "lost"
        AgentFailed "agent_failed"
        WorkspaceFailed "workspace_failed"
        AfterCreateFailed "after_create_failed"
        BeforeRunFailed "before_run_failed"
        Stopped "stopped"
        /// The run did not complete after which this one was to start.
        AfterFailed "after_failed"
        // A limit of it is reached: see `Limit`.
        RunTimeout "run_timeout"
        TurnTimeout "turn_timeout"
        StallWindow "stall_window"
        MaxTurns "max_turns"
        MaxTokens "max_tokens"
        MaxCost "max_cost_usd"
        /// One that it shares with other runs.
        Budget "budget"
        // In any state.
        /// A stop was tried, and processes are left.
        StopIncomplete "stop_incomplete"
    }
}

vocabulary! {
    /// Why a run rests until a person acts. Each is a reason code too.
    BlockReason {
        /// A turn asks a person.
        AgentBlocked "agent_blocked"
        /// What a turn has to say needs a yes or a no.
        NeedsApproval "needs_approval"
        /// An agent asks a person in the middle of a turn: a question of the model, or whether it may use a tool.
        NeedsInput "needs_input"
        /// The agent has to log in again.
        AuthExpired "auth_expired"
        /// A check before the first turn failed.
        PreflightFailed "preflight_failed"
        /// Claims of done were refuted too often.
        DoneCheckFailed "done_check_failed"
        /// Too many turns in a row changed nothing.
        NoProgress "no_progress"
        /// Too many attempts in a row were silent.
        StallRestartsExhausted "stall_restarts_exhausted"
        /// Nothing saw how a tool call ended that may have done harm.
        UnknownCallOutcome "unknown_call_outcome"
        /// The end of an attempt is not known, and the run asks a person then.
        Interrupted "interrupted"
        /// The run was rebuilt from its directory.
        Recovered "recovered"
        /// In lists only: the run has a directory and no journal.
        NotInJournal "not_in_journal"
        /// A failed attempt is to be undone, and there is no snapshot to go back to.
        NoSnapshot "no_snapshot"
        /// A failed attempt is to be undone, and the workspace was not put back.
        RestoreFailed "restore_failed"
        /// The workspace of its own is gone, or is not the directory any more that was prepared.
        WorkspaceLost "workspace_lost"
    }
}

/// What a blocked run wants of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// A yes or a no to what the turn has to say.
    Decision,
    /// An answer to what the agent said last.
    Answer,
    /// A look at what went wrong, and the word to go on.
    Look,
}

impl BlockReason {
    /// What a person has to do about it: the one list, for the engine, the daemon and every screen.
    pub fn wants(self) -> Wants {
        match self {
            Self::NeedsApproval => Wants::Decision,
            Self::AgentBlocked | Self::NeedsInput => Wants::Answer,
            Self::AuthExpired
            | Self::PreflightFailed
            | Self::DoneCheckFailed
            | Self::NoProgress
            | Self::StallRestartsExhausted
            | Self::UnknownCallOutcome
            | Self::Interrupted
            | Self::Recovered
            | Self::NotInJournal
            | Self::NoSnapshot
            | Self::RestoreFailed
            | Self::WorkspaceLost => Wants::Look,
        }
    }
}

impl Word<BlockReason> {
    /// The same. A reason of another build wants a look: what would answer it is not known.
    pub fn wants(&self) -> Wants {
        self.known().map_or(Wants::Look, BlockReason::wants)
    }
}

impl From<BlockReason> for ReasonCode {
    fn from(reason: BlockReason) -> Self {
        match reason {
            BlockReason::AgentBlocked => Self::AgentBlocked,
            BlockReason::NeedsApproval => Self::NeedsApproval,
            BlockReason::NeedsInput => Self::NeedsInput,
            BlockReason::AuthExpired => Self::AuthExpired,
            BlockReason::PreflightFailed => Self::PreflightFailed,
            BlockReason::DoneCheckFailed => Self::DoneCheckFailed,
            BlockReason::NoProgress => Self::NoProgress,
            BlockReason::StallRestartsExhausted => Self::StallRestartsExhausted,
            BlockReason::UnknownCallOutcome => Self::UnknownCallOutcome,
            BlockReason::Interrupted => Self::Interrupted,
            BlockReason::Recovered => Self::Recovered,
            BlockReason::NotInJournal => Self::NotInJournal,
            BlockReason::NoSnapshot => Self::NoSnapshot,
            BlockReason::RestoreFailed => Self::RestoreFailed,
            BlockReason::WorkspaceLost => Self::WorkspaceLost,
        }
    }
}

/// A ceiling of a run.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    RunTimeout,
    TurnTimeout,
    StallWindow,
    MaxTurns,
    MaxTokens,
    MaxCost,
    /// One that it shares with other runs.
    Budget,
}

impl Limit {
    /// The reason code of a run that is out of it. The journal's own word for `MaxCost` is another: `max_cost`.
    pub fn code(self) -> ReasonCode {
        match self {
            Self::RunTimeout => ReasonCode::RunTimeout,
            Self::TurnTimeout => ReasonCode::TurnTimeout,
            Self::StallWindow => ReasonCode::StallWindow,
            Self::MaxTurns => ReasonCode::MaxTurns,
            Self::MaxTokens => ReasonCode::MaxTokens,
            Self::MaxCost => ReasonCode::MaxCost,
            Self::Budget => ReasonCode::Budget,
        }
    }

    /// The limit that this is the reason code of.
    pub fn of_code(code: ReasonCode) -> Option<Self> {
        let all = [
            Self::RunTimeout,
            Self::TurnTimeout,
            Self::StallWindow,
            Self::MaxTurns,
            Self::MaxTokens,
            Self::MaxCost,
            Self::Budget,
        ];
        all.into_iter().find(|limit| limit.code() == code)
    }

    /// The word that people and scripts see.
    pub fn word(self) -> &'static str {
        self.code().word()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_of_a_block_is_a_reason_code_with_the_same_word() {
        for reason in BlockReason::ALL {
            assert_eq!(ReasonCode::from(reason).word(), reason.word());
        }
    }

    #[test]
    fn a_limit_is_written_as_before_there_were_words() {
        let written = serde_json::to_string(&Limit::MaxCost).expect("plain data");
        assert_eq!((written.as_str(), Limit::MaxCost.word()), ("\"max_cost\"", "max_cost_usd"));
    }
}

vocabulary! {
    /// What kept an agent from its turn, through no fault of its own.
    Impediment {
        /// Its provider sent it away: a quota, a throttle, an overload.
        Provider "provider"
        /// Its login is not valid, or no longer.
        Login "login"
        /// It wants to use a tool, and a person has to say whether it may.
        Approval "approval"
        /// The model asks a person.
        Question "question"
    }
}
