//! The end of a run: when nothing of it is alive, what has to be tidied up, and the workspace's own end.

use crate::advance::Facts;
use crate::run::{Done, Removal, WorkspaceState};
use crate::{
    Actor, Context, Hook, Planted, Purpose, ReasonCode, Run, State, StopMode, Strategy, Verdict,
    reason, settle,
};

/// A run that is to be ended is finishing once nothing of it is alive.
pub(crate) fn when_gone(run: &Run, context: &Context) -> Option<Facts> {
    if run.is_busy() {
        return None;
    }
    let (verdict, mut why) = match (run.stop, run.limit) {
        (Some(_), _) => (Verdict::Stopped, reason::of("stopped on request", ReasonCode::Stopped)),
        (None, Some(limit)) => {
            (Verdict::Exhausted, reason::of(settle::limit_text(run, limit), limit.code()))
        }
        (None, None) => unreachable!("asked only when one of them is set"),
    };
    if run.stop.is_some() {
        why.actor = Actor::User;
    }
    // An attempt that was ended is the end of the run; one that failed long ago is not.
    let ended_at = run.attempt.as_ref().and_then(|it| it.state.end.as_ref()).map(|(_, at)| *at);
    let is_current = run.state == State::Running && run.errand.is_none();
    let at = ended_at.filter(|_| is_current).unwrap_or(context.now);
    Some(vec![reason::finishing(run, at, verdict, why)])
}

/// The hook after the run, once, if the one before it went well.
pub(crate) fn clean_up(run: &Run, context: &Context) -> Option<Facts> {
    (!run.is_busy() && is_hook_due(run))
        .then(|| reason::errand(run, context, Purpose::Hook { hook: Hook::AfterRun }))
}

fn is_hook_due(run: &Run) -> bool {
    run.spec.hooks.after_run.is_some()
        && run.preparation.before_run == Done::Well
        && !run.has_cleaned_up
}

/// True if a workspace is left that was never made whole. What an older journal takes for that may have been made
/// whole since, and may hold work.
pub(crate) fn is_half_made(run: &Run) -> bool {
    let made = &run.preparation;
    let is_ours = made.workspace == WorkspaceState::Ready { created: true };
    let lacks_files = run.spec.workspace.strategy == Strategy::Worktree && !made.is_checked_out;
    let lacks_hook = run.spec.hooks.after_create.is_some() && made.after_create != Done::Well;
    let is_unplanted = matches!(run.snapshots.planted, Planted::Due | Planted::Failed { .. });
    run.recovered.is_none() && is_ours && (lacks_files || is_unplanted || lacks_hook)
}

/// True if nothing keeps a finishing run from its end any more.
pub(crate) fn is_tidy(run: &Run) -> bool {
    run.live_errand().is_none()
        && !is_hook_due(run)
        && !is_half_made(run)
        && !run.ends_after_children()
}

/// The hook before the workspace of an ended run is removed.
pub(crate) fn remove(run: &Run, context: &Context) -> Option<Facts> {
    let is_due = run.removal == Removal::Asked && !run.is_busy() && !has_run_hook(run);
    is_due.then(|| reason::errand(run, context, Purpose::Hook { hook: Hook::BeforeRemove }))
}

/// True once the hook has been seen to, if there is one.
pub(crate) fn has_run_hook(run: &Run) -> bool {
    run.spec.hooks.before_remove.is_none()
        || run.errand.as_ref().is_some_and(|last| {
            last.purpose == Purpose::Hook { hook: Hook::BeforeRemove } && !last.state.is_live()
        })
}

/// How what is alive or left of the run is to be ended, if it is.
pub(crate) fn stop_mode(run: &Run) -> Option<StopMode> {
    let for_limit = run.limit.filter(|_| !is_ending(run)).map(|_| StopMode::Gracefully);
    // No process may be left of one step when the next one starts.
    let is_idle = run.live().is_none() && run.live_errand().is_none();
    let between = (is_idle && has_more_to_run(run)).then_some(StopMode::Gracefully);
    for_limit.or(between)
}

/// True if another step may follow by itself: any, or the hook after the run.
fn has_more_to_run(run: &Run) -> bool {
    match run.state {
        State::Finishing { .. } => is_hook_due(run),
        State::Ended { .. } => false,
        State::Queued
        | State::Preparing
        | State::Running
        | State::Waiting { .. }
        | State::Verifying
        | State::Blocked { .. } => true,
    }
}

fn is_ending(run: &Run) -> bool {
    matches!(run.state, State::Finishing { .. } | State::Ended { .. })
}
