//! What runs have used up, and when, for budgets that runs share.
//!
//! Written with the events that say so, in one transaction, and kept when a run is removed: what was spent
//! stays spent. Which budgets there are, and in which time zone a day begins, is not this crate's business: amounts
//! are kept by slots of a quarter of an hour, and midnight is the beginning of a slot in every zone.

use std::collections::BTreeMap;

use outlast_engine::{Run, RunId, Time};

use crate::Error;

const MS_A_SLOT: u64 = 15 * 60 * 1000;

/// The slot of a moment, counted from 1970-01-01 in UTC.
pub fn slot(at: Time) -> u64 {
    at.0 / MS_A_SLOT
}

/// When a slot begins.
pub fn begin_of(slot: u64) -> Time {
    Time(slot.saturating_mul(MS_A_SLOT))
}

/// An amount, in both of what can be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub tokens: u64,
    pub cost_usd_micros: u64,
}

impl Amount {
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            cost_usd_micros: self.cost_usd_micros.saturating_add(other.cost_usd_micros),
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            cost_usd_micros: self.cost_usd_micros.saturating_sub(other.cost_usd_micros),
        }
    }
}

/// What an append adds to what its run has used up, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry {
    pub slot: u64,
    pub used: Used,
}

/// What was used up, and how much of that was not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    pub amount: Amount,
    /// The part of it that is held for attempts that did not report.
    pub reserved: Amount,
    /// How many attempts did not report all that they used.
    pub unreported: u64,
}

impl Used {
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            amount: self.amount.plus(other.amount),
            reserved: self.reserved.plus(other.reserved),
            unreported: self.unreported.saturating_add(other.unreported),
        }
    }

    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self {
            amount: self.amount.minus(other.amount),
            reserved: self.reserved.minus(other.reserved),
            unreported: self.unreported.saturating_sub(other.unreported),
        }
    }

    /// What a run has used up by now.
    pub fn by(run: &Run) -> Self {
        let spend = &run.spend;
        let cost_usd_micros = spend.reserved.cost_usd_micros;
        Self {
            amount: Amount { tokens: spend.tokens(), cost_usd_micros: spend.cost_usd_micros },
            reserved: Amount { tokens: spend.reserved.tokens, cost_usd_micros },
            unreported: spend.unreported,
        }
    }
}

/// What all runs with the same labels have used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub labels: BTreeMap<String, String>,
    pub used: Used,
}

pub trait Ledger {
    /// What was used up in this slot or later, one account for each set of labels, in their order.
    fn accounts(&self, since_slot: u64) -> Result<Vec<Account>, Error>;

    /// What was used up in this slot or later, one account for each slot and set of labels, in their order.
    fn accounts_by_slot(&self, since_slot: u64) -> Result<Vec<(u64, Account)>, Error>;

    /// What one run has used up.
    fn used_by(&self, run: &RunId) -> Result<Used, Error>;
}
