//! A live attempt says what it has used up so far. It counts at once.

use crate::handle::Draft;
use crate::spend::{self, Charge};
use crate::{Context, Fact, Limits, Run, Usage};

/// Less than this, or than a part of what is known, is not worth an event where nothing is limited.
const TOKENS: u64 = 1000;
const COST_USD_MICROS: u64 = 10_000;
const PART: u64 = 20;

/// So many parts of a ceiling are told apart: an attempt writes no more events than that for each.
const PARTS_OF_CEILING: u64 = 100;

pub(super) fn handle(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    usage: &Usage,
    context: &Context,
) {
    let Some(live) = draft.run().live().filter(|live| live.is(turn, attempt)) else { return };
    let before = live.reported;
    let charge = spend::reported(before.as_ref(), usage);
    if is_news(draft.run(), before.as_ref(), &charge) {
        draft.push(context.now, Fact::UsageReported { turn, attempt, charge });
    }
}

/// An agent may say what it uses with every word; the journal hears of what makes a difference.
fn is_news(run: &Run, before: Option<&Charge>, charge: &Charge) -> bool {
    let Some(before) = before else { return true };
    let limits = &run.spec.limits;
    let tokens = charge.tokens().saturating_sub(before.tokens());
    let cost = charge.cost_usd_micros.saturating_sub(before.cost_usd_micros);
    let is_over = |ceiling: Option<u64>, spent: u64, more: u64| {
        ceiling.is_some_and(|most| spent < most && spent.saturating_add(more) >= most)
    };
    tokens >= step(limits.max_tokens, TOKENS, before.tokens())
        || cost >= step(limits.max_cost_usd_micros, COST_USD_MICROS, before.cost_usd_micros)
        || is_over(limits.max_tokens, run.spend.tokens(), tokens)
        || is_over(limits.max_cost_usd_micros, run.spend.cost_usd_micros, cost)
        || crosses_near(limits, run, tokens, cost)
}

fn step(ceiling: Option<u64>, least: u64, known: u64) -> u64 {
    match ceiling {
        Some(ceiling) => (ceiling / PARTS_OF_CEILING).max(1),
        None => least.max(known / PART),
    }
}

fn crosses_near(limits: &Limits, run: &Run, tokens: u64, cost: u64) -> bool {
    let percent = u128::from(run.spec.health.near_limit_percent);
    let crosses = |ceiling: Option<u64>, spent: u64, more: u64| {
        ceiling.is_some_and(|most| {
            let near = u128::from(most) * percent;
            u128::from(spent) * 100 < near && u128::from(spent.saturating_add(more)) * 100 >= near
        })
    };
    crosses(limits.max_tokens, run.spend.tokens(), tokens)
        || crosses(limits.max_cost_usd_micros, run.spend.cost_usd_micros, cost)
}
