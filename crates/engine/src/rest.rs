//! A run at rest, and how it goes on: the queue, the delay, the pause, what an agent waits for.

use crate::advance::Facts;
use crate::{
    Budget, Context, Event, Fact, Reason, ReasonCode, Run, Slot, Start, State, Verdict, WaitCause,
    limits, reason,
};

/// What a waiting run does now, if its wait is over.
pub(crate) fn wait_on(run: &Run, context: &Context) -> Option<Facts> {
    let State::Waiting { cause, since, until } = run.state else { return None };
    // A clock that was set back must not make a wait longer.
    let is_due = until.is_some_and(|until| context.now >= until) || context.now < since;
    let has_message = !run.inbox.unread.is_empty();
    match cause {
        WaitCause::Backoff if is_due || until.is_none() => {
            go_on(run, context, reason::of("the delay is over", ReasonCode::BackoffOver))
        }
        WaitCause::RateLimit if is_due => {
            go_on(run, context, reason::of("the rate limit is over", ReasonCode::RateLimitOver))
        }
        WaitCause::Slot | WaitCause::RestartPacing => {
            go_on(run, context, reason::of("a slot is free", ReasonCode::SlotFree))
        }
        // What they do not use is free when they have ended.
        WaitCause::Budget if limits::is_held_by_children(run) => None,
        WaitCause::Budget => match &context.budget {
            Budget::Spent { .. } if !is_due || context.now == since => None,
            Budget::Spent { .. } | Budget::Room => {
                go_on(run, context, reason::of("there is budget again", ReasonCode::BudgetFree))
            }
        },
        // A message does not start a run before its time.
        WaitCause::Timer | WaitCause::Message if has_message && run.has_begun() => {
            go_on(run, context, reason::of("a message came", ReasonCode::Message))
        }
        WaitCause::Children if run.has_word_of_others() => {
            go_on(run, context, reason::of("a message came", ReasonCode::Message))
        }
        WaitCause::Children if run.live_children() == 0 => {
            go_on(run, context, reason::of("its children have ended", ReasonCode::Children))
        }
        WaitCause::Timer if is_due => {
            go_on(run, context, reason::of("the time has come", ReasonCode::Timer))
        }
        WaitCause::Predecessor if run.predecessor.is_some() => {
            go_on(run, context, reason::of("the run before it has ended", ReasonCode::After))
        }
        WaitCause::Paused if !run.is_to_rest() => {
            go_on(run, context, reason::of("resumed", ReasonCode::Resumed))
        }
        WaitCause::Backoff
        | WaitCause::RateLimit
        | WaitCause::Timer
        | WaitCause::Children
        | WaitCause::Message
        | WaitCause::Predecessor
        | WaitCause::Paused => None,
    }
}

/// What keeps a run from its start, or ends it before that.
fn not_yet(run: &Run, context: &Context) -> Option<Facts> {
    if run.has_begun() {
        return None;
    }
    let Start { at, after } = &run.spec.start;
    match (after, run.predecessor) {
        (Some(after), None) => {
            let why =
                reason::of(&format!("starts after run {}", after.called()), ReasonCode::After);
            return Some(vec![(
                context.now,
                reason::waiting(run, WaitCause::Predecessor, None, why),
            )]);
        }
        (Some(after), Some(verdict)) if !after.any && verdict != Verdict::Completed => {
            let text =
                format!("was to start after run {}, which {}", after.called(), ended(verdict));
            let why = reason::of(&text, ReasonCode::AfterFailed);
            return Some(vec![reason::finishing(run, context.now, Verdict::Failed, why)]);
        }
        (Some(_), Some(_)) | (None, _) => {}
    }
    let at = at.filter(|at| *at > context.now)?;
    let why = reason::of("starts at the time it was given", ReasonCode::Timer);
    Some(vec![(context.now, reason::waiting(run, WaitCause::Timer, Some(at), why))])
}

fn ended(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Completed => "completed",
        Verdict::Failed => "failed",
        Verdict::Stopped => "was stopped",
        Verdict::Exhausted => "was exhausted",
    }
}

/// Takes the run back to where it was, if it may go there now.
pub(crate) fn go_on(run: &Run, context: &Context, why: Reason) -> Option<Facts> {
    if run.is_busy() {
        return None;
    }
    if run.is_to_rest() {
        return Some(pause(run, context));
    }
    if let Some(facts) = not_yet(run, context) {
        return Some(facts);
    }
    match (context.slot, &run.state) {
        (Slot::Free, _) => Some(vec![(context.now, reason::to_state(run, run.home(), why))]),
        (
            Slot::Taken | Slot::Paced,
            State::Queued
            | State::Waiting { cause: WaitCause::Slot | WaitCause::RestartPacing, .. },
        ) => None,
        (Slot::Paced, _) => Some(pace(run, context)),
        (Slot::Taken, _) => {
            let why = reason::of("others are running", ReasonCode::Slot);
            Some(vec![(context.now, reason::waiting(run, WaitCause::Slot, None, why))])
        }
    }
}

/// The run would start something, and others are started first after a restart.
fn pace(run: &Run, context: &Context) -> Facts {
    let why = reason::of("held back after a restart", ReasonCode::ResumeHeld);
    vec![(context.now, reason::waiting(run, WaitCause::RestartPacing, None, why))]
}

/// True if these events rest a run that would have gone on, had it not been held back.
pub(crate) fn is_paced(events: &[Event]) -> bool {
    events.iter().any(|event| match &event.fact {
        Fact::StateChanged { why, cause: Some(word), .. } => {
            WaitCause::of(*word, &why.reason_code) == WaitCause::RestartPacing
        }
        _ => false,
    })
}

/// The run rests before it would start something.
pub(crate) fn pause(run: &Run, context: &Context) -> Facts {
    vec![(context.now, reason::waiting(run, WaitCause::Paused, None, paused(run)))]
}

fn paused(run: &Run) -> Reason {
    let text =
        if run.is_paused_with_all { "paused with every other run" } else { "paused on request" };
    Reason { actor: crate::Actor::User, ..reason::of(text, ReasonCode::Paused) }
}

/// Starts something, unless the run is to rest before it does.
pub(crate) fn unless_paused(
    run: &Run,
    context: &Context,
    start: impl FnOnce() -> Vec<(crate::Time, Fact)>,
) -> Facts {
    match context.slot {
        _ if run.is_to_rest() => pause(run, context),
        Slot::Paced => pace(run, context),
        Slot::Free | Slot::Taken => start(),
    }
}
