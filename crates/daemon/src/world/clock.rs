//! The daemon's clock: one line of time for each boot.
//!
//! Within a boot, time is what CLOCK_BOOTTIME says, counted from when the machine was started. The wall clock says
//! when that was, once: a wall clock that is set forward or back by hours moves nothing. A setting that has stood
//! for ten minutes is believed. Then the line moves as a whole, and each run is told by how much
//! (`Fact::ClockSet`), so that no limit, delay or deadline becomes longer or shorter by it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast_engine::Time;
use rustix::time::ClockId;
use tokio::sync::Notify;

/// How long a wall clock that was set has to stand before it is believed.
const PATIENCE_MS: u64 = 600_000;
/// A machine without a battery sets its clock soon after its start: what it says then is believed at once.
const EARLY_MS: u64 = 600_000;
/// Less than this is no clock that was set: two clocks read one after the other, a leap second.
const TOLERANCE_MS: u64 = 2_000;

#[derive(Debug, Clone)]
pub(crate) struct Clock {
    hands: Arc<Mutex<Hands>>,
    /// The line that this daemon has begun on.
    first: Line,
    news: Arc<Notify>,
}

#[derive(Debug, Clone, Copy)]
struct Hands {
    line: Line,
    /// What the next daemon goes on from, if this one dies now.
    kept_ms: Option<i64>,
}

/// What both clocks said at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) wall_ms: u64,
    /// Since boot, suspended time among it.
    pub(crate) boot_ms: u64,
}

impl Reading {
    /// When the machine was started, if the wall is right.
    fn booted_at_ms(self) -> i64 {
        self.wall_ms.cast_signed().wrapping_sub(self.boot_ms.cast_signed())
    }
}

/// The line of time, and a wall clock that disagrees with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    booted_at_ms: i64,
    doubt: Option<Doubt>,
}

/// What the wall says instead, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Doubt {
    booted_at_ms: i64,
    since_boot_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looked {
    AsBefore,
    /// The wall clock was set just now, as far as we know.
    Doubted,
    /// The line has moved.
    Set,
}

impl Line {
    fn now(self, boot_ms: u64) -> Time {
        Time(self.booted_at_ms.saturating_add_unsigned(boot_ms).max(0).cast_unsigned())
    }

    /// Compares the wall with the line. One that has disagreed by the same for `patience_ms` is believed.
    fn look(&mut self, seen: Reading, patience_ms: u64) -> Looked {
        let said = seen.booted_at_ms();
        if said.abs_diff(self.booted_at_ms) <= TOLERANCE_MS {
            self.doubt = None;
            return Looked::AsBefore;
        }
        let known = self.doubt.filter(|doubt| said.abs_diff(doubt.booted_at_ms) <= TOLERANCE_MS);
        let since_boot_ms = known.map_or(seen.boot_ms, |doubt| doubt.since_boot_ms);
        if seen.boot_ms.saturating_sub(since_boot_ms) >= patience_ms {
            *self = Self { booted_at_ms: said, doubt: None };
            return Looked::Set;
        }
        self.doubt = Some(Doubt { booted_at_ms: said, since_boot_ms });
        if known.is_some() { Looked::AsBefore } else { Looked::Doubted }
    }
}

impl Clock {
    /// A clock that goes on from what an earlier daemon of this boot read.
    pub(crate) fn start(earlier: Option<Reading>) -> Self {
        let (now, _) = read();
        let floor = earlier.filter(|earlier| earlier.boot_ms <= now.boot_ms);
        let line = Line { booted_at_ms: floor.unwrap_or(now).booted_at_ms(), doubt: None };
        let kept_ms = floor.map(Reading::booted_at_ms);
        let hands = Arc::new(Mutex::new(Hands { line, kept_ms }));
        Self { hands, first: line, news: Arc::default() }
    }

    pub(crate) fn now(&self) -> Time {
        self.look().0
    }

    /// Now, on the line that this daemon has begun on.
    pub(crate) fn steady(&self) -> Time {
        self.first.now(read().0.boot_ms)
    }

    /// Now, and when the machine was started on the line that now is on.
    pub(crate) fn moment(&self) -> (Time, i64) {
        self.look()
    }

    /// What a file is dated by, as a time of ours: the kernel goes by the wall.
    pub(crate) fn ours(&self, theirs: Time) -> Time {
        let (seen, _) = read();
        let now = self.now();
        let age_ms = seen.wall_ms.saturating_sub(theirs.0);
        Time(now.0.saturating_sub(age_ms))
    }

    /// A time on the line of an earlier daemon of this boot, as a time of ours.
    pub(crate) fn on_our_line(&self, theirs: Time, booted_at_ms: i64) -> Time {
        let (now, ours_ms) = self.look();
        let moved_ms = ours_ms.saturating_sub(booted_at_ms);
        Time(theirs.0.saturating_add_signed(moved_ms)).min(now)
    }

    /// The line, as the next daemon is left it.
    pub(crate) fn reading(&self) -> Reading {
        let (seen, _) = read();
        let hands = self.hands();
        Reading { wall_ms: hands.line.now(seen.boot_ms).0, boot_ms: seen.boot_ms }
    }

    /// True if the next daemon would not go on on this line.
    pub(crate) fn is_news(&self) -> bool {
        let hands = self.hands();
        hands.kept_ms.is_none_or(|kept| kept.abs_diff(hands.line.booted_at_ms) > TOLERANCE_MS)
    }

    /// The next daemon will go on from this.
    pub(crate) fn kept(&self, reading: Reading) {
        self.hands().kept_ms = Some(reading.booted_at_ms());
    }

    /// How long until a wall clock that was set is believed, if one was.
    pub(crate) fn doubts_for(&self) -> Option<Duration> {
        let (seen, patience_ms) = read();
        let doubt = self.hands().line.doubt?;
        let passed_ms = seen.boot_ms.saturating_sub(doubt.since_boot_ms);
        Some(Duration::from_millis(patience_ms.saturating_sub(passed_ms)))
    }

    /// How far the wall is off, while that is not believed.
    pub(crate) fn doubt_ms(&self) -> Option<i64> {
        let line = self.hands().line;
        line.doubt.map(|doubt| doubt.booted_at_ms.saturating_sub(line.booted_at_ms))
    }

    /// Returns when the line has moved, or may soon.
    pub(crate) async fn changed(&self) {
        self.news.notified().await;
    }

    fn look(&self) -> (Time, i64) {
        let (seen, patience_ms) = read();
        let mut hands = self.hands();
        let looked = hands.line.look(seen, patience_ms);
        let found = (hands.line.now(seen.boot_ms), hands.line.booted_at_ms);
        drop(hands);
        if looked != Looked::AsBefore {
            self.news.notify_one();
        }
        found
    }

    fn hands(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the wall says: for the log, which is compared with other logs.
pub(crate) fn wall() -> Time {
    Time(read().0.wall_ms)
}

/// Both clocks, and how long a wall clock that was set has to stand.
fn read() -> (Reading, u64) {
    let boot_ms = boot_ms();
    #[expect(clippy::disallowed_methods, reason = "this is the daemon's clock")]
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let wall_ms = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    match outlast_wire::pretended::clock() {
        None => {
            let patience_ms = if boot_ms < EARLY_MS { 0 } else { PATIENCE_MS };
            (Reading { wall_ms, boot_ms }, patience_ms)
        }
        Some(pretended) => {
            let wall_ms = pretended.wall_ms(wall_ms);
            (Reading { wall_ms, boot_ms: pretended.boot_ms(boot_ms) }, pretended.patience_ms)
        }
    }
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
    use proptest::prelude::*;

    use super::*;

    const HOUR_MS: u64 = 3_600_000;

    /// A machine whose wall clock can be set.
    struct Machine {
        line: Line,
        boot_ms: u64,
        wall_ms: u64,
    }

    impl Machine {
        fn new() -> Self {
            let (boot_ms, wall_ms) = (5_000_000, 1_800_000_000_000);
            let booted_at_ms = Reading { wall_ms, boot_ms }.booted_at_ms();
            Self { line: Line { booted_at_ms, doubt: None }, boot_ms, wall_ms }
        }

        fn pass(&mut self, ms: u64) {
            self.boot_ms += ms;
            self.wall_ms += ms;
        }

        fn look(&mut self) -> Looked {
            let seen = Reading { wall_ms: self.wall_ms, boot_ms: self.boot_ms };
            self.line.look(seen, PATIENCE_MS)
        }

        fn now(&self) -> u64 {
            self.line.now(self.boot_ms).0
        }
    }

    #[test]
    fn a_clock_set_for_a_while_moves_nothing_and_one_that_stands_is_believed() {
        let mut machine = Machine::new();
        let start = machine.now();
        machine.wall_ms += 3 * HOUR_MS;
        assert_eq!(machine.look(), Looked::Doubted);
        machine.pass(4_000);
        assert_eq!((machine.look(), machine.now()), (Looked::AsBefore, start + 4_000));
        machine.wall_ms -= 3 * HOUR_MS;
        assert_eq!((machine.look(), machine.line.doubt), (Looked::AsBefore, None));
        // Back by three hours, for good.
        machine.wall_ms -= 3 * HOUR_MS;
        assert_eq!(machine.look(), Looked::Doubted);
        machine.pass(PATIENCE_MS - 1);
        assert_eq!(machine.look(), Looked::AsBefore);
        machine.pass(1);
        assert_eq!(machine.look(), Looked::Set);
        assert_eq!(machine.now(), machine.wall_ms);
        assert_eq!(machine.look(), Looked::AsBefore);
    }

    #[test]
    fn a_clock_that_is_set_again_and_again_is_never_believed() {
        let mut machine = Machine::new();
        let start = machine.now();
        for _ in 0..20 {
            machine.wall_ms += HOUR_MS;
            assert_eq!(machine.look(), Looked::Doubted);
            machine.pass(PATIENCE_MS / 2);
        }
        assert_eq!(machine.now(), start + 20 * PATIENCE_MS / 2);
    }

    proptest! {
        /// Whatever is done to the wall clock, time on the line is the boot clock's, exactly; the line moves only by
        /// what is believed, and then it is the wall's.
        #[test]
        fn durations_are_those_of_the_boot_clock_whatever_is_done_to_the_wall(
            steps in prop::collection::vec((0u64..900_000, -20_000_000i64..20_000_000, any::<bool>()), 1..60)
        ) {
            let mut machine = Machine::new();
            for (pass_ms, step_ms, sets) in steps {
                let (before, line, boot_ms) = (machine.now(), machine.line, machine.boot_ms);
                machine.pass(pass_ms);
                if sets {
                    machine.wall_ms = machine.wall_ms.saturating_add_signed(step_ms);
                }
                let looked = machine.look();
                let moved = machine.line.booted_at_ms - line.booted_at_ms;
                prop_assert_eq!(
                    machine.now().cast_signed() - moved - before.cast_signed(),
                    (machine.boot_ms - boot_ms).cast_signed()
                );
                prop_assert_eq!(looked == Looked::Set, moved != 0);
                if looked == Looked::Set {
                    prop_assert_eq!(machine.now(), machine.wall_ms);
                    let doubt = line.doubt.expect("it was doubted before it was believed");
                    prop_assert!(machine.boot_ms - doubt.since_boot_ms >= PATIENCE_MS);
                } else {
                    prop_assert!(machine.now() >= before, "time went back");
                }
            }
        }
    }

    #[test]
    fn only_a_line_that_has_moved_is_news_for_the_next_daemon() {
        let clock = Clock::start(None);
        assert!(clock.is_news(), "there is nothing that it could go on from");
        let reading = clock.reading();
        clock.kept(reading);
        assert!(!clock.is_news());
        clock.kept(Reading { wall_ms: reading.wall_ms - HOUR_MS, ..reading });
        assert!(clock.is_news());
    }

    #[test]
    fn a_time_of_another_line_keeps_its_age() {
        let clock = Clock::start(None);
        let (now, booted_at_ms) = clock.moment();
        let theirs = Time(now.0 - 5_000 + 3 * HOUR_MS);
        let ours = clock.on_our_line(theirs, booted_at_ms + (3 * HOUR_MS).cast_signed());
        assert_eq!(ours, Time(now.0 - 5_000));
    }
}
