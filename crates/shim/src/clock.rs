//! The clocks, and the only place in the shim that reads them.
//!
//! Deadlines use the monotonic clock, which stands still while the machine is suspended. What is written down is on
//! the daemon's line of time: when the machine was started, which the spec says, and the boot clock.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[expect(clippy::disallowed_methods, reason = "the shim's one reader of the monotonic clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What files are dated by.
#[expect(clippy::disallowed_methods, reason = "the shim's one reader of the wall clock")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}

/// When the machine was started, as the daemon that wrote the spec has it.
static BOOTED_AT_MS: OnceLock<i64> = OnceLock::new();

/// Has what is written down go by this line of time from here on.
pub(crate) fn go_by(booted_at_ms: Option<i64>) {
    if let Some(booted_at_ms) = booted_at_ms {
        BOOTED_AT_MS.get_or_init(|| booted_at_ms);
    }
}

/// The line of time that is gone by, if there is one.
pub(crate) fn line() -> Option<i64> {
    BOOTED_AT_MS.get().copied()
}

/// Milliseconds since 1970, for what is written down: by the boot clock, or by the wall if no daemon has said when
/// the machine was started.
pub(crate) fn wall_ms() -> u64 {
    let pretended = outlast_wire::pretended::clock();
    if let Some(booted_at_ms) = line() {
        let boot_ms = boot_ms();
        let boot_ms = pretended.map_or(boot_ms, |pretended| pretended.boot_ms(boot_ms));
        return booted_at_ms.saturating_add_unsigned(boot_ms).max(0).cast_unsigned();
    }
    let since = wall().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    pretended.map_or(ms, |pretended| pretended.wall_ms(ms))
}

fn boot_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = rustix::time::ClockId::Monotonic;
    let now = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1000 + u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0)
}

/// The earlier of two deadlines, where none is never.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
