//! What runs have used up, by day, for budgets that runs share.
//!
//! Written with the events that say so, in one transaction, and kept when a run is removed: what was spent
//! stays spent. Which budgets there are is not this crate's business.

use std::collections::BTreeMap;

use outlast_engine::{RunId, Time};

use crate::Error;

const MS_A_DAY: u64 = 24 * 60 * 60 * 1000;

/// The day of a moment, in UTC, counted from 1970-01-01.
pub fn day(at: Time) -> u64 {
    at.0 / MS_A_DAY
}

/// When a day begins.
pub fn begin_of(day: u64) -> Time {
    Time(day.saturating_mul(MS_A_DAY))
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

/// What an append adds to what its run has used up, and on which day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Entry {
    pub day: u64,
    pub amount: Amount,
}

/// What all runs with the same labels have used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub labels: BTreeMap<String, String>,
    pub amount: Amount,
}

pub trait Ledger {
    /// What was used up on this day or later, one account for each set of labels, in their order.
    fn accounts(&self, since_day: u64) -> Result<Vec<Account>, Error>;

    /// What one run has used up.
    fn used_by(&self, run: &RunId) -> Result<Amount, Error>;
}
