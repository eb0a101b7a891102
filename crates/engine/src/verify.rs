//! Done is a claim: the host's checks verify it.

use crate::advance::Facts;
use crate::{
    BlockReason, Context, Purpose, Reason, ReasonCode, Run, StateName, Verdict, reason, rest,
};

pub(crate) fn next(run: &Run, context: &Context) -> Option<Facts> {
    if run.is_busy() {
        return None;
    }
    let claim = run.claim.expect("a verifying run has a claim");
    if claim.has_failed {
        return Some(refuted(run, context));
    }
    if usize::try_from(claim.passed).is_ok_and(|passed| passed >= run.spec.checks.done.len()) {
        let why = Reason {
            evidence: reason::errand_evidence(run),
            ..reason::of("done, and the checks agree", ReasonCode::Done)
        };
        return Some(vec![reason::finishing(run, context.now, Verdict::Completed, why)]);
    }
    let purpose = Purpose::Done { check: claim.passed };
    Some(rest::unless_paused(run, context, || reason::errand(run, context, purpose)))
}

/// The claim is refuted: the next turn is told why, unless it has been told too often.
fn refuted(run: &Run, context: &Context) -> Facts {
    let failed = run.previous.as_ref().and_then(|previous| previous.failed_checks.last());
    let what = failed.map_or_else(String::new, |it| format!("`{}`: {}", it.command, it.why));
    let why = |code: ReasonCode| Reason {
        evidence: reason::errand_evidence(run),
        ..reason::of(&format!("not done: {what}"), code)
    };
    let is_over = |most: u32| run.counters.failed_claims >= most;
    if run.spec.limits.no_progress_turns.is_some_and(is_over) {
        return reason::blocked(run, context, why(BlockReason::DoneCheckFailed.into()));
    }
    vec![(context.now, reason::to_state(run, StateName::Running, why(ReasonCode::CheckFailed)))]
}
