//! The daemon's clock. It never goes back: a machine whose clock is set back must not thereby get longer
//! limits or later deadlines.
//!
//! The wall clock is believed when it is ahead of what has passed since boot, and not when it is behind.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast_engine::Time;
use rustix::time::ClockId;

/// By how much the clock may be ahead of what the next daemon was left.
const LEAP_MS: u64 = 1000;

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    hands: Arc<Mutex<Hands>>,
}

#[derive(Debug, Clone, Copy)]
struct Hands {
    floor: Reading,
    /// What the next daemon goes on from, if this one dies now.
    kept: Reading,
}

/// Less than this is no clock that was set.
const NOISE_MS: u64 = 100;

/// What both clocks said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) wall_ms: u64,
    /// Since boot, suspended time among it.
    pub(crate) boot_ms: u64,
}

impl Clock {
    /// A clock that goes on from what an earlier daemon of this boot read.
    pub(crate) fn start(earlier: Option<Reading>) -> Self {
        let now = Reading { wall_ms: wall_ms(), boot_ms: boot_ms() };
        let floor = earlier.filter(|earlier| earlier.boot_ms <= now.boot_ms).unwrap_or(now);
        Self { hands: Arc::new(Mutex::new(Hands { floor, kept: floor })) }
    }

    pub(crate) fn now(&self) -> Time {
        Time(self.read().wall_ms)
    }

    /// What somebody else read off the wall, as a time of ours: they do not know that the wall's was set back.
    pub(crate) fn ours(&self, theirs: Time) -> Time {
        let now = self.now();
        match now.0.saturating_sub(wall_ms()) {
            // Two clocks read one after the other, in whole milliseconds.
            0..NOISE_MS => theirs.min(now),
            behind_ms => Time(theirs.0.saturating_add(behind_ms)).min(now),
        }
    }

    pub(crate) fn read(&self) -> Reading {
        let mut hands = self.hands();
        hands.floor = later(hands.floor, Reading { wall_ms: wall_ms(), boot_ms: boot_ms() });
        hands.floor
    }

    /// True if the clock was set forward, and nobody has left the next daemon so much as that.
    pub(crate) fn has_leapt(&self) -> bool {
        let Hands { floor, kept } = *self.hands();
        floor.wall_ms.saturating_sub(later(kept, Reading { wall_ms: 0, ..floor }).wall_ms) > LEAP_MS
    }

    /// The next daemon will go on from this.
    pub(crate) fn kept(&self, reading: Reading) {
        self.hands().kept = reading;
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time now, given an earlier one: at least as much later as the boot clock says.
fn later(earlier: Reading, now: Reading) -> Reading {
    let passed_ms = now.boot_ms.saturating_sub(earlier.boot_ms);
    let least = earlier.wall_ms.saturating_add(passed_ms);
    Reading { wall_ms: now.wall_ms.max(least), boot_ms: now.boot_ms }
}

/// What the wall says: for the log, which is compared with other logs, and for times of day.
pub(crate) fn wall() -> Time {
    Time(wall_ms())
}

/// The wall clock. A debug build can be told how far it is off, so that a test can set it.
fn wall_ms() -> u64 {
    #[expect(clippy::disallowed_methods, reason = "this is the daemon's clock")]
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    match pretended_offset_ms() {
        Some(offset) => ms.saturating_add_signed(offset),
        None => ms,
    }
}

fn pretended_offset_ms() -> Option<i64> {
    if !cfg!(debug_assertions) {
        return None;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's pretended clock; not in a release build"
    )]
    let file = std::env::var_os("OUTLAST_FAKE_CLOCK_FILE")?;
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

fn boot_ms() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::Boottime;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Monotonic;
    read_ms(clock)
}

/// Since some moment, suspended time left out.
pub(super) fn awake_ms() -> u64 {
    read_ms(ClockId::Monotonic)
}

fn read_ms(clock: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1000 + u64::try_from(now.tv_nsec / 1_000_000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(wall_ms: u64, boot_ms: u64) -> Reading {
        Reading { wall_ms, boot_ms }
    }

    #[test]
    fn a_clock_set_back_goes_on_and_one_set_forward_is_followed() {
        let start = reading(1_000_000, 500);
        let set_back = later(start, reading(400_000, 1_500));
        assert_eq!(set_back, reading(1_001_000, 1_500));
        let set_forward = later(set_back, reading(2_000_000, 2_500));
        assert_eq!(set_forward, reading(2_000_000, 2_500));
        assert_eq!(later(set_forward, reading(2_000_100, 2_600)).wall_ms, 2_000_100);
    }
    #[test]
    fn only_a_leap_is_news_for_the_next_daemon() {
        let clock = Clock::start(None);
        let now = clock.read();
        assert!(!clock.has_leapt());
        clock.kept(reading(now.wall_ms - 3_600_000, now.boot_ms));
        assert!(clock.has_leapt());
        clock.kept(now);
        assert!(!clock.has_leapt());
    }
}
