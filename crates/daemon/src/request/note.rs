//! The note by which an attempt learns what became of the one before it.
//!
//! Built from the journal; the cause is one neutral word, and no provider's error text is passed on.

use outlast_agents::is_driven;
use outlast_engine::{
    AgentAnswer, AgentQuestion, Attempt, Child, Decision, Impediment, Outcome, Run, Undo, WentBack,
};
use serde_json::{Value, json};

use super::calls;

pub(crate) struct Note {
    pub(crate) cause: &'static str,
    pub(crate) text: String,
}

/// The note for the current attempt; none for the first at its turn.
pub(super) fn of(run: &Run) -> Option<Note> {
    let attempt = run.attempt.as_ref()?;
    let Some(after) = attempt.after.as_ref() else { return at_first(run, attempt) };
    let (cause, happened) = cause(after);
    let (turn, number) = (attempt.turn, attempt.number);
    let go_on = match &run.snapshots.undo {
        _ if run.went_back(turn, number).is_some() => {
            run.went_back(turn, number).map(went_back).unwrap_or_default()
        }
        Undo::Restored { files, .. } if run.is_after_restore(turn, number) => format!(
            "The workspace was put back to the end of turn {}; what the interrupted attempt had changed is \
             not in it ({files} files; kept). Do this turn again from there.",
            turn - 1
        ),
        _ => "Continue from the workspace as it is; do not start over.".to_owned(),
    };
    let mut text = format!(
        "This is the same run, turn {turn}, attempt {number}. The attempt before it {happened}. {go_on}"
    );
    // What an agent that is driven came to grief over is its provider's text, which no prompt has.
    let is_own = !is_driven(&run.spec.agent, &run.spec.driving);
    if let Some(why) = wrong_with(after).filter(|_| is_own) {
        text.push_str(&format!(" What was wrong with the response: {why}."));
    }
    if let Some(asked) = asked(attempt, after) {
        text.push_str(&asked);
    }
    if let Some(notes) = calls::noted(run) {
        text.push_str(&notes);
    }
    if let Some(calls) = calls::told(run) {
        text.push_str(&calls);
    }
    if let Some(children) = children(run) {
        text.push_str(&format!(" Runs that were made as its children: {children}."));
    }
    if run.given().next().is_some() {
        text.push_str(" Messages that it may have seen are given again.");
    }
    Some(Note { cause, text })
}

/// For the first attempt at a turn: only if it does not go on where the last turn was.
fn at_first(run: &Run, attempt: &Attempt) -> Option<Note> {
    let (turn, number) = (attempt.turn, attempt.number);
    if let Some(back) = run.went_back(turn, number) {
        let text = format!("This is the same run, turn {turn}. {}", went_back(back));
        return Some(Note { cause: "restored", text });
    }
    let fork = run.spec.fork.as_ref().filter(|_| run.is_first_of_fork(turn, number))?;
    let text = format!(
        "This run was forked from run {} at the end of turn {}: the workspace is a copy of what that turn left, without \
         ignored files. What that run did later is not in it. Continue with turn {turn}.",
        fork.run, fork.turn
    );
    Some(Note { cause: "forked", text })
}

fn went_back(back: &WentBack) -> String {
    format!(
        "A person had the workspace put back to the end of turn {}; what was changed after that is not in it ({} files; \
         kept). Go on from there.",
        back.back_to, back.files
    )
}

/// So many questions are told, the newest of them.
const MOST_QUESTIONS: usize = 8;

/// What the attempt before had asked, and what was decided since.
fn asked(attempt: &Attempt, after: &Outcome) -> Option<String> {
    let questions: Vec<&AgentQuestion> = attempt.asked_before.iter().collect();
    let newest = &questions[questions.len().saturating_sub(MOST_QUESTIONS)..];
    let told = newest.iter().map(|question| {
        let decided = match (&question.answer, &question.tool) {
            (None, _) => "That was not answered; ask again if it still matters".to_owned(),
            (Some(answer), Some(_)) => decided(Some(answer.decision)).to_owned(),
            (Some(AgentAnswer { text: None, decision }), None) => {
                decided(Some(*decision)).to_owned()
            }
            (Some(AgentAnswer { text: Some(_), .. }), None) => "A person has answered".to_owned(),
        };
        let said = question.answer.as_ref().and_then(|it| it.text.as_ref());
        let said = said.map(|text| format!(" The person said: {text}")).unwrap_or_default();
        format!(" It had asked: {}. {decided}.{said}", question.text)
    });
    let told: String = told.collect();
    match after {
        _ if !told.is_empty() => Some(told),
        Outcome::Impeded { by: Impediment::Approval, why, .. } => {
            Some(format!(" It had asked: {why}. {}.", decided(attempt.decision)))
        }
        _ => None,
    }
}

fn decided(decision: Option<Decision>) -> &'static str {
    match decision {
        Some(Decision::Approve) => "A person has allowed it",
        Some(Decision::Deny) => "A person has not allowed it; go on without it",
        Some(Decision::Reply) | None => "A person has seen it",
    }
}

fn wrong_with(outcome: &Outcome) -> Option<&str> {
    if let Outcome::BadResponse { why, .. } = outcome { Some(why) } else { None }
}

/// Each child and what has become of it, if there are any.
fn children(run: &Run) -> Option<String> {
    let state = |child: &Child| match &child.end {
        None => "still goes on",
        Some(end) => end.verdict.name().word(),
    };
    let children = run.children.iter().map(|(id, child)| format!("{id} ({})", state(child)));
    Some(children.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

/// In one word, and in a few.
fn cause(outcome: &Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Exited { .. } | Outcome::Signaled { .. } => ("crashed", "ended without an answer"),
        Outcome::BadResponse { .. } => {
            ("bad_response", "ended with a response that cannot be used")
        }
        Outcome::Impeded { by: Impediment::Provider, .. } => {
            ("rate_limited", "was cut off by a limit of its provider, which is over")
        }
        Outcome::Impeded { by: Impediment::Login, .. } => {
            ("auth_expired", "was cut off because its login was not valid")
        }
        Outcome::Impeded { by: Impediment::Approval | Impediment::Question, .. } => {
            ("asked", "ended with a question to a person, which has been answered since")
        }
        Outcome::Stalled { .. } => ("stalled", "was silent for too long and was ended"),
        Outcome::TimedOut { .. } => ("timed_out", "took too long and was ended"),
        Outcome::Stopped { .. } => ("stopped", "was stopped"),
        Outcome::Interrupted { by } if by == "pause" => {
            ("interrupted", "was interrupted because everything was to rest")
        }
        Outcome::Interrupted { .. } => {
            ("interrupted", "was interrupted when the machine went down")
        }
        Outcome::Lost => ("lost", "ended unseen, so how far it came is not known"),
        Outcome::NeverStarted { .. } => ("never_started", "never started"),
    }
}

impl Note {
    pub(super) fn json(&self, run: &Run) -> Value {
        let attempt = run.attempt.as_ref();
        json!({
            "cause": self.cause,
            "text": self.text,
            "turn": attempt.map(|it| it.turn),
            "attempt": attempt.map(|it| it.number),
            "previous_attempt": attempt.map(|it| it.number.saturating_sub(1)),
        })
    }
}
