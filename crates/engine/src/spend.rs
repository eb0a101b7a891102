//! What a run has used up. What nobody reported is charged at its reservation, and marked.

use serde::{Deserialize, Serialize};

use crate::{Limits, Usage};

/// Turns that a ceiling is shared among when the turns have none themselves.
const TURNS_WITHOUT_A_LIMIT: u32 = 20;

/// What one attempt is charged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd_micros: u64,
    /// False if any of it is a reservation, because nobody said.
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

impl Spend {
    pub(crate) fn add(&mut self, charge: Option<&Charge>) {
        let Some(charge) = charge else {
            self.known = false;
            return;
        };
        self.input_tokens = self.input_tokens.saturating_add(charge.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(charge.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(charge.cached_tokens);
        self.cost_usd_micros = self.cost_usd_micros.saturating_add(charge.cost_usd_micros);
        self.known &= charge.known;
    }

    /// What counts against the ceiling on tokens: what was read anew and what was written.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// What an attempt that ran is charged with; `None` if nothing was said and nothing is limited.
pub(crate) fn charge(limits: &Limits, usage: Option<&Usage>) -> Option<Charge> {
    let said = usage.copied().unwrap_or_default();
    let says_tokens = said.input_tokens.is_some() || said.output_tokens.is_some();
    let reserved_tokens = share(limits.max_tokens, limits).filter(|_| !says_tokens);
    let reserved_cost =
        share(limits.max_cost_usd_micros, limits).filter(|_| said.cost_usd_micros.is_none());
    if usage.is_none() && reserved_tokens.is_none() && reserved_cost.is_none() {
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
        let unknown = charge(&limits, None).expect("there are ceilings");
        assert_eq!((unknown.input_tokens, unknown.cost_usd_micros, unknown.known), (334, 4, false));
        let said = Usage { output_tokens: Some(5), ..Usage::default() };
        let half = charge(&limits, Some(&said)).expect("something was said");
        assert_eq!((half.input_tokens, half.output_tokens, half.cost_usd_micros), (0, 5, 4));
        assert_eq!(charge(&Limits::default(), None), None);
    }
}
