//! A run's state in a few words: `running (orphaned)`, `failed (exit 7)`, `retry 3/5 in 37s (exit 127)`.

use jiff::Timestamp;
use outlast_wire::api::{AgentRow, RunRow, RunView, Trouble, exit_status};
use outlast_wire::words::{Code, Exit, Health, ReasonCode, StateName, TroubleCode, Word};
use outlast_workflow::duration;

use crate::output::{agent, figures};

/// The parts of a row or of a view that its state is told from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) state: &'a Word<StateName>,
    pub(crate) reason_code: Option<&'a Word<ReasonCode>>,
    pub(crate) health: &'a Word<Health>,
    pub(crate) exit: Option<Exit>,
    pub(crate) survivors: usize,
    pub(crate) trouble: Option<&'a Trouble>,
    pub(crate) pace: Pace<'a>,
}

/// What a run that rests waits for, and how often it has tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace<'a> {
    pub(crate) paused: bool,
    pub(crate) wake_at: Option<&'a str>,
    /// Failed attempts of its turn, and how many attempts it has.
    pub(crate) attempts: (u32, Option<u32>),
    /// Attempts in a row that were silent.
    pub(crate) stalls: u32,
    /// Times are told from here; without it they are not told.
    pub(crate) now: Option<Timestamp>,
}

impl Pace<'_> {
    /// Of a daemon that does not say.
    #[cfg(test)]
    pub(crate) const UNKNOWN: Self =
        Self { paused: false, wake_at: None, attempts: (0, None), stalls: 0, now: None };
}

impl<'a> From<&'a RunView> for Condition<'a> {
    fn from(view: &'a RunView) -> Self {
        let limit = |name: &str| view.limits.get(name);
        let short = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let attempts = limit("max_attempts");
        Self {
            state: &view.state,
            reason_code: view.reason_code.as_ref(),
            health: &view.health,
            exit: view.exit,
            survivors: view.survivors.len(),
            trouble: view.trouble.as_ref(),
            pace: Pace {
                paused: view.paused,
                wake_at: view.wake_at.as_deref(),
                attempts: (
                    attempts.map_or(0, |it| short(it.used)),
                    attempts.map(|it| short(it.max)),
                ),
                stalls: limit("max_stall_restarts").map_or(0, |it| short(it.used)),
                now: None,
            },
        }
    }
}

impl<'a> From<&'a RunRow> for Condition<'a> {
    fn from(row: &'a RunRow) -> Self {
        Self {
            state: &row.state,
            reason_code: row.reason_code.as_ref(),
            health: &row.health,
            exit: row.exit,
            survivors: row.survivors as usize,
            trouble: row.trouble.as_ref(),
            pace: Pace {
                paused: row.paused,
                wake_at: row.wake_at.as_deref(),
                attempts: (row.attempts_failed, row.max_attempts),
                stalls: row.stalls,
                now: None,
            },
        }
    }
}

impl Condition<'_> {
    /// The same, with times as they are seen from this moment.
    pub(crate) fn at(self, now: Timestamp) -> Self {
        Self { pace: Pace { now: Some(now), ..self.pace }, ..self }
    }

    pub(crate) fn words(&self) -> String {
        let remarks: Vec<String> =
            [self.trouble_words(), self.health_words(), self.reason_words(), self.survivor_words()]
                .into_iter()
                .flatten()
                .collect();
        let state = self.state_words();
        if remarks.is_empty() {
            return state;
        }
        format!("{state} ({})", remarks.join(", "))
    }

    /// The same, and what a loop or its agent is at if the state alone leaves that open.
    pub(crate) fn words_at(&self, phase: Option<&str>, agent: Option<&AgentRow>) -> String {
        let words = self.words();
        let doing = agent.and_then(|agent| agent::doing(&agent.activity));
        match phase {
            _ if doing.is_some() && words == self.state.as_str() => {
                format!("{words}: {}", doing.unwrap_or_default())
            }
            // The turn is told by its number, and a queue by the state.
            Some(phase)
                if words == self.state.as_str()
                    && !phase.starts_with("turn ")
                    && ![words.as_str(), "queue"].contains(&phase) =>
            {
                format!("{words}: {}", spaced(phase))
            }
            _ => words,
        }
    }

    /// The state itself, as people call it.
    fn state_words(&self) -> String {
        let code = self.reason_code.and_then(Word::known);
        match (self.state.known(), code) {
            (Some(StateName::Waiting), Some(ReasonCode::Paused)) => "paused".to_owned(),
            (Some(StateName::Waiting | StateName::Queued), _) if self.pace.paused => {
                "paused".to_owned()
            }
            (Some(StateName::Waiting), Some(code)) if is_retry(code) => self.retry_words(),
            (Some(StateName::Blocked), Some(ReasonCode::StallRestartsExhausted)) => {
                format!("blocked: silent {}", times(self.pace.stalls))
            }
            (Some(StateName::Blocked), Some(code)) => format!("blocked: {}", block_words(code)),
            (Some(StateName::Running | StateName::Verifying | StateName::Preparing), _)
                if self.pace.paused =>
            {
                format!("{}, pausing", self.state)
            }
            _ => self.state.to_string(),
        }
    }

    /// `retry 3/5 in 37s`
    fn retry_words(&self) -> String {
        let wait = self.left().map(|left| format!(" in {left}")).unwrap_or_default();
        format!("{}{wait}", self.retry_number())
    }

    /// `retry 3/5`
    fn retry_number(&self) -> String {
        match self.pace.attempts {
            (_, None) => "retry".to_owned(),
            (failed, Some(most)) => format!("retry {}/{most}", failed.saturating_add(1)),
        }
    }

    /// What a paused run does once it is resumed, if it rested for something else before.
    fn paused_words(&self, code: ReasonCode) -> Option<String> {
        let is_by_exit = matches!(code, ReasonCode::ExitCode | ReasonCode::Signaled);
        let exit = self.exit.filter(|_| is_by_exit);
        let how = exit.map_or_else(|| failure_words(code), exit_words);
        match code {
            ReasonCode::Paused => None,
            code if is_retry(code) => Some(format!("{}, {how}", self.retry_number())),
            ReasonCode::Timer => Some("for its time".to_owned()),
            ReasonCode::After => Some("for another run".to_owned()),
            other => Some(spaced(other.word())),
        }
    }

    /// How long until it goes on by itself.
    fn left(&self) -> Option<String> {
        let wake_at: Timestamp = self.pace.wake_at?.parse().ok()?;
        let ms = wake_at.as_millisecond() - self.pace.now?.as_millisecond();
        Some(duration::column(u64::try_from(ms).unwrap_or(0)))
    }

    fn trouble_words(&self) -> Option<String> {
        // What the state says as its reason is not said twice.
        let is_the_reason = |it: &&Trouble| {
            self.reason_code.is_some_and(|reason| reason.as_str() == it.code.as_str())
        };
        let trouble = self.trouble.filter(|it| !is_the_reason(it))?;
        let code = spaced(trouble.code.as_str());
        Some(match trouble.code.known() {
            Some(
                TroubleCode::Of(Code::DiskFull | Code::NoResources)
                | TroubleCode::NoShim
                | TroubleCode::CannotStart,
            ) => format!("suspended: {code}"),
            _ => code,
        })
    }

    fn health_words(&self) -> Option<String> {
        let goes_on = exit_status(self.state, self.reason_code).is_none();
        // A rate limit and a person who is waited for are said beside it, as the reason.
        let is_blocked = *self.state == StateName::Blocked;
        let is_said = *self.health == Health::RateLimited
            || is_blocked && *self.health == Health::WaitingHuman;
        let is_well = *self.health == Health::Healthy;
        (goes_on && !is_well && !is_said).then(|| spaced(self.health.as_str()))
    }

    fn reason_words(&self) -> Option<String> {
        if self.pace.paused && *self.state == StateName::Queued {
            return Some("queued".to_owned());
        }
        if self.pace.paused && *self.state == StateName::Blocked {
            return Some("paused".to_owned());
        }
        let code = self.reason_code?;
        match (self.state.known(), code.known()) {
            (_, Some(ReasonCode::StopIncomplete)) => Some(spaced(code.as_str())),
            (Some(StateName::Waiting), Some(code)) if self.pace.paused => self.paused_words(code),
            (
                Some(StateName::Failed | StateName::Waiting),
                Some(ReasonCode::ExitCode | ReasonCode::Signaled),
            ) => self.exit.map(exit_words),
            (Some(StateName::Waiting), Some(ReasonCode::Paused)) => None,
            (Some(StateName::Waiting), Some(code)) if is_retry(code) => Some(failure_words(code)),
            // The word of the mechanism says nothing to a person.
            (Some(StateName::Waiting), Some(ReasonCode::Timer)) => Some(
                self.left()
                    .map_or_else(|| "for its time".to_owned(), |left| format!("{left} left")),
            ),
            (Some(StateName::Waiting), Some(ReasonCode::After)) => {
                Some("for another run".to_owned())
            }
            (Some(StateName::Waiting), _) => {
                let left = self.left().map(|left| format!(", {left} left")).unwrap_or_default();
                Some(format!("{}{left}", spaced(code.as_str())))
            }
            (Some(StateName::Exhausted), Some(ReasonCode::MaxCost)) => Some("max cost".to_owned()),
            (Some(StateName::Failed | StateName::Exhausted), _) => Some(spaced(code.as_str())),
            (Some(StateName::Blocked), _) if code.known().is_none() => Some(spaced(code.as_str())),
            _ => None,
        }
    }

    fn survivor_words(&self) -> Option<String> {
        (self.survivors > 0).then(|| format!("+{}", figures::count(self.survivors, "survivor")))
    }
}

/// True of the reasons of a failed attempt: the run waits to try again. The others are what it waits for.
fn is_retry(code: ReasonCode) -> bool {
    matches!(
        code,
        ReasonCode::ExitCode
            | ReasonCode::Signaled
            | ReasonCode::NeverStarted
            | ReasonCode::BadResponse
            | ReasonCode::Interrupted
            | ReasonCode::Lost
            | ReasonCode::AgentFailed
            | ReasonCode::TurnTimeout
            | ReasonCode::StallWindow
    )
}

/// How an attempt failed, in a word or two.
fn failure_words(code: ReasonCode) -> String {
    match code {
        ReasonCode::TurnTimeout => "timed out".to_owned(),
        ReasonCode::StallWindow => "silent".to_owned(),
        other => spaced(other.word()),
    }
}

/// Why a run is blocked, in a few words.
fn block_words(code: ReasonCode) -> String {
    match code {
        ReasonCode::AgentBlocked | ReasonCode::NeedsInput => "asks you".to_owned(),
        ReasonCode::AuthExpired => "login expired".to_owned(),
        ReasonCode::PreflightFailed => "before-run check fails".to_owned(),
        ReasonCode::DoneCheckFailed => "done check fails".to_owned(),
        ReasonCode::UnknownCallOutcome => "tool outcome unknown".to_owned(),
        ReasonCode::NotInJournal => "not in the journal".to_owned(),
        other => spaced(other.word()),
    }
}

/// `once`, `twice`, `3 times`; how often is not always known.
fn times(count: u32) -> String {
    match count {
        0 => "too often".to_owned(),
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        more => format!("{more} times"),
    }
}

/// `exit 7` or `SIGKILL`.
pub(crate) fn exit_words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit {code}"),
        Exit::Signal(signal) => figures::signal(signal),
    }
}

/// A code as words: `disk_full` is `disk full`.
pub(crate) fn spaced(code: &str) -> String {
    code.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEALTHY: Condition = Condition {
        state: &Word::Known(StateName::Running),
        reason_code: None,
        health: &Word::Known(Health::Healthy),
        exit: None,
        survivors: 0,
        trouble: None,
        pace: Pace::UNKNOWN,
    };

    const COMPLETED: &Word<StateName> = &Word::Known(StateName::Completed);

    fn failed(reason_code: ReasonCode, exit: Option<Exit>) -> String {
        let (state, code) = (StateName::Failed.into(), reason_code.into());
        Condition { state: &state, reason_code: Some(&code), exit, ..HEALTHY }.words()
    }

    #[test]
    fn a_healthy_run_is_one_word() {
        assert_eq!(HEALTHY.words(), "running");
        let done = ReasonCode::Done.into();
        let completed = Condition { state: COMPLETED, reason_code: Some(&done), ..HEALTHY };
        assert_eq!(completed.words(), "completed");
    }

    #[test]
    fn a_failure_says_how() {
        assert_eq!(failed(ReasonCode::ExitCode, Some(Exit::Code(7))), "failed (exit 7)");
        assert_eq!(failed(ReasonCode::Signaled, Some(Exit::Signal(9))), "failed (SIGKILL)");
        assert_eq!(failed(ReasonCode::Lost, None), "failed (lost)");
        assert_eq!(failed(ReasonCode::NeverStarted, None), "failed (never started)");
    }

    #[test]
    fn what_needs_a_look_is_said() {
        let health = Health::Orphaned.into();
        let orphaned = Condition { health: &health, ..HEALTHY };
        assert_eq!(orphaned.words(), "running (orphaned)");
        let code = TroubleCode::Of(Code::DiskFull).into();
        let trouble = Trouble { code, message: String::new(), since: String::new() };
        let suspended = Condition { trouble: Some(&trouble), ..HEALTHY };
        assert_eq!(suspended.words(), "running (suspended: disk full)");
        let left = Condition { state: COMPLETED, survivors: 2, ..HEALTHY };
        assert_eq!(left.words(), "completed (+2 survivors)");
        let code = ReasonCode::StopIncomplete.into();
        let stubborn = Condition { reason_code: Some(&code), survivors: 1, ..HEALTHY };
        assert_eq!(stubborn.words(), "running (stop incomplete, +1 survivor)");
    }

    fn rests(state: StateName, code: ReasonCode, pace: Pace<'_>) -> String {
        let (state, code) = (state.into(), code.into());
        let exit = Some(Exit::Code(127));
        let condition =
            Condition { state: &state, reason_code: Some(&code), exit, pace, ..HEALTHY };
        condition.at("2026-11-15T12:00:00Z".parse().expect("a time")).words()
    }

    #[test]
    fn a_run_that_waits_says_for_what_and_how_long() {
        let pace = Pace {
            wake_at: Some("2026-11-15T12:00:37Z"),
            attempts: (2, Some(5)),
            stalls: 2,
            ..Pace::UNKNOWN
        };
        let waiting = |code| rests(StateName::Waiting, code, pace);
        let blocked = |code| rests(StateName::Blocked, code, pace);
        assert_eq!(waiting(ReasonCode::ExitCode), "retry 3/5 in 37s (exit 127)");
        assert_eq!(waiting(ReasonCode::BadResponse), "retry 3/5 in 37s (bad response)");
        assert_eq!(waiting(ReasonCode::StallWindow), "retry 3/5 in 37s (silent)");
        assert_eq!(waiting(ReasonCode::Budget), "waiting (budget, 37s left)");
        assert_eq!(waiting(ReasonCode::Timer), "waiting (37s left)");
        assert_eq!(waiting(ReasonCode::After), "waiting (for another run)");
        assert_eq!(waiting(ReasonCode::Paused), "paused");
        assert_eq!(blocked(ReasonCode::StallRestartsExhausted), "blocked: silent twice");
        assert_eq!(blocked(ReasonCode::AgentBlocked), "blocked: asks you");
        assert_eq!(blocked(ReasonCode::NoProgress), "blocked: no progress");
        // An older daemon says less.
        assert_eq!(
            rests(StateName::Waiting, ReasonCode::ExitCode, Pace::UNKNOWN),
            "retry (exit 127)"
        );
    }

    #[test]
    fn a_paused_run_that_waited_was_not_shown_as_paused() {
        let pace = Pace {
            paused: true,
            // The end of the run's time: it does not go on then.
            wake_at: Some("2026-11-15T12:00:37Z"),
            attempts: (2, Some(5)),
            ..Pace::UNKNOWN
        };
        let waiting = |code| rests(StateName::Waiting, code, pace);
        assert_eq!(waiting(ReasonCode::ExitCode), "paused (retry 3/5, exit 127)");
        assert_eq!(waiting(ReasonCode::StallWindow), "paused (retry 3/5, silent)");
        assert_eq!(waiting(ReasonCode::Budget), "paused (budget)");
        assert_eq!(waiting(ReasonCode::RateLimit), "paused (rate limit)");
        assert_eq!(waiting(ReasonCode::Message), "paused (message)");
        assert_eq!(waiting(ReasonCode::Timer), "paused (for its time)");
        assert_eq!(waiting(ReasonCode::Paused), "paused");
        let queued = StateName::Queued.into();
        assert_eq!(Condition { state: &queued, pace, ..HEALTHY }.words(), "paused (queued)");
        assert_eq!(
            rests(StateName::Blocked, ReasonCode::AgentBlocked, pace),
            "blocked: asks you (paused)"
        );
    }

    #[test]
    fn a_run_that_the_journal_does_not_know_says_so_once() {
        let (state, reason) = (StateName::Blocked.into(), ReasonCode::NotInJournal.into());
        let code = TroubleCode::Of(Code::NotInJournal).into();
        let trouble = Trouble { code, message: String::new(), since: String::new() };
        let unknown = Condition {
            state: &state,
            reason_code: Some(&reason),
            trouble: Some(&trouble),
            ..HEALTHY
        };
        assert_eq!(unknown.words(), "blocked: not in the journal");
    }

    #[test]
    fn a_pause_that_is_pending_is_said() {
        let pausing = Condition { pace: Pace { paused: true, ..Pace::UNKNOWN }, ..HEALTHY };
        assert_eq!(pausing.words(), "running, pausing");
        assert_eq!(pausing.words_at(Some("turn 1 attempt 1"), None), "running, pausing");
    }

    #[test]
    fn a_queued_run_is_queued_and_not_in_the_queue_too() {
        let state = StateName::Queued.into();
        let queued = Condition { state: &state, ..HEALTHY };
        assert_eq!(queued.words_at(Some("queue"), None), "queued");
    }
}
