//! What a run has used up. What was not reported is charged at its reservation, and marked.

use serde::{Deserialize, Serialize};

use crate::{Limits, Run, RunSpec, Usage};

/// Turns that a ceiling is shared among when the turns have none themselves.
const TURNS_WITHOUT_A_LIMIT: u32 = 20;

/// What one attempt is charged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd_micros: u64,
    /// False if any of it is a reservation, because the agent did not say.
    pub known: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spend {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd_micros: u64,
    pub known: bool,
}

impl Default for Spend {
    fn default() -> Self {
        Self {
            input_tokens: 0,
            output_tokens: 0,
            cached_tokens: 0,
            cost_usd_micros: 0,
            known: true,
        }
    }
}

impl Charge {
    /// What counts against a ceiling on tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The same as a floor: what a turn may use up in money counts, unless more was heard.
    pub(crate) fn at_least(self, limits: &Limits) -> Self {
        let reserved = share(limits.max_cost_usd_micros, limits).unwrap_or(0);
        Self { cost_usd_micros: self.cost_usd_micros.max(reserved), known: false, ..self }
    }

    /// True if nothing of `other` is missing in this.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.input_tokens >= other.input_tokens
            && self.output_tokens >= other.output_tokens
            && self.cached_tokens >= other.cached_tokens
            && self.cost_usd_micros >= other.cost_usd_micros
    }

    /// What was said, as an agent would have said it; nothing is said of what is nothing and not known.
    fn as_said(&self) -> Usage {
        let tokens = |count: u64| Some(count).filter(|_| self.known || self.tokens() > 0);
        Usage {
            input_tokens: tokens(self.input_tokens),
            output_tokens: tokens(self.output_tokens),
            cached_tokens: tokens(self.cached_tokens),
            cost_usd_micros: Some(self.cost_usd_micros).filter(|cost| self.known || *cost > 0),
        }
    }
}

impl Spend {
    /// An attempt has ended: what it had said so far is replaced by what it is charged with.
    pub(crate) fn replace(&mut self, reported: Option<&Charge>, charge: Option<&Charge>) {
        match charge {
            Some(charge) => {
                self.exchange(reported, charge);
                self.known &= charge.known;
            }
            None => self.known = false,
        }
    }

    /// What an attempt has used up by now, instead of what it had when it last said so. Never less than that.
    pub(crate) fn exchange(&mut self, before: Option<&Charge>, now: &Charge) {
        let before = before.copied().unwrap_or_default();
        let grow = |spent: &mut u64, before: u64, now: u64| {
            *spent = spent.saturating_add(now.saturating_sub(before));
        };
        grow(&mut self.input_tokens, before.input_tokens, now.input_tokens);
        grow(&mut self.output_tokens, before.output_tokens, now.output_tokens);
        grow(&mut self.cached_tokens, before.cached_tokens, now.cached_tokens);
        grow(&mut self.cost_usd_micros, before.cost_usd_micros, now.cost_usd_micros);
    }

    /// What counts against the ceiling on tokens: what was read anew and what was written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// What a live attempt has used up by its own word, given what it said before: it cannot take that back.
pub(crate) fn reported(before: Option<&Charge>, usage: &Usage) -> Charge {
    let before = before.copied().unwrap_or_default();
    let said = before.as_said();
    let most = |now: Option<u64>, before: u64| now.unwrap_or(0).max(before);
    let has = |now: Option<u64>, before: Option<u64>| now.or(before).is_some();
    let says_tokens =
        has(usage.input_tokens, said.input_tokens) || has(usage.output_tokens, said.output_tokens);
    Charge {
        input_tokens: most(usage.input_tokens, before.input_tokens),
        output_tokens: most(usage.output_tokens, before.output_tokens),
        cached_tokens: most(usage.cached_tokens, before.cached_tokens),
        cost_usd_micros: most(usage.cost_usd_micros, before.cost_usd_micros),
        known: says_tokens && has(usage.cost_usd_micros, said.cost_usd_micros),
    }
}

/// What an attempt that ran is charged with; `None` if nothing was said and nothing is limited. What it said
/// while it ran is said.
pub(crate) fn charge(
    limits: &Limits,
    usage: Option<&Usage>,
    reported: Option<&Charge>,
) -> Option<Charge> {
    let streamed = reported.map(Charge::as_said).unwrap_or_default();
    let answered = usage.copied().unwrap_or_default();
    // The later word counts, as far as it is not less.
    let later = |answered: Option<u64>, streamed: Option<u64>| match (answered, streamed) {
        (Some(answered), Some(streamed)) => Some(answered.max(streamed)),
        (answered, streamed) => answered.or(streamed),
    };
    let said = Usage {
        input_tokens: later(answered.input_tokens, streamed.input_tokens),
        output_tokens: later(answered.output_tokens, streamed.output_tokens),
        cached_tokens: later(answered.cached_tokens, streamed.cached_tokens),
        cost_usd_micros: later(answered.cost_usd_micros, streamed.cost_usd_micros),
    };
    let says_tokens = said.input_tokens.is_some() || said.output_tokens.is_some();
    let reserved_tokens = share(limits.max_tokens, limits).filter(|_| !says_tokens);
    let reserved_cost =
        share(limits.max_cost_usd_micros, limits).filter(|_| said.cost_usd_micros.is_none());
    let is_silent = usage.is_none() && reported.is_none();
    if is_silent && reserved_tokens.is_none() && reserved_cost.is_none() {
        return None;
    }
    Some(Charge {
        input_tokens: said.input_tokens.or(reserved_tokens).unwrap_or(0),
        output_tokens: said.output_tokens.unwrap_or(0),
        cached_tokens: said.cached_tokens.unwrap_or(0),
        cost_usd_micros: said.cost_usd_micros.or(reserved_cost).unwrap_or(0),
        known: says_tokens && said.cost_usd_micros.is_some(),
    })
}

impl RunSpec {
    /// What one turn may use up, in tokens and in money, if all of them use up the same.
    pub fn turn_share(&self) -> (u64, u64) {
        let of = |ceiling: Option<u64>| share(ceiling, &self.limits).unwrap_or(0);
        (of(self.limits.max_tokens), of(self.limits.max_cost_usd_micros))
    }
}

impl Run {
    /// What the attempt that is alive may still use up, in tokens and in money: its share of the run's
    /// ceilings, less what it has said. Nothing where there is no ceiling to have a share of.
    pub fn reserves(&self) -> (u64, u64) {
        let Some(live) = self.live() else { return (0, 0) };
        let said = live.reported.unwrap_or_default();
        let (tokens, cost) = self.spec.turn_share();
        (tokens.saturating_sub(said.tokens()), cost.saturating_sub(said.cost_usd_micros))
    }
}

/// So much of a ceiling that an agent which never reports is out of it when its turns are.
fn share(ceiling: Option<u64>, limits: &Limits) -> Option<u64> {
    let turns = limits.max_turns.unwrap_or(TURNS_WITHOUT_A_LIMIT).max(1);
    ceiling.map(|ceiling| ceiling.div_ceil(u64::from(turns)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_never_reports_is_charged_its_share() {
        let limits = Limits {
            max_turns: Some(3),
            max_tokens: Some(1000),
            max_cost_usd_micros: Some(10),
            ..Limits::default()
        };
        let unknown = charge(&limits, None, None).expect("there are ceilings");
        assert_eq!((unknown.input_tokens, unknown.cost_usd_micros, unknown.known), (334, 4, false));
        let said = Usage { output_tokens: Some(5), ..Usage::default() };
        let half = charge(&limits, Some(&said), None).expect("something was said");
        assert_eq!((half.input_tokens, half.output_tokens, half.cost_usd_micros), (0, 5, 4));
        assert_eq!(charge(&Limits::default(), None, None), None);
    }

    #[test]
    fn what_was_said_on_the_way_counts_once_and_is_not_taken_back() {
        let usage = |input, cost| Usage {
            input_tokens: Some(input),
            cost_usd_micros: Some(cost),
            ..Usage::default()
        };
        let first = reported(None, &usage(100, 10));
        let second = reported(Some(&first), &usage(90, 30));
        assert_eq!((second.input_tokens, second.cost_usd_micros, second.known), (100, 30, true));
        let mut spend = Spend::default();
        spend.exchange(None, &first);
        spend.exchange(Some(&first), &second);
        let last = charge(&Limits::default(), Some(&usage(80, 50)), Some(&second));
        spend.replace(Some(&second), last.as_ref());
        assert_eq!((spend.input_tokens, spend.cost_usd_micros, spend.known), (100, 50, true));
        let unsaid = charge(&Limits::default(), None, Some(&second)).expect("it was said");
        assert_eq!((unsaid.input_tokens, unsaid.known), (100, true));
    }
}
