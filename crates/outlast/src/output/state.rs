//! A run's state in a few words: `running (orphaned)`, `failed (exit 7)`, `completed (+2 survivors)`.

use outlast_wire::api::{AgentRow, RunRow, RunView, Trouble, exit_status};
use outlast_wire::words::{Code, Exit, Health, ReasonCode, StateName, TroubleCode, Word};

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
}

impl<'a> From<&'a RunView> for Condition<'a> {
    fn from(view: &'a RunView) -> Self {
        Self {
            state: &view.state,
            reason_code: view.reason_code.as_ref(),
            health: &view.health,
            exit: view.exit,
            survivors: view.survivors.len(),
            trouble: view.trouble.as_ref(),
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
        }
    }
}

impl Condition<'_> {
    pub(crate) fn words(&self) -> String {
        let remarks: Vec<String> =
            [self.trouble_words(), self.health_words(), self.reason_words(), self.survivor_words()]
                .into_iter()
                .flatten()
                .collect();
        if remarks.is_empty() {
            return self.state.to_string();
        }
        format!("{} ({})", self.state, remarks.join(", "))
    }

    /// The same, and what a loop or its agent is at if the state alone leaves that open.
    pub(crate) fn words_at(&self, phase: Option<&str>, agent: Option<&AgentRow>) -> String {
        let words = self.words();
        let doing = agent.and_then(|agent| agent::doing(&agent.activity));
        match phase {
            _ if doing.is_some() && words == self.state.as_str() => {
                format!("{words}: {}", doing.unwrap_or_default())
            }
            // The turn is told by its number.
            Some(phase) if words == self.state.as_str() && !phase.starts_with("turn ") => {
                format!("{words}: {}", spaced(phase))
            }
            _ => words,
        }
    }

    fn trouble_words(&self) -> Option<String> {
        let trouble = self.trouble?;
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
        // A rate limit is said beside it, as the reason.
        let is_said = *self.health == Health::RateLimited;
        let is_well = *self.health == Health::Healthy;
        (goes_on && !is_well && !is_said).then(|| spaced(self.health.as_str()))
    }

    fn reason_words(&self) -> Option<String> {
        let code = self.reason_code?;
        match (self.state.known(), code.known()) {
            (_, Some(ReasonCode::StopIncomplete)) => Some(spaced(code.as_str())),
            (Some(StateName::Failed), Some(ReasonCode::ExitCode | ReasonCode::Signaled)) => {
                self.exit.map(exit_words)
            }
            (
                Some(
                    StateName::Failed
                    | StateName::Exhausted
                    | StateName::Blocked
                    | StateName::Waiting,
                ),
                _,
            ) => Some(spaced(code.as_str())),
            _ => None,
        }
    }

    fn survivor_words(&self) -> Option<String> {
        (self.survivors > 0).then(|| format!("+{}", figures::count(self.survivors, "survivor")))
    }
}

/// `exit 7` or `SIGKILL`.
fn exit_words(exit: Exit) -> String {
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
}
