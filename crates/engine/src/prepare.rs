//! Making a run ready: its workspace, then the checks and the hook before its first turn.

use crate::advance::Facts;
use crate::run::{Done, WorkspaceState};
use crate::{
    BlockReason, Context, Hook, Planted, Purpose, Reason, ReasonCode, Run, StateName, Strategy,
    Verdict, reason, rest,
};

/// The next thing that is missing.
pub(crate) fn next(run: &Run, context: &Context) -> Option<Facts> {
    if run.is_busy() {
        return None;
    }
    let created = match &run.preparation.workspace {
        // Making it is an effect.
        WorkspaceState::Unmade => return None,
        WorkspaceState::Refused { why } => {
            let why = reason::of(&format!("no workspace: {why}"), ReasonCode::WorkspaceFailed);
            return Some(vec![reason::finishing(run, context.now, Verdict::Failed, why)]);
        }
        WorkspaceState::Ready { created } => *created,
        WorkspaceState::Discarded => unreachable!("a workspace is discarded while finishing"),
    };
    match missing(run, created) {
        Missing::Errand(purpose) => {
            Some(rest::unless_paused(run, context, || reason::errand(run, context, purpose)))
        }
        Missing::Nothing => {
            let why = reason::of("ready", ReasonCode::Ready);
            Some(vec![(context.now, reason::to_state(run, StateName::Running, why))])
        }
        Missing::Hope { why, is_over: true } => {
            Some(vec![reason::finishing(run, context.now, Verdict::Failed, why)])
        }
        Missing::Hope { why, is_over: false } => Some(reason::blocked(run, context, why)),
    }
}

enum Missing {
    Errand(Purpose),
    /// Something failed; a person may want to try again unless it is over.
    Hope {
        why: Reason,
        is_over: bool,
    },
    Nothing,
}

fn missing(run: &Run, created: bool) -> Missing {
    let ready = &run.preparation;
    let (hooks, checks) = (&run.spec.hooks, &run.spec.checks);
    if created && let Done::Badly { why } = &ready.after_create {
        let (what, code) = match run.errand.as_ref().map(|errand| &errand.purpose) {
            Some(Purpose::Checkout) => {
                ("no workspace: the checkout failed", ReasonCode::WorkspaceFailed)
            }
            _ => ("hook after_create failed", ReasonCode::AfterCreateFailed),
        };
        return Missing::Hope { why: failed(run, what, why, code), is_over: true };
    }
    let is_worktree = run.spec.workspace.strategy == Strategy::Worktree;
    if created && is_worktree && !ready.is_checked_out {
        return Missing::Errand(Purpose::Checkout);
    }
    match &run.snapshots.planted {
        Planted::Due if created => {
            if let Some(fork) = &run.spec.fork {
                return Missing::Errand(Purpose::Restore { to: fork.point.commit.clone() });
            }
        }
        Planted::Due => {
            let why = "its directory was there before";
            return Missing::Hope { why: unplanted(why), is_over: true };
        }
        Planted::Failed { why } => {
            return Missing::Hope { why: unplanted(why), is_over: true };
        }
        Planted::NotDue | Planted::Done => {}
    }
    if created && hooks.after_create.is_some() && ready.after_create == Done::NotYet {
        return Missing::Errand(Purpose::Hook { hook: Hook::AfterCreate });
    }
    if let Some(failure) = failed_check(run) {
        let why = failed(run, "not ready", &failure, BlockReason::PreflightFailed.into());
        return Missing::Hope { why, is_over: false };
    }
    if usize::try_from(ready.ready).is_ok_and(|passed| passed < checks.before_run.len()) {
        return Missing::Errand(Purpose::Ready { check: ready.ready });
    }
    match (&hooks.before_run, &ready.before_run) {
        (Some(_), Done::NotYet) => Missing::Errand(Purpose::Hook { hook: Hook::BeforeRun }),
        (Some(_), Done::Badly { why }) => {
            let why = failed(run, "hook before_run failed", why, ReasonCode::BeforeRunFailed);
            Missing::Hope { why, is_over: true }
        }
        (Some(_), Done::Well) | (None, _) => Missing::Nothing,
    }
}

/// The files that a fork begins with are not there.
fn unplanted(why: &str) -> Reason {
    let text = format!("no workspace: the files of the turn are not in it: {why}");
    reason::of(&text, ReasonCode::WorkspaceFailed)
}

/// Why the check that was just asked said no. One that a person had asked again is asked again.
fn failed_check(run: &Run) -> Option<String> {
    let errand = run.errand.as_ref()?;
    let Purpose::Ready { check } = errand.purpose else { return None };
    let is_current = check == run.preparation.ready && run.preparation.has_asked;
    match errand.result() {
        Some(crate::errand::Result::Failed { why }) if is_current => {
            let at = usize::try_from(check).ok()?;
            let command = run.spec.checks.before_run.get(at)?;
            Some(format!("`{command}`: {why}"))
        }
        _ => None,
    }
}

/// What failed, why, and the end of what it wrote.
fn failed(run: &Run, what: &str, why: &str, code: ReasonCode) -> Reason {
    let tail = run.errand.as_ref().map(|errand| last_line(&errand.tail)).unwrap_or_default();
    let told = if tail.is_empty() { String::new() } else { format!(": {tail}") };
    Reason {
        evidence: reason::errand_evidence(run),
        ..reason::of(&format!("{what}: {why}{told}"), code)
    }
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    line.chars().take(200).collect()
}
