//! The ceilings that the engine itself keeps. They are absolute, so no restart extends them.

use crate::{Limit, Run, Time};

/// When the run's time is over, while it passes.
pub(crate) fn deadline(run: &Run) -> Option<Time> {
    let since = run.clock.ticking_since?;
    let left_ms = run.spec.limits.run_timeout_ms?.saturating_sub(run.clock.used_ms);
    Some(since.plus_ms(left_ms))
}

/// True if the deadline has passed and that is not known yet.
pub(crate) fn is_time_over(run: &Run, now: Time) -> bool {
    run.limit.is_none()
        && run.stop.is_none()
        && deadline(run).is_some_and(|deadline| now >= deadline)
}

/// The ceiling that keeps the next attempt from being made, if one does.
pub(crate) fn spent(run: &Run, attempt: u32) -> Option<Limit> {
    let limits = &run.spec.limits;
    let is_new_turn = attempt == 1;
    if is_new_turn && limits.max_turns.is_some_and(|most| run.turns_committed >= most) {
        Some(Limit::MaxTurns)
    } else if limits.max_tokens.is_some_and(|most| run.spend.tokens() >= most) {
        Some(Limit::MaxTokens)
    } else if limits.max_cost_usd_micros.is_some_and(|most| run.spend.cost_usd_micros >= most) {
        Some(Limit::MaxCost)
    } else {
        None
    }
}

pub(crate) fn stalls_are_spent(run: &Run) -> bool {
    run.spec.limits.max_stall_restarts.is_some_and(|most| run.counters.stalls > most)
}

pub(crate) fn is_going_nowhere(run: &Run) -> bool {
    run.spec.limits.no_progress_turns.is_some_and(|most| run.counters.no_progress >= most)
}
