//! How a run is doing, computed here so that every screen says the same.

use crate::Run;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Healthy,
    /// Its process lives, its shim does not: output and exit can no longer be seen.
    Orphaned,
}

impl Health {
    pub fn word(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Orphaned => "orphaned",
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
