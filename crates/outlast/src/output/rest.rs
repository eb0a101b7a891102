//! Runs that rest: what an order to pause does, and what a person can do about a run that rests.

use outlast_wire::api::{AsksView, RunView};
use outlast_wire::words::{BlockReason, ReasonCode, StateName, Wants, Word};

use crate::output::called;

/// The answer to an order to pause. A turn that has begun is not cut short.
pub(crate) fn paused(view: &RunView) -> String {
    match view.state.known() {
        Some(StateName::Waiting | StateName::Blocked | StateName::Queued) => {
            format!("paused {}", called(view))
        }
        _ => format!("{} pauses after its current turn", called(view)),
    }
}

/// What a person can do next, the likeliest first. Each is a hint: a command to paste, with a line before it where the
/// command alone does not say what it is for.
pub(crate) fn next_steps(view: &RunView) -> Vec<String> {
    let run = &called(view);
    if view.paused && !view.state.has_ended() {
        return vec![format!("outlast resume {run}")];
    }
    if view.state == StateName::Exhausted {
        return after_a_limit(view, run);
    }
    let is_driven = !["exec", "file"].contains(&view.agent.kind.as_str());
    if is_driven && view.reason_code.as_ref().is_some_and(|it| *it == ReasonCode::NeverStarted) {
        let look = "agents that are installed:\noutlast agents".to_owned();
        return vec![look, format!("outlast rerun {run}")];
    }
    if view.state == StateName::Failed {
        return vec![format!("outlast rerun {run}")];
    }
    if let Some(child) = view.waiting.as_ref().and_then(|held| held.held_by.first()) {
        return vec![
            format!("see what its children hold:\noutlast tree {run}"),
            format!("it goes on when one of them ends; to end one now:\noutlast stop {child}"),
        ];
    }
    let Some(reason) = blocked_by(view) else {
        return view.asks.as_ref().map(|asks| while_it_waits(run, asks)).unwrap_or_default();
    };
    match reason.wants() {
        Wants::Decision => decide(run),
        Wants::Answer if reason.known() == Some(BlockReason::NeedsInput) => {
            [vec![format!("outlast answer {run} 'TEXT'")], decide(run)].concat()
        }
        Wants::Answer => {
            vec![format!("outlast answer {run} 'TEXT'"), format!("outlast stop {run}")]
        }
        Wants::Look => after_a_look(view, run, &reason),
    }
}

fn decide(run: &str) -> Vec<String> {
    vec![format!("outlast answer {run} --approve"), format!("outlast answer {run} --deny")]
}

/// What lets a run go on that a limit ended, as its daemon says; what does not go on is done again.
fn after_a_limit(view: &RunView, run: &str) -> Vec<String> {
    match &view.more_room {
        Some(more) if is_plain_command(view) => {
            vec![format!(
                "the command starts again, from its beginning:\noutlast raise {run} {more}"
            )]
        }
        Some(more) => vec![format!("outlast raise {run} {more}")],
        // The parent of a child was told that it has ended.
        None if was_ended_by_budget(view) && view.parent.is_none() => vec![
            "see when the budget has room again:\noutlast budgets".to_owned(),
            format!("then let the run go on:\noutlast resume {run}"),
        ],
        None => vec![format!("outlast rerun {run}")],
    }
}

/// True if a budget that it shares with other runs has ended it.
pub(crate) fn was_ended_by_budget(view: &RunView) -> bool {
    let is_budget = view.reason_code.as_ref().is_some_and(|it| *it == ReasonCode::Budget);
    is_budget && view.state == StateName::Exhausted
}

/// A command that runs once: another attempt begins from the start.
pub(crate) fn is_plain_command(view: &RunView) -> bool {
    view.workflow.is_none() && view.agent.kind == "exec"
}

/// What the agent of a running turn waits for.
fn while_it_waits(run: &str, asks: &AsksView) -> Vec<String> {
    match asks.tool {
        Some(_) => decide(run),
        None => vec![format!("outlast answer {run} 'TEXT'")],
    }
}

/// What a person is asked: by a run that rests, or by an agent that waits in its turn.
pub(crate) fn question(view: &RunView) -> Option<&str> {
    let blocked = view.blocked.as_ref().and_then(|blocked| blocked.question.as_deref());
    blocked.or_else(|| view.asks.as_ref().and_then(|asks| asks.text.as_deref())).map(str::trim)
}

/// What a person can do about a run that asks no question.
fn after_a_look(view: &RunView, run: &str, reason: &Word<BlockReason>) -> Vec<String> {
    let resume = |when: &str| format!("{when}:\noutlast resume {run}");
    match reason.known() {
        Some(BlockReason::UnknownCallOutcome) => vec![
            format!("say what became of the call:\noutlast answer {run} 'TEXT'"),
            resume("or let the agent find out by itself"),
        ],
        Some(BlockReason::StallRestartsExhausted | BlockReason::NoProgress) => vec![
            format!("give advice for the next turn:\noutlast send {run} 'TEXT'"),
            resume("then let it try again"),
        ],
        Some(BlockReason::DoneCheckFailed) => vec![
            format!("see which check fails:\noutlast show {run} --turn {}", view.turn),
            resume("then let it try again"),
        ],
        Some(BlockReason::Recovered) => vec![
            format!("see what it did:\noutlast logs {run}"),
            resume("then let it try again"),
            format!("outlast stop {run}"),
        ],
        Some(BlockReason::WorkspaceLost) => {
            vec![resume("after you have put the workspace back where it was")]
        }
        Some(BlockReason::AuthExpired) => vec![resume("after you have logged the agent in")],
        Some(BlockReason::PreflightFailed) => {
            vec![resume("after you have fixed what the check found")]
        }
        _ => vec![resume("after you have fixed the cause")],
    }
}

/// Why it is blocked, if it is. An older daemon has the reason in the view alone.
fn blocked_by(view: &RunView) -> Option<Word<BlockReason>> {
    if let Some(blocked) = &view.blocked {
        return Some(blocked.reason_code.clone());
    }
    let code = view.reason_code.as_ref().map_or("", Word::as_str);
    (view.state == StateName::Blocked).then(|| Word::of(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn each_reason_has_its_way_on() {
        let steps = |code: &str| {
            let view = sample::blocked(code, None);
            next_steps(&view).join("\n")
        };
        insta::assert_snapshot!(steps("needs_approval"), @r"
        outlast answer port --approve
        outlast answer port --deny
        ");
        insta::assert_snapshot!(steps("agent_blocked"), @r"
        outlast answer port 'TEXT'
        outlast stop port
        ");
        insta::assert_snapshot!(steps("preflight_failed"), @r"
        after you have fixed what the check found:
        outlast resume port
        ");
        insta::assert_snapshot!(steps("no_progress"), @r"
        give advice for the next turn:
        outlast send port 'TEXT'
        then let it try again:
        outlast resume port
        ");
    }

    #[test]
    fn an_agent_that_waits_is_answered() {
        let mut view = sample::running_loop();
        let (kind, text) = ("permission".to_owned(), Some("Bash: make".to_owned()));
        view.asks = Some(AsksView { seq: 7, turn: 1, kind, tool: Some("Bash".to_owned()), text });
        insta::assert_snapshot!(next_steps(&view).join("\n"), @r"
        outlast answer port --approve
        outlast answer port --deny
        ");
        assert_eq!(question(&view), Some("Bash: make"));
    }

    #[test]
    fn what_goes_on_needs_nobody() {
        let mut view = sample::running_loop();
        assert!(next_steps(&view).is_empty());
        view.paused = true;
        assert_eq!(next_steps(&view), ["outlast resume port"]);
    }

    #[test]
    fn a_run_that_failed_can_be_run_again() {
        let mut view = sample::running_loop();
        view.state = StateName::Failed.into();
        assert_eq!(next_steps(&view), ["outlast rerun port"]);
    }
}
