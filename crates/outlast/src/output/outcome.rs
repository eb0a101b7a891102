//! How a run ended, on standard error: said only when it did not complete.

use outlast_wire::api::RunView;
use outlast_wire::words::{Exit, ReasonCode, StateName};

use crate::output::rest::next_steps;
use crate::output::state::spaced;
use crate::output::{figures, printable, tell};

/// Tells how a run came to its end or its rest.
pub(crate) fn report(view: &RunView) {
    for line in lines(view) {
        tell(&line);
    }
}

fn lines(view: &RunView) -> Vec<String> {
    let mut lines = match (view.state.known(), view.outcome.as_deref()) {
        (Some(StateName::Completed), _) => Vec::new(),
        (Some(StateName::Failed), Some("never_started")) => never_started(view),
        _ => vec![format!("outlast: run {} {}{}", view.id, view.state, because(view))],
    };
    if view.state == StateName::Blocked {
        lines.extend(at_rest(view));
    }
    if !view.survivors.is_empty() {
        let left = figures::count(view.survivors.len(), "survivor");
        lines.push(format!("outlast: run {} has {left}", view.id));
        lines.push(format!("hint: outlast stop {} ends what is left", view.id));
    }
    lines
}

/// What it asks, and how to go on.
fn at_rest(view: &RunView) -> Vec<String> {
    let question = view.blocked.as_ref().and_then(|blocked| blocked.question.as_deref());
    let asked =
        question.map(|question| format!("outlast: it asks: {}", printable(question.trim())));
    let steps = next_steps(view).into_iter().map(|step| format!("hint: {step}"));
    let look = format!("hint: outlast show {}  shows more", view.id);
    asked.into_iter().chain(steps).chain([look]).collect()
}

fn because(view: &RunView) -> String {
    // How the last attempt ended says nothing about why a loop rests, or about one that failed for another
    // reason.
    let is_about_the_attempt = match &view.reason_code {
        None => true,
        Some(code) => matches!(
            code.known(),
            Some(ReasonCode::ExitCode | ReasonCode::Signaled | ReasonCode::Stopped)
        ),
    };
    match (view.outcome.as_deref().filter(|_| is_about_the_attempt), view.exit) {
        (Some("exited"), Some(Exit::Code(code))) => format!(": exit code {code}"),
        (Some("signaled"), Some(Exit::Signal(signal))) => {
            format!(": killed by {}", figures::signal(signal))
        }
        (Some("stopped"), _) => String::new(),
        _ => match (&view.reason, &view.reason_code) {
            (Some(reason), _) => format!(": {}", printable(reason)),
            (None, Some(code)) => format!(": {}", spaced(code.as_str())),
            (None, None) => String::new(),
        },
    }
}

/// A command that could not even be started is most often a slip, so it is told as a shell would.
fn never_started(view: &RunView) -> Vec<String> {
    let reason = view.reason.as_deref().unwrap_or("never started");
    let why = printable(reason.strip_prefix("never started: ").unwrap_or(reason));
    let mut lines = vec![format!("outlast: {why}")];
    if why.ends_with("not found") {
        lines
            .push("hint: check the spelling, and the PATH that `outlast run` was given".to_owned());
    } else {
        lines.push(format!("hint: nothing was run; see outlast show {}", view.id));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn a_run_that_rests_says_why_and_how_to_go_on() {
        let view = sample::blocked("needs_approval", Some("may I push?\n"));
        insta::assert_snapshot!(lines(&view).join("\n"), @r"
        outlast: run k3mx7q9w2r5t blocked: it needs a person
        outlast: it asks: may I push?
        hint: outlast answer k3mx7q9w2r5t --approve  lets it
        hint: outlast answer k3mx7q9w2r5t --deny  does not
        hint: outlast show k3mx7q9w2r5t  shows more
        ");
    }

    #[test]
    fn a_loop_does_not_fail_because_its_last_attempt_exited_well() {
        let view = RunView {
            state: StateName::Failed.into(),
            outcome: Some("exited".to_owned()),
            exit: Some(Exit::Code(0)),
            reason: Some("the agent gave up".to_owned()),
            reason_code: Some(ReasonCode::AgentFailed.into()),
            ..sample::running_loop()
        };
        insta::assert_snapshot!(lines(&view).join("\n"), @"outlast: run k3mx7q9w2r5t failed: the agent gave up");
    }
}
