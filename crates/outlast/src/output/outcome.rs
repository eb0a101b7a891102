//! How a run ended, on standard error: why it did not complete, and what a loop came to.

use outlast_wire::api::RunView;
use outlast_wire::words::{Exit, ReasonCode, StateName};
use outlast_workflow::duration::short;

use crate::output::rest::next_steps;
use crate::output::state::spaced;
use crate::output::time::ms_between;
use crate::output::{called, figures, lines, printable, tell};

/// Tells how a run came to its end or its rest.
pub(crate) fn report(view: &RunView) {
    for line in told(view) {
        tell(&line);
    }
}

fn told(view: &RunView) -> Vec<String> {
    let run = called(view);
    let mut lines = match (view.state.known(), view.outcome.as_deref()) {
        (Some(StateName::Completed), _) => Vec::new(),
        (Some(StateName::Failed), Some("never_started")) => never_started(view),
        (Some(StateName::Blocked), _) => at_rest(view),
        (Some(StateName::Exhausted), _) => {
            let ended = format!("outlast: run {run} {}{}", view.state, because(view));
            std::iter::once(ended).chain(hints(view)).collect()
        }
        _ => vec![format!("outlast: run {run} {}{}", view.state, because(view))],
    };
    if !view.survivors.is_empty() {
        let count = view.survivors.len();
        let left = if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
        lines.push(format!("outlast: run {run} left {left} running"));
        lines.push(format!("hint: outlast stop {run}"));
    }
    lines
}

/// What it asks, or why it rests, and what to do about it. The question is said once.
fn at_rest(view: &RunView) -> Vec<String> {
    let run = called(view);
    let question = view.blocked.as_ref().and_then(|blocked| blocked.question.as_deref());
    let question = question.map(str::trim).filter(|question| !question.is_empty());
    let reason = view.reason.as_deref().map(str::trim);
    let mut lines = Vec::new();
    if question.is_none() || reason != question {
        lines.push(format!("outlast: run {run} is blocked{}", because(view)));
    }
    if let Some(question) = question {
        lines.push(format!("outlast: run {run} asks: {}", printable(question)));
    }
    lines.extend(hints(view));
    lines.push(format!("hint: outlast show {run}"));
    lines
}

fn hints(view: &RunView) -> impl Iterator<Item = String> {
    next_steps(view).into_iter().map(|step| lines::hint(&step))
}

/// What a loop came to, on one line: `completed in 31s · 4 turns · $0.06 · branch outlast/bug-42`.
pub(crate) fn sum(view: &RunView) -> Option<String> {
    let is_loop = view.workflow.is_some() || view.agent.kind != "exec" || view.turns_committed > 1;
    if !is_loop || !view.state.has_ended() {
        return None;
    }
    let ended = view.ended_at.as_deref().and_then(|at| at.parse().ok());
    let passed = || ms_between(view.started_at.as_deref()?, ended?);
    let took = view.worked_ms.or_else(passed);
    let word = if view.state == StateName::Completed { "in" } else { "after" };
    let took = took.map(|ms| format!(" {word} {}", short(ms))).unwrap_or_default();
    let turns = view.turns_committed as usize;
    let parts = [
        Some(format!("{}{took}", view.state)),
        Some(figures::count(turns, "turn")),
        figures::spend(&view.usage),
        view.branch.as_ref().map(|branch| format!("branch {}", printable(branch))),
    ];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

fn because(view: &RunView) -> String {
    // How the last attempt ended says nothing about why a loop rests, or about one that failed for another
    // reason.
    let is_about_the_attempt = match &view.reason_code {
        None => true,
        Some(code) => matches!(code.known(), Some(ReasonCode::ExitCode | ReasonCode::Signaled)),
    };
    match (view.outcome.as_deref().filter(|_| is_about_the_attempt), view.exit) {
        (Some("exited"), Some(Exit::Code(code))) => format!(": exit code {code}"),
        (Some("signaled"), Some(Exit::Signal(signal))) => {
            format!(": killed by {}", figures::signal(signal))
        }
        _ if view.state == StateName::Stopped => String::new(),
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
    if view.agent.kind != "exec" {
        lines.push("hint: agents that are installed:\n  outlast agents".to_owned());
    } else if why.ends_with("not found") {
        lines.push(
            "hint: the command is looked for in these directories:\n  echo \"$PATH\"".to_owned(),
        );
    } else {
        lines.push(format!("hint: outlast show {}", called(view)));
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
        insta::assert_snapshot!(told(&view).join("\n"), @r"
        outlast: run port is blocked: it needs a person
        outlast: run port asks: may I push?
        hint: outlast answer port --approve
        hint: outlast answer port --deny
        hint: outlast show port
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
        insta::assert_snapshot!(told(&view).join("\n"), @"outlast: run port failed: the agent gave up");
    }

    #[test]
    fn a_question_that_is_the_reason_is_said_once() {
        let mut view = sample::blocked("agent_blocked", Some("left or right?"));
        view.reason = Some("left or right?".to_owned());
        insta::assert_snapshot!(told(&view).join("\n"), @r"
        outlast: run port asks: left or right?
        hint: outlast answer port 'TEXT'
        hint: outlast stop port
        hint: outlast show port
        ");
    }

    #[test]
    fn a_loop_that_is_stopped_does_not_say_how_its_last_attempt_exited() {
        let view = RunView {
            state: StateName::Stopped.into(),
            outcome: Some("exited".to_owned()),
            exit: Some(Exit::Code(0)),
            reason: Some("stopped".to_owned()),
            reason_code: Some(ReasonCode::Stopped.into()),
            ..sample::running_loop()
        };
        assert_eq!(told(&view), ["outlast: run port stopped"]);
    }

    #[test]
    fn a_loop_ends_with_its_sum() {
        let view = RunView {
            state: StateName::Completed.into(),
            ended_at: Some("2026-11-15T11:59:00Z".to_owned()),
            branch: Some("outlast/port".to_owned()),
            ..sample::running_loop()
        };
        insta::assert_snapshot!(sum(&view).expect("a sum"), @"completed in 1m 30s · 2 turns · $0.42 · branch outlast/port");
        assert_eq!(sum(&sample::running_loop()), None);
    }
}
