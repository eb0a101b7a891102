//! Budgets that runs share, what a live attempt has used up, and `pause --all`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::OrderView;

/// One of `GET /v1/budgets`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BudgetView {
    /// `day`, or `label team=web`.
    pub name: String,
    /// `k` or `k=v`; absent for one of all runs.
    pub label: Option<String>,
    /// `day` or `total`.
    pub period: String,
    /// The time zone in which its days begin; absent for a total.
    #[serde(default)]
    pub tz: Option<String>,
    /// What becomes of runs when it is spent: `wait` or `end`.
    pub on_exceed: String,
    pub used: Spent,
    /// False if an attempt did not report all that it used: then `used` has what is held for it, if anything is.
    #[serde(default = "yes")]
    pub known: bool,
    /// How much of `used` was not reported, and is held for the attempts that did not.
    #[serde(default)]
    pub unreported: Spent,
    /// How many attempts did not report all that they used.
    #[serde(default)]
    pub unreported_attempts: u64,
    /// How many runs wait until there is room in it.
    #[serde(default)]
    pub waiting: u64,
    /// What live attempts may still take of it.
    pub reserved: Spent,
    pub max: Spent,
    pub left: Spent,
    pub resets_at: Option<String>,
}

fn yes() -> bool {
    true
}

/// An amount; what has no maximum is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Spent {
    #[serde(default)]
    pub tokens: Option<u64>,
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

/// `GET /v1/spend`: what was used up, day by day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SpendView {
    /// The time zone in which the days begin.
    pub tz: String,
    /// The oldest day first, and of a day one for each set of labels. A day on which nothing was used has none.
    pub days: Vec<SpendDay>,
}

/// What runs with the same labels used up on one day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SpendDay {
    /// `2026-11-18`
    pub day: String,
    pub labels: BTreeMap<String, String>,
    pub cost_usd: f64,
    pub tokens: u64,
    /// How much of the two was not reported, and is held for the attempts that did not.
    pub unreported_usd: f64,
    pub unreported_tokens: u64,
    /// How many attempts did not report all that they used.
    pub unreported_attempts: u64,
}

/// `POST /v1/runs/{run}/usage`: what the live attempt has used up so far, all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ReportUsage {
    /// Without these two: the attempt that is alive.
    #[serde(default)]
    pub turn: Option<u32>,
    #[serde(default)]
    pub attempt: Option<u32>,
    #[serde(default)]
    pub input_tokens: Option<u64>,
    #[serde(default)]
    pub output_tokens: Option<u64>,
    #[serde(default)]
    pub cached_tokens: Option<u64>,
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

/// The header of a list of runs that says how many run directories the journal does not know, if there are any or
/// if the journal was replaced or restored.
pub const FORGOTTEN_HEADER: &str = "outlast-not-in-journal";

/// The header of a list of runs that says since when everything is paused, while it is.
pub const HELD_HEADER: &str = "outlast-held-since";

/// `POST /v1/daemon/pause`; the body may be left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseAll {
    /// End the attempts that are alive, to be made again afterwards. A run that does not take up by itself what
    /// was interrupted, such as a single command, goes on to the end of its turn.
    #[serde(default)]
    pub now: bool,
    /// Chosen by the client: the same id is the same order. Made by the daemon when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// `POST /v1/daemon/resume`; the body may be left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResumeAll {
    /// Chosen by the client: the same id is the same order. Made by the daemon when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// What `POST /v1/daemon/pause` and `/v1/daemon/resume` answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HoldView {
    /// Since when everything rests; absent when it goes on. As it is now: see `superseded`.
    pub held_since: Option<String>,
    /// Since when everything rested before this order; absent if nothing did.
    #[serde(default)]
    pub held_before: Option<String>,
    /// How many runs have followed.
    pub runs: u64,
    /// The id of this order.
    #[serde(default)]
    pub order: Option<String>,
    /// True if the order was taken before, and nothing was done this time.
    #[serde(default)]
    pub existed: bool,
    /// The order that holds now, if another was given since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<OrderView>,
}
