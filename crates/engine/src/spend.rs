//! What a run has used up. Where an agent could have reported and did not, the attempt's reservation is charged and
//! marked; a plain command that reports nothing is charged nothing. No figure that was not reported counts as known.

use serde::{Deserialize, Serialize};

use crate::{Run, RunSpec, Unreported, Usage};

/// Turns that a ceiling is shared among when the turns have none themselves, and at least if the ceiling is only the
/// operator's.
const TURNS_WITHOUT_A_LIMIT: u32 = 20;

/// What one attempt is charged with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd_micros: u64,
    /// False if the agent did not report all of it.
    pub known: bool,
    /// How much of it is a reservation. Absent if all of it is known, and in a journal from before this was written:
    /// there all of what is not known counts as reserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reserved>,
    /// The half that was reported whole, of a charge whose other half was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half: Option<Half>,
}

/// The halves of a charge, one of which an agent may report without the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Half {
    Tokens,
    Money,
}

/// What of an amount was reported whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub tokens: bool,
    pub money: bool,
}

impl Known {
    pub const ALL: Self = Self { tokens: true, money: true };
    pub const NOTHING: Self = Self { tokens: false, money: false };

    pub fn is_all(self) -> bool {
        self.tokens && self.money
    }

    fn half(self) -> Option<Half> {
        match self {
            Self { tokens: true, money: false } => Some(Half::Tokens),
            Self { tokens: false, money: true } => Some(Half::Money),
            Self { tokens: true, money: true } | Self { tokens: false, money: false } => None,
        }
    }

    fn and(self, other: Self) -> Self {
        Self { tokens: self.tokens && other.tokens, money: self.money && other.money }
    }
}

/// The part of an amount that was not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    pub tokens: u64,
    pub cost_usd_micros: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spend {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub cost_usd_micros: u64,
    pub known: Known,
    /// How much of it is reserved for attempts that did not report.
    pub reserved: Reserved,
    /// How many attempts did not report all that they used, of a run whose attempts could.
    pub unreported: u64,
}

impl Default for Spend {
    fn default() -> Self {
        Self {
            input_tokens: 0,
            output_tokens: 0,
            cached_tokens: 0,
            cost_usd_micros: 0,
            known: Known::ALL,
            reserved: Reserved::default(),
            unreported: 0,
        }
    }
}

impl Charge {
    /// Of an attempt that never came to use anything.
    pub(crate) fn nothing() -> Self {
        Self { known: true, ..Self::default() }
    }

    /// What of it was reported whole.
    pub fn known(&self) -> Known {
        match self.half {
            _ if self.known => Known::ALL,
            Some(Half::Tokens) => Known { tokens: true, money: false },
            Some(Half::Money) => Known { tokens: false, money: true },
            None => Known::NOTHING,
        }
    }

    /// How much of it was not reported.
    pub fn reserved(&self) -> Reserved {
        let all = Reserved { tokens: self.tokens(), cost_usd_micros: self.cost_usd_micros };
        if self.known { Reserved::default() } else { self.reserved.unwrap_or(all) }
    }

    /// What counts against a ceiling on tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The same as a floor: what a turn may use up in money counts, unless more was heard.
    pub(crate) fn at_least(self, spec: &RunSpec) -> Self {
        let least = shares(spec).1.unwrap_or(0);
        let cost_usd_micros = self.cost_usd_micros.max(least);
        let mut reserved = self.reserved();
        reserved.cost_usd_micros += cost_usd_micros - self.cost_usd_micros;
        let half = Known { money: false, ..self.known() }.half();
        Self { cost_usd_micros, known: false, reserved: Some(reserved), half, ..self }
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
        let tokens = |count: u64| Some(count).filter(|_| self.known().tokens || self.tokens() > 0);
        Usage {
            input_tokens: tokens(self.input_tokens),
            output_tokens: tokens(self.output_tokens),
            cached_tokens: tokens(self.cached_tokens),
            cost_usd_micros: Some(self.cost_usd_micros)
                .filter(|cost| self.known().money || *cost > 0),
        }
    }
}

impl Spend {
    /// An attempt has ended: what it had said so far is replaced by what it is charged with.
    pub(crate) fn replace(
        &mut self,
        reported: Option<&Charge>,
        charge: Option<&Charge>,
        unreported: Unreported,
    ) {
        let known = charge.map_or(Known::NOTHING, Charge::known);
        if let Some(charge) = charge {
            self.exchange(reported, charge);
            let Reserved { tokens, cost_usd_micros } = charge.reserved();
            self.reserved.tokens = self.reserved.tokens.saturating_add(tokens);
            self.reserved.cost_usd_micros =
                self.reserved.cost_usd_micros.saturating_add(cost_usd_micros);
        }
        self.known = self.known.and(known);
        self.unreported += u64::from(!known.is_all() && unreported.is_reserved());
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
    let money = has(usage.cost_usd_micros, said.cost_usd_micros);
    let known = Known { tokens: says_tokens, money };
    Charge {
        input_tokens: most(usage.input_tokens, before.input_tokens),
        output_tokens: most(usage.output_tokens, before.output_tokens),
        cached_tokens: most(usage.cached_tokens, before.cached_tokens),
        cost_usd_micros: most(usage.cost_usd_micros, before.cost_usd_micros),
        known: known.is_all(),
        reserved: (!known.is_all()).then(Reserved::default),
        half: known.half(),
    }
}

/// What an attempt that ran is charged with; `None` if nothing was said and nothing is reserved. What it said
/// while it ran is said.
pub(crate) fn charge(
    spec: &RunSpec,
    usage: Option<&Usage>,
    reported: Option<&Charge>,
) -> Option<Charge> {
    let (tokens_share, cost_share) = shares(spec);
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
    let reserved_tokens = tokens_share.filter(|_| !says_tokens);
    let reserved_cost = cost_share.filter(|_| said.cost_usd_micros.is_none());
    let is_silent = usage.is_none() && reported.is_none();
    if is_silent && reserved_tokens.is_none() && reserved_cost.is_none() {
        return None;
    }
    let known = Known { tokens: says_tokens, money: said.cost_usd_micros.is_some() };
    let reserved = Reserved {
        tokens: reserved_tokens.unwrap_or(0),
        cost_usd_micros: reserved_cost.unwrap_or(0),
    };
    Some(Charge {
        input_tokens: said.input_tokens.or(reserved_tokens).unwrap_or(0),
        output_tokens: said.output_tokens.unwrap_or(0),
        cached_tokens: said.cached_tokens.unwrap_or(0),
        cost_usd_micros: said.cost_usd_micros.or(reserved_cost).unwrap_or(0),
        known: known.is_all(),
        reserved: (!known.is_all()).then_some(reserved),
        half: known.half(),
    })
}

impl RunSpec {
    /// What one turn may use up, in tokens and in money, if all of them use up the same. Nothing of a plain command,
    /// whose ceilings are not its price.
    pub fn turn_share(&self) -> (u64, u64) {
        let (tokens, cost) = shares(self);
        (tokens.unwrap_or(0), cost.unwrap_or(0))
    }
}

impl Run {
    /// True if budgets of tokens and money are for this run: it has reported something, or its agent could.
    pub fn counts_in_budgets(&self) -> bool {
        let has_reported = self.spend.tokens() > 0 || self.spend.cost_usd_micros > 0;
        has_reported || self.spec.unreported().is_reserved()
    }

    /// What the attempt that is alive may still use up, in tokens and in money: its share of the run's
    /// ceilings, less what it has said. Nothing where there is no ceiling to have a share of.
    pub fn reserves(&self) -> (u64, u64) {
        let Some(live) = self.live() else { return (0, 0) };
        let said = live.reported.unwrap_or_default();
        let (tokens, cost) = self.spec.turn_share();
        (tokens.saturating_sub(said.tokens()), cost.saturating_sub(said.cost_usd_micros))
    }
}

/// What an attempt is charged that reports nothing, in tokens and in money.
fn shares(spec: &RunSpec) -> (Option<u64>, Option<u64>) {
    let (limits, unreported) = (&spec.limits, spec.unreported());
    let tokens = limits.max_tokens.filter(|_| unreported.reserves_tokens());
    let cost = limits.max_cost_usd_micros.filter(|_| unreported.reserves_money());
    let fewest = match unreported {
        Unreported::ReservedCeilings => TURNS_WITHOUT_A_LIMIT,
        Unreported::Reserved
        | Unreported::ReservedTokens
        | Unreported::ReservedMoney
        | Unreported::Nothing => 1,
    };
    let turns = limits.max_turns.unwrap_or(TURNS_WITHOUT_A_LIMIT).max(fewest);
    (share(tokens, turns), share(cost, turns))
}

/// So much of a ceiling that an agent which never reports is out of it after so many turns.
fn share(ceiling: Option<u64>, turns: u32) -> Option<u64> {
    ceiling.map(|ceiling| ceiling.div_ceil(u64::from(turns)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn an_agent_that_never_reports_is_charged_its_share() {
        let limits = Limits {
            max_turns: Some(3),
            max_tokens: Some(1000),
            max_cost_usd_micros: Some(10),
            ..Limits::default()
        };
        let agent = spec(limits, Unreported::Reserved);
        let unknown = charge(&agent, None, None).expect("there are ceilings");
        assert_eq!((unknown.input_tokens, unknown.cost_usd_micros, unknown.known), (334, 4, false));
        assert_eq!(unknown.reserved(), Reserved { tokens: 334, cost_usd_micros: 4 });
        let own = charge(&spec(limits, Unreported::ReservedMoney), None, None);
        assert_eq!(
            own.map(|it| (it.tokens(), it.cost_usd_micros)),
            Some((0, 4)),
            "what it asked for"
        );
        let said = Usage { output_tokens: Some(5), ..Usage::default() };
        let half = charge(&agent, Some(&said), None).expect("something was said");
        assert_eq!((half.input_tokens, half.output_tokens, half.cost_usd_micros), (0, 5, 4));
        assert_eq!(half.reserved(), Reserved { tokens: 0, cost_usd_micros: 4 });
        assert_eq!(charge(&spec(Limits::default(), Unreported::Reserved), None, None), None);
        let endless = spec(Limits { max_turns: None, ..limits }, Unreported::Reserved);
        assert_eq!(charge(&endless, None, None).map(|it| it.input_tokens), Some(50), "a twentieth");
        let unasked = spec(limits, Unreported::ReservedCeilings);
        assert_eq!(
            charge(&unasked, None, None).map(|it| it.input_tokens),
            Some(50),
            "and no third"
        );
    }

    #[test]
    fn a_plain_command_is_charged_what_it_reported_and_nothing_else() {
        let limits =
            Limits { max_tokens: Some(1000), max_cost_usd_micros: Some(10), ..Limits::default() };
        let plain = spec(limits, Unreported::Nothing);
        assert_eq!((charge(&plain, None, None), plain.turn_share()), (None, (0, 0)));
        let said = Usage { output_tokens: Some(5), ..Usage::default() };
        let half = charge(&plain, Some(&said), None).expect("something was said");
        assert_eq!((half.tokens(), half.cost_usd_micros, half.known), (5, 0, false));
        assert_eq!(half.reserved(), Reserved::default());
    }

    #[test]
    fn of_an_old_charge_all_that_is_not_known_counts_as_reserved() {
        let old = r#"{"input_tokens":3,"output_tokens":4,"cached_tokens":0,"cost_usd_micros":5,"known":false}"#;
        let old: Charge = serde_json::from_str(old).expect("a charge of before");
        assert_eq!(old.reserved(), Reserved { tokens: 7, cost_usd_micros: 5 });
        let mut spend = Spend::default();
        spend.replace(None, Some(&old), Unreported::Nothing);
        assert_eq!((spend.reserved.cost_usd_micros, spend.unreported), (5, 0));
        assert_eq!(spend.known, Known::NOTHING);
    }

    fn spec(limits: Limits, unreported: Unreported) -> RunSpec {
        let agent = crate::Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let unreported = Some(unreported);
        RunSpec { limits, unreported, ..RunSpec::command(agent, "/".to_owned()) }
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
        let loose = spec(Limits::default(), Unreported::Reserved);
        let last = charge(&loose, Some(&usage(80, 50)), Some(&second));
        spend.replace(Some(&second), last.as_ref(), Unreported::Reserved);
        assert_eq!((spend.input_tokens, spend.cost_usd_micros), (100, 50));
        assert_eq!(spend.known, Known::ALL);
        let unsaid = charge(&loose, None, Some(&second)).expect("it was said");
        assert_eq!((unsaid.input_tokens, unsaid.known), (100, true));
    }

    #[test]
    fn money_that_was_reported_was_called_incomplete_because_tokens_were_missing() {
        let paid = Usage { cost_usd_micros: Some(40), ..Usage::default() };
        let loose = spec(Limits::default(), Unreported::Reserved);
        let charge = charge(&loose, Some(&paid), None).expect("something was said");
        assert_eq!((charge.known, charge.half), (false, Some(Half::Money)));
        let mut spend = Spend::default();
        spend.replace(None, Some(&charge), Unreported::Reserved);
        assert_eq!(spend.known, Known { tokens: false, money: true });
        assert_eq!(spend.unreported, 1);
        assert_eq!(reported(None, &paid).known(), spend.known, "also while it runs");
        spend.replace(None, None, Unreported::Reserved);
        assert_eq!(spend.known, Known::NOTHING, "an attempt that says nothing spoils both");
    }
}
