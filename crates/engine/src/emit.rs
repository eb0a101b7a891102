//! The output policy, enforced here and nowhere else: what of a turn leaves the run by itself.

use crate::run::{Emission, Settling};
use crate::{OutputPolicy, Run, TurnOutcome, TurnStatus};

pub(crate) enum Emit {
    Now {
        to: Vec<String>,
        text: String,
    },
    /// A person has to approve first.
    Ask,
    Nothing,
}

pub(crate) fn decide(run: &Run, settling: &Settling) -> Emit {
    let policy = &run.spec.output;
    let text = run.previous.as_ref().map(|it| it.summary.clone()).unwrap_or_default();
    let is_escalation = matches!(settling.status, TurnStatus::Blocked | TurnStatus::Failed);
    let is_muted = policy.silent_unless_blocked && !is_escalation;
    if settling.emission == Emission::Settled
        || text.trim().is_empty()
        || policy.emit_to.is_empty()
        || is_muted
    {
        return Emit::Nothing;
    }
    if policy.require_approval_before_emit && settling.emission == Emission::Undecided {
        return Emit::Ask;
    }
    Emit::Now { to: policy.emit_to.clone(), text }
}

/// What a turn was worth.
pub(crate) fn classify(
    policy: &OutputPolicy,
    status: TurnStatus,
    calls: usize,
    is_progress: bool,
) -> TurnOutcome {
    match status {
        TurnStatus::Blocked | TurnStatus::Failed => TurnOutcome::EscalationBlocker,
        TurnStatus::Continue | TurnStatus::Done => {
            let is_quiet = policy.silent_unless_blocked && calls == 0;
            if is_quiet || !is_progress {
                TurnOutcome::NoOpSuccess
            } else {
                TurnOutcome::MeaningfulCompletion
            }
        }
    }
}
