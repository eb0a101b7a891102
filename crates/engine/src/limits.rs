//! The ceilings that the engine itself keeps. They are absolute, so no restart extends them.

use crate::{Budget, Channel, Context, Exceeded, Limit, Previous, Run, Time};

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
    let has_no_turn = limits.max_turns.is_some_and(|most| run.own_turns() >= most);
    if is_new_turn && (has_no_turn || run.pot(Channel::Turns).free() == Some(0)) {
        Some(Limit::MaxTurns)
    } else if run.lacks(Channel::Tokens) {
        Some(Limit::MaxTokens)
    } else if run.lacks(Channel::Money) {
        Some(Limit::MaxCost)
    } else {
        None
    }
}

/// True if the next attempt cannot be made only because live children hold what is left: it comes back, or is charged.
pub(crate) fn is_held_by_children(run: &Run) -> bool {
    held_by_children(run).is_some()
}

/// What live children hold of a run that cannot make its next attempt without it.
pub(crate) fn held_by_children(run: &Run) -> Option<Channel> {
    let (_, attempt) = crate::settle::upcoming(run);
    let channel = match spent(run, attempt) {
        Some(Limit::MaxTurns) => Channel::Turns,
        Some(Limit::MaxTokens) => Channel::Tokens,
        Some(Limit::MaxCost) => Channel::Money,
        Some(Limit::RunTimeout | Limit::TurnTimeout | Limit::StallWindow | Limit::Budget)
        | None => return None,
    };
    let pot = run.pot(channel);
    let has_turns = run.spec.limits.max_turns.is_none_or(|most| run.turns_committed < most);
    let has_room = pot.total.is_some_and(|total| pot.committed() < total);
    let is_held = has_room && pot.reserved > 0 && (channel != Channel::Turns || has_turns);
    is_held.then_some(channel)
}

/// The ceiling that an attempt has gone beyond while it is alive, by its own word.
pub(crate) fn over_mid_turn(run: &Run, context: &Context) -> Option<Limit> {
    if run.stop.is_some() || run.limit.is_some() {
        return None;
    }
    let live = run.live()?;
    let has_said = live.reported.is_some();
    if has_said && run.pot(Channel::Tokens).is_overdrawn() {
        Some(Limit::MaxTokens)
    } else if has_said && run.pot(Channel::Money).is_overdrawn() {
        Some(Limit::MaxCost)
    } else if let Budget::Spent { then: Exceeded::End, .. } = context.budget {
        Some(Limit::Budget)
    } else {
        None
    }
}

/// The limits that can be near, with what is used of each.
fn used(run: &Run, limit: Limit, now: Time) -> Option<(u64, u64)> {
    let limits = &run.spec.limits;
    let (used, max) = match limit {
        Limit::RunTimeout => (run.clock.used_ms(now), limits.run_timeout_ms),
        Limit::MaxTurns => (run.own_turns().into(), limits.max_turns.map(u64::from)),
        Limit::MaxTokens => (run.spend.tokens(), limits.max_tokens),
        Limit::MaxCost => (run.spend.cost_usd_micros, limits.max_cost_usd_micros),
        Limit::TurnTimeout | Limit::StallWindow | Limit::Budget => return None,
    };
    Some((used, max?))
}

/// How much of a limit is used, in per cent.
pub(crate) fn percent(run: &Run, limit: Limit, now: Time) -> Option<u64> {
    let (used, max) = used(run, limit, now)?;
    u64::try_from(u128::from(used) * 100 / u128::from(max.max(1))).ok()
}

/// Limits of which most is used up and not all, and of which that was not said yet.
pub(crate) fn newly_near(run: &Run, now: Time) -> Vec<(Limit, u64, u64)> {
    let near = u64::from(run.spec.health.near_limit_percent);
    let limits = [Limit::MaxTurns, Limit::MaxTokens, Limit::MaxCost, Limit::RunTimeout];
    limits
        .into_iter()
        .filter(|limit| near > 0 && !run.neared.contains(limit))
        .filter_map(|limit| {
            let (used, max) = used(run, limit, now)?;
            let is_near = percent(run, limit, now).is_some_and(|percent| percent >= near);
            (is_near && used < max).then_some((limit, used, max))
        })
        .collect()
}

/// When most of the run's time will be used up, while it passes and that was not said yet.
pub(crate) fn near_at(run: &Run) -> Option<Time> {
    let is_over =
        run.neared.contains(&Limit::RunTimeout) || run.stop.is_some() || run.limit.is_some();
    let near = u128::from(run.spec.health.near_limit_percent);
    if is_over || near == 0 || near >= 100 {
        return None;
    }
    let since = run.clock.ticking_since?;
    let most = u128::from(run.spec.limits.run_timeout_ms?);
    let near_ms = u64::try_from((most * near).div_ceil(100)).ok()?;
    Some(since.plus_ms(near_ms.saturating_sub(run.clock.used_ms)))
}

pub(crate) fn stalls_are_spent(run: &Run) -> bool {
    run.spec.limits.max_stall_restarts.is_some_and(|most| run.counters.stalls > most)
}

pub(crate) fn is_going_nowhere(run: &Run) -> bool {
    run.spec.limits.no_progress_turns.is_some_and(|most| run.counters.no_progress >= most)
}

/// Whether a turn changed anything: in the workspace, or in what it asks for. Prose does not count, and what cannot be
/// told is not held against it. Asked once, when the turn commits; the event keeps the verdict.
pub(crate) fn is_progress(
    run: &Run,
    now: &Previous,
    workspace: Option<&str>,
    is_waiting: bool,
) -> bool {
    let is_changed = match (&run.digest, workspace) {
        (Some(before), Some(after)) => before != after,
        (None, _) | (_, None) => true,
    };
    is_changed || asks_anew(run, now, is_waiting)
}

/// Whether a turn asks for something that the one before did not.
pub(crate) fn asks_anew(run: &Run, now: &Previous, is_waiting: bool) -> bool {
    let asks_anew = match &run.previous {
        Some(before) => {
            (before.status, &before.next_task, &before.calls)
                != (now.status, &now.next_task, &now.calls)
        }
        None => now.next_task.is_some() || !now.calls.is_empty(),
    };
    asks_anew || is_waiting
}
