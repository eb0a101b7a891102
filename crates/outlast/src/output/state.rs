//! A run's state in a few words: `running (orphaned)`, `failed (exit 7)`, `completed (+2 survivors)`.

use outlast_wire::api::{RunRow, RunView, Trouble, exit_status};
use outlast_wire::shim::Exit;

use crate::output::figures;

/// The parts of a row or of a view that its state is told from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) state: &'a str,
    pub(crate) reason_code: Option<&'a str>,
    pub(crate) health: &'a str,
    pub(crate) exit: Option<Exit>,
    pub(crate) survivors: usize,
    pub(crate) trouble: Option<&'a Trouble>,
}

impl<'a> From<&'a RunView> for Condition<'a> {
    fn from(view: &'a RunView) -> Self {
        Self {
            state: &view.state,
            reason_code: view.reason_code.as_deref(),
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
            reason_code: row.reason_code.as_deref(),
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
            return self.state.to_owned();
        }
        format!("{} ({})", self.state, remarks.join(", "))
    }

    /// The same, and what a loop is at if the state alone leaves that open.
    pub(crate) fn words_at(&self, phase: Option<&str>) -> String {
        let words = self.words();
        match phase {
            // The turn is told by its number.
            Some(phase) if words == self.state && !phase.starts_with("turn ") => {
                format!("{words}: {}", spaced(phase))
            }
            _ => words,
        }
    }

    fn trouble_words(&self) -> Option<String> {
        let trouble = self.trouble?;
        Some(match trouble.code.as_str() {
            "disk_full" | "no_resources" | "no_shim" | "cannot_start" => {
                format!("suspended: {}", spaced(&trouble.code))
            }
            other => spaced(other),
        })
    }

    fn health_words(&self) -> Option<String> {
        let goes_on = exit_status(self.state, self.reason_code).is_none();
        // A rate limit is said beside it, as the reason.
        let is_said = self.health == "rate_limited";
        (goes_on && self.health != "healthy" && !is_said).then(|| spaced(self.health))
    }

    fn reason_words(&self) -> Option<String> {
        let code = self.reason_code?;
        match (self.state, code) {
            (_, "stop_incomplete") => Some(spaced(code)),
            ("failed", "exit_code" | "signaled") => self.exit.map(exit_words),
            ("failed" | "exhausted" | "blocked" | "waiting", code) => Some(spaced(code)),
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
        state: "running",
        reason_code: None,
        health: "healthy",
        exit: None,
        survivors: 0,
        trouble: None,
    };

    fn failed(reason_code: &'static str, exit: Option<Exit>) -> Condition<'static> {
        Condition { state: "failed", reason_code: Some(reason_code), exit, ..HEALTHY }
    }

    #[test]
    fn a_healthy_run_is_one_word() {
        assert_eq!(HEALTHY.words(), "running");
        let completed = Condition { state: "completed", reason_code: Some("done"), ..HEALTHY };
        assert_eq!(completed.words(), "completed");
    }

    #[test]
    fn a_failure_says_how() {
        assert_eq!(failed("exit_code", Some(Exit::Code(7))).words(), "failed (exit 7)");
        assert_eq!(failed("signaled", Some(Exit::Signal(9))).words(), "failed (SIGKILL)");
        assert_eq!(failed("lost", None).words(), "failed (lost)");
        assert_eq!(failed("never_started", None).words(), "failed (never started)");
    }

    #[test]
    fn what_needs_a_look_is_said() {
        let orphaned = Condition { health: "orphaned", ..HEALTHY };
        assert_eq!(orphaned.words(), "running (orphaned)");
        let trouble =
            Trouble { code: "disk_full".into(), message: String::new(), since: String::new() };
        let suspended = Condition { trouble: Some(&trouble), ..HEALTHY };
        assert_eq!(suspended.words(), "running (suspended: disk full)");
        let left = Condition { state: "completed", survivors: 2, ..HEALTHY };
        assert_eq!(left.words(), "completed (+2 survivors)");
        let stubborn = Condition { reason_code: Some("stop_incomplete"), survivors: 1, ..HEALTHY };
        assert_eq!(stubborn.words(), "running (stop incomplete, +1 survivor)");
    }
}
