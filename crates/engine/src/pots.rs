//! What a run and those below it may use together: turns, tokens, money and runs.
//!
//! A run with children keeps one pot for each. In each pot `total + over = free + reserved + committed` holds after every
//! event: `reserved` is what live children may still use, `committed` is what the run itself has used and what its ended
//! children were charged, and `over` is what was used beyond the total, as it was reported. A child's reservation is
//! taken by the event that says that the child is made, before the child exists; the rest of it comes back once, with the
//! event that says how the child has ended.

use serde::{Deserialize, Serialize};

use crate::{Child, Limit, Outcome, Run, Unreported};

/// Something that is counted over a tree of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    Turns,
    Tokens,
    Money,
    /// Runs below this one.
    Runs,
}

impl Channel {
    pub const ALL: [Self; 4] = [Self::Turns, Self::Tokens, Self::Money, Self::Runs];
}

/// So much of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    #[serde(skip_serializing_if = "is_zero")]
    pub turns: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_usd_micros: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub runs: u64,
}

impl Amounts {
    pub fn of(&self, channel: Channel) -> u64 {
        match channel {
            Channel::Turns => self.turns,
            Channel::Tokens => self.tokens,
            Channel::Money => self.cost_usd_micros,
            Channel::Runs => self.runs,
        }
    }

    pub(crate) fn each(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            turns: both(self.turns, other.turns),
            tokens: both(self.tokens, other.tokens),
            cost_usd_micros: both(self.cost_usd_micros, other.cost_usd_micros),
            runs: both(self.runs, other.runs),
        }
    }
}

/// The most that a run and those below it may have; `None` is no ceiling. What a run was given by its parent is what
/// its parent has reserved for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Room {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd_micros: Option<u64>,
    /// Runs below it, however deep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u64>,
    /// Levels of runs below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// Children of one run that go on at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u64>,
}

impl Room {
    /// True if something that is used up is bounded.
    pub(crate) fn is_reserved(&self) -> bool {
        self.turns.is_some() || self.tokens.is_some() || self.cost_usd_micros.is_some()
    }

    /// True if a parent has reserved something that this limit of a run is about.
    pub(crate) fn holds(&self, limit: Limit) -> bool {
        match limit {
            Limit::MaxTurns => self.turns.is_some(),
            Limit::MaxTokens => self.tokens.is_some(),
            Limit::MaxCost => self.cost_usd_micros.is_some(),
            Limit::RunTimeout | Limit::TurnTimeout | Limit::StallWindow | Limit::Budget => false,
        }
    }

    /// What a parent reserves for a run that is given this: the run itself counts as one.
    pub fn reserved(&self) -> Amounts {
        Amounts {
            turns: self.turns.unwrap_or(0),
            tokens: self.tokens.unwrap_or(0),
            cost_usd_micros: self.cost_usd_micros.unwrap_or(0),
            runs: self.runs.unwrap_or(0).saturating_add(1),
        }
    }
}

/// One of a run's pots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pot {
    /// `None` is no ceiling.
    pub total: Option<u64>,
    /// What the run itself has used.
    pub own: u64,
    /// What its live children may still use.
    pub reserved: u64,
    /// What its ended children were charged.
    pub charged: u64,
}

impl Pot {
    pub fn committed(&self) -> u64 {
        self.own.saturating_add(self.charged)
    }

    /// All that is not free.
    pub fn taken(&self) -> u64 {
        self.committed().saturating_add(self.reserved)
    }

    /// What is left, if there is a ceiling.
    pub fn free(&self) -> Option<u64> {
        self.total.map(|total| total.saturating_sub(self.taken()))
    }

    /// What was used or reserved beyond the ceiling.
    pub fn over(&self) -> u64 {
        self.total.map_or(0, |total| self.taken().saturating_sub(total))
    }

    /// True if nothing is left to begin something with.
    pub(crate) fn is_spent(&self) -> bool {
        self.free() == Some(0)
    }

    /// True if more was used than there is, while the run is at work.
    pub(crate) fn is_overdrawn(&self) -> bool {
        self.total.is_some_and(|total| self.committed() >= total) || self.over() > 0
    }
}

/// What a run's children hold of its pots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// By those that go on.
    pub reserved: Amounts,
    /// By those that have ended.
    pub charged: Amounts,
    /// How many have ended without all that they used being known.
    pub unknown: u32,
    /// How many have ended: the number of the last settlement.
    pub settled: u64,
}

/// What a run that has ended comes to, for its parent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settlement {
    pub spent: Amounts,
    /// False if it may have used more tokens or money than it said.
    pub known: bool,
}

impl Settlement {
    /// What a parent charges for it: what is not known is charged as it was reserved.
    pub(crate) fn charged(settlement: Option<&Self>, reserved: Amounts) -> (Amounts, bool) {
        match settlement {
            Some(Self { spent, known: true }) => (*spent, true),
            Some(Self { spent, known: false }) => {
                let most = spent.each(reserved, u64::max);
                // How many turns and runs there were, its journal says.
                (Amounts { turns: spent.turns, runs: spent.runs, ..most }, false)
            }
            None => (reserved, false),
        }
    }
}

impl Held {
    pub(crate) fn reserve(&mut self, room: &Room) {
        self.reserved = self.reserved.each(room.reserved(), u64::saturating_add);
    }

    /// What is over of the reservation is free again.
    pub(crate) fn settle(&mut self, child: &Child, charged: Amounts, known: bool) {
        self.reserved = self.reserved.each(child.granted.reserved(), u64::saturating_sub);
        self.charged = self.charged.each(charged, u64::saturating_add);
        self.unknown += u32::from(!known);
        self.settled += 1;
    }
}

impl Run {
    pub fn pot(&self, channel: Channel) -> Pot {
        let (limits, room) = (&self.spec.limits, &self.spec.tree.room);
        let (total, own) = match channel {
            Channel::Turns => (room.turns, self.turns_begun()),
            Channel::Tokens => (lower(limits.max_tokens, room.tokens), self.spend.tokens()),
            Channel::Money => (
                lower(limits.max_cost_usd_micros, room.cost_usd_micros),
                self.spend.cost_usd_micros,
            ),
            Channel::Runs => (room.runs, 0),
        };
        let (reserved, charged) = (self.held.reserved.of(channel), self.held.charged.of(channel));
        Pot { total, own, reserved, charged }
    }

    /// Turns that were committed, and one that is at work.
    fn turns_begun(&self) -> u64 {
        let at = self.attempt.as_ref().map_or(0, |attempt| attempt.turn);
        let inherited = self.turns_committed - self.own_turns();
        u64::from(at.max(self.turns_committed) - inherited)
    }

    /// True if a pot keeps the run from beginning something. A plain command, which is charged nothing unless it says
    /// so, is not held back by a pot that only its own children could use.
    pub(crate) fn lacks(&self, channel: Channel) -> bool {
        let pot = self.pot(channel);
        let is_free_of_charge = self.spec.unreported() == Unreported::Nothing && pot.taken() == 0;
        pot.is_spent() && !is_free_of_charge
    }

    /// What this run has come to, with all below it. Children that go on without it are counted as they were reserved.
    pub fn settlement(&self) -> Settlement {
        let of = |channel| self.pot(channel).taken();
        let spent = Amounts {
            turns: of(Channel::Turns),
            tokens: of(Channel::Tokens),
            cost_usd_micros: of(Channel::Money),
            runs: of(Channel::Runs).saturating_add(1),
        };
        let is_all_settled = self.held.unknown == 0 && self.live_children() == 0;
        Settlement { spent, known: self.is_spend_known() && is_all_settled }
    }

    /// A plain command that said nothing has used nothing that is counted, if its end was seen.
    fn is_spend_known(&self) -> bool {
        let end = self.attempt.as_ref().and_then(|attempt| attempt.state.end.as_ref());
        let is_unseen = end.is_some_and(|(outcome, _)| {
            matches!(outcome, Outcome::Lost | Outcome::Interrupted { .. })
        });
        let is_plain = self.spec.unreported() == Unreported::Nothing;
        self.spend.known.is_all() || (is_plain && !is_unseen)
    }
}

pub(crate) fn lower(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
