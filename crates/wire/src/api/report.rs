//! What `outlast report` needs beyond the lists: what happened to the daemon itself, by the daemon's clock.

use serde::{Deserialize, Serialize};

/// `GET /v1/report`: what the daemon's diary has since a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NightView {
    /// The daemon's time, which the times of runs go by.
    pub now: String,
    /// The time that was asked for.
    pub since: String,
    /// The time of the oldest entry. Nothing is known of what happened before it.
    pub known_from: Option<String>,
    /// Set if the report reaches back beyond what the diary has: nothing is known of daemons, reboots and missed times
    /// before this.
    pub unknown_before: Option<String>,
    /// Why nothing is known of that time, if the diary was lost.
    pub problem: Option<String>,
    /// Daemons that started since then, the oldest first.
    pub starts: Vec<DaemonStart>,
    /// Times of schedules that passed while no daemon ran, the oldest first.
    pub missed: Vec<MissedTimes>,
}

/// A daemon that started, and what the daemon found of the one before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DaemonStart {
    pub at: String,
    /// How the daemon before this one ended.
    pub before: Predecessor,
    /// True if the machine was started anew since the daemon before this one.
    pub rebooted: bool,
    /// The last sign of life of the daemon before this one. That daemon may have lived on after it.
    pub last_sign_at: Option<String>,
    /// Of a daemon that died: when it was ordered to stay stopped after that.
    #[serde(default)]
    pub stay_stopped_at: Option<String>,
}

/// Times of one schedule that passed while no daemon ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MissedTimes {
    pub trigger: String,
    /// When the daemon noticed.
    pub at: String,
    /// The latest time that was missed.
    pub due_at: String,
    /// How many get no run.
    pub skipped: u64,
    /// How many came up late. Each gets a run, unless one of the trigger's runs is not over and its `overlap` is `skip`.
    pub late: u64,
}

/// How the daemon before one that starts has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Predecessor {
    /// There was none.
    None,
    /// By an order.
    Stopped,
    /// The daemon that starts took its place.
    Replaced,
    Died,
    /// A later version's word.
    #[serde(other)]
    Unknown,
}
