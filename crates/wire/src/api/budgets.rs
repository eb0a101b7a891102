//! Budgets that runs share, what a live attempt has used up, and `pause --all`.

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
    /// `day` (UTC) or `total`.
    pub period: String,
    /// What becomes of runs when it is spent: `wait` or `end`.
    pub on_exceed: String,
    pub used: Spent,
    /// What live attempts may still take of it.
    pub reserved: Spent,
    pub max: Spent,
    pub left: Spent,
    pub resets_at: Option<String>,
}

/// An amount; what has no maximum is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Spent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
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
