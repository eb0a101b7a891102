//! How a run is doing, computed here so that every screen says the same.

use serde::{Deserialize, Serialize};

use crate::Run;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    Healthy,
    /// Nothing was heard of it for a while.
    Silent,
    /// It was silent for so long that it is being started anew.
    Stalled,
    /// It is started again and again, and gets nowhere.
    Thrashing,
    /// Only a person can set it going again.
    WaitingHuman,
    RateLimited,
    /// Most of one of its limits is used up.
    NearLimit,
    /// Its process lives, its shim does not: output and exit can no longer be seen.
    Orphaned,
    /// Its shim lives and does not answer.
    Unreachable,
}

impl Health {
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Silent => "silent",
            Self::Stalled => "stalled",
            Self::Thrashing => "thrashing",
            Self::WaitingHuman => "waiting_human",
            Self::RateLimited => "rate_limited",
            Self::NearLimit => "near_limit",
            Self::Orphaned => "orphaned",
            Self::Unreachable => "unreachable",
        }
    }
}

impl Run {
    pub fn health(&self) -> Health {
        match self.live() {
            Some(attempt) if attempt.held.is_orphaned => Health::Orphaned,
            Some(_) | None => Health::Healthy,
        }
    }
}
