//! The two clocks, and the only place in the shim that reads them.
//!
//! Deadlines use the monotonic clock, which stands still while the machine is suspended. What is
//! written down uses the wall clock, because other processes read it.

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

/// Milliseconds since 1970, for what is written down.
pub(crate) fn wall_ms() -> u64 {
    let since = wall().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    ms.saturating_add_signed(pretended_offset_ms())
}

/// How far off the clock is that a test has set; a release build has no such door.
fn pretended_offset_ms() -> i64 {
    if !cfg!(debug_assertions) {
        return 0;
    }
    #[expect(clippy::disallowed_methods, reason = "a test sets the clock; not in a release build")]
    let file = std::env::var_os("OUTLAST_FAKE_CLOCK_FILE");
    let offset = file.and_then(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    offset.unwrap_or(0)
}

/// The earlier of two deadlines, where none is never.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
