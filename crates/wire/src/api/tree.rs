//! A run and all that belong to it, as clients see them.

use serde::{Deserialize, Serialize};

use outlast_words::{Exit, ReasonCode, StateName, Word};

use super::RunRow;

/// What a parent knows of one of its children: `GET /v1/runs/{run}/children`, and the answer to a spawn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChildView {
    pub id: String,
    /// Its place among the children, from 1.
    pub number: u32,
    pub key: Option<String>,
    /// Which of the runs under its key it is, from 1.
    #[serde(rename = "try")]
    pub try_number: u32,
    /// How it ended; absent while it goes on.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub state: Option<Word<StateName>>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
    pub reason_code: Option<Word<ReasonCode>>,
    /// Its place among the ends that the parent was told of.
    pub cursor: Option<u64>,
    #[cfg_attr(feature = "openapi", schema(value_type = Option<super::schemas::Exit>))]
    pub exit: Option<Exit>,
    /// True if nothing says what it did: a spawn under its key is refused until the asker says what to do.
    pub in_doubt: bool,
    /// What is reserved for it while it goes on.
    pub reserved: TreeAmounts,
    /// What its parent was charged for it.
    pub charged: Option<TreeAmounts>,
    /// False if what it used is not known and was charged as it was reserved.
    pub spend_known: Option<bool>,
    /// True if it has ended and was removed: this is all that is known of it, and it is not run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub removed: bool,
    /// What it said last; only of one that was removed, in the answer to a spawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// So much of what a tree of runs shares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TreeAmounts {
    pub turns: u64,
    pub tokens: u64,
    pub cost_usd_micros: u64,
    pub runs: u64,
}

/// What a run and those below it share: `total + over = free + reserved + committed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PotView {
    /// Absent if there is no ceiling.
    pub total: Option<u64>,
    pub free: Option<u64>,
    /// For children that go on.
    pub reserved: u64,
    /// What the run itself has used, and what its ended children were charged.
    pub committed: u64,
    /// What was used beyond the total.
    pub over: u64,
}

/// The pots of a run with children, or with a budget for those below it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PotsView {
    pub turns: PotView,
    pub tokens: PotView,
    pub cost_usd_micros: PotView,
    pub runs: PotView,
    /// How many ended children were charged as they were reserved, because what they used is not known.
    pub unknown: u32,
}

/// `GET /v1/runs/{run}/tree`: a row as lists have it, and those of its children, the oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunTree {
    #[serde(flatten)]
    pub run: RunRow,
    /// What it and those below it share, while it goes on and has children or a budget for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<PotsView>,
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub children: Vec<Self>,
}

impl RunTree {
    /// Every run below this one, parents before their children.
    pub fn below(&self) -> Vec<&RunRow> {
        let mut rows = Vec::new();
        for child in &self.children {
            rows.push(&child.run);
            rows.extend(child.below());
        }
        rows
    }
}
