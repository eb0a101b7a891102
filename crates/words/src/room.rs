//! More room for a run that a limit ended: the option of `outlast raise`, and how much more is offered.
//!
//! One table for the daemon and every screen. Knows no run: whether the amount is enough, and whether the operator allows
//! it, the engine says.

use crate::Limit;

/// An offer of more room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// `--max-turns`
    pub option: &'static str,
    /// How much more is offered, in the unit of the limit.
    pub by: u64,
    pub unit: Unit,
}

/// What a limit is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    UsdMicros,
    Ms,
}

const HOUR_MS: u64 = 3_600_000;

impl Limit {
    /// What gives a run more room that this limit ended. Nothing does for a stall, nor for a budget that other runs share.
    pub fn room(self) -> Option<Room> {
        let (option, by, unit) = match self {
            Self::MaxTurns => ("--max-turns", 10, Unit::Count),
            Self::MaxTokens => ("--max-tokens", 1_000_000, Unit::Count),
            Self::MaxCost => ("--max-cost", 5_000_000, Unit::UsdMicros),
            Self::RunTimeout => ("--run-timeout", 2 * HOUR_MS, Unit::Ms),
            Self::TurnTimeout => ("--turn-timeout", HOUR_MS, Unit::Ms),
            Self::StallWindow | Self::Budget => return None,
        };
        Some(Room { option, by, unit })
    }
}
