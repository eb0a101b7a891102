//! Runs that rest: what an order to pause does, and what a person can do about a run that rests.

use outlast_wire::api::{AsksView, RunView};
use outlast_wire::words::{BlockReason, StateName, Wants, Word};

/// The answer to an order to pause. A turn that has begun is not cut short.
pub(crate) fn paused(view: &RunView) -> String {
    match view.state.known() {
        Some(StateName::Waiting | StateName::Blocked | StateName::Queued) => {
            format!("paused {}", view.id)
        }
        _ => format!("{} pauses after the turn it is at", view.id),
    }
}

/// Commands to type, the likeliest first, each with what it is for.
pub(crate) fn next_steps(view: &RunView) -> Vec<String> {
    let id = &view.id;
    if view.paused {
        return vec![format!("outlast resume {id}  lets it go on")];
    }
    let Some(reason) = blocked_by(view) else {
        return view.asks.as_ref().map(|asks| while_it_waits(id, asks)).unwrap_or_default();
    };
    match reason.wants() {
        Wants::Decision => vec![
            format!("outlast answer {id} --approve  lets it"),
            format!("outlast answer {id} --deny  does not"),
        ],
        Wants::Answer if reason.known() == Some(BlockReason::NeedsInput) => vec![
            format!("outlast answer {id} TEXT  answers it"),
            format!("outlast answer {id} --approve  allows what it asks for; --deny does not"),
        ],
        Wants::Answer => vec![format!("outlast answer {id} TEXT  answers it")],
        Wants::Look => after_a_look(id, &reason),
    }
}

/// What the agent of a running turn waits for.
fn while_it_waits(id: &str, asks: &AsksView) -> Vec<String> {
    match asks.tool {
        Some(_) => vec![
            format!("outlast answer {id} --approve  lets it"),
            format!("outlast answer {id} --deny  does not; with a TEXT instead it is told why"),
        ],
        None => vec![format!("outlast answer {id} TEXT  answers it")],
    }
}

/// What a person is asked: by a run that rests, or by an agent that waits in its turn.
pub(crate) fn question(view: &RunView) -> Option<&str> {
    let blocked = view.blocked.as_ref().and_then(|blocked| blocked.question.as_deref());
    blocked.or_else(|| view.asks.as_ref().and_then(|asks| asks.text.as_deref())).map(str::trim)
}

/// What lets a run go on that asks no question.
fn after_a_look(id: &str, reason: &Word<BlockReason>) -> Vec<String> {
    match reason.known() {
        Some(BlockReason::UnknownCallOutcome) => vec![
            format!("outlast answer {id} TEXT  tells it what became of the call"),
            format!("outlast resume {id}  lets it find out by itself"),
        ],
        Some(BlockReason::StallRestartsExhausted | BlockReason::NoProgress) => vec![
            format!("outlast send {id} TEXT  gives it a word on the way"),
            format!("outlast resume {id}  lets it try again"),
        ],
        Some(BlockReason::Recovered) => vec![
            format!("outlast logs {id}  shows what it did, then outlast resume {id} lets it go on"),
            format!("outlast stop {id}  ends it"),
        ],
        Some(BlockReason::AuthExpired) => {
            vec![format!("log the agent in again, then outlast resume {id}")]
        }
        _ => vec![format!("put right what is wrong, then outlast resume {id}")],
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
        outlast answer k3mx7q9w2r5t --approve  lets it
        outlast answer k3mx7q9w2r5t --deny  does not
        ");
        insta::assert_snapshot!(steps("agent_blocked"), @"outlast answer k3mx7q9w2r5t TEXT  answers it");
        insta::assert_snapshot!(steps("preflight_failed"), @"put right what is wrong, then outlast resume k3mx7q9w2r5t");
        insta::assert_snapshot!(steps("no_progress"), @r"
        outlast send k3mx7q9w2r5t TEXT  gives it a word on the way
        outlast resume k3mx7q9w2r5t  lets it try again
        ");
    }

    #[test]
    fn an_agent_that_waits_is_answered() {
        let mut view = sample::running_loop();
        let (kind, text) = ("permission".to_owned(), Some("Bash: make".to_owned()));
        view.asks = Some(AsksView { seq: 7, turn: 1, kind, tool: Some("Bash".to_owned()), text });
        insta::assert_snapshot!(next_steps(&view).join("\n"), @r"
        outlast answer k3mx7q9w2r5t --approve  lets it
        outlast answer k3mx7q9w2r5t --deny  does not; with a TEXT instead it is told why
        ");
        assert_eq!(question(&view), Some("Bash: make"));
    }

    #[test]
    fn what_goes_on_needs_nobody() {
        let mut view = sample::running_loop();
        assert!(next_steps(&view).is_empty());
        view.paused = true;
        assert_eq!(next_steps(&view), ["outlast resume k3mx7q9w2r5t  lets it go on"]);
    }
}
