//! What is due, what was missed, and that a year of deaths makes each run once.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

fn at(text: &str) -> Time {
    cron::time(text.parse().expect("a time"))
}

fn cron_of(text: &str, tz: &str) -> Schedule {
    let when = When::Cron(text.to_owned());
    Schedule::new(&when, Some(tz), at("2026-01-01T00:00:00Z")).expect("a schedule")
}

fn every(ms: u64) -> Schedule {
    Schedule::new(&When::EveryMs(ms), None, Time(1_000_000)).expect("a schedule")
}

#[test]
fn an_interval_is_counted_from_when_it_was_made() {
    let every = every(15 * MINUTE);
    assert_eq!(every.next_after(Time(1_000_000)), Some(Time(1_000_000 + 15 * MINUTE)));
    assert_eq!(every.next_after(Time(0)), Some(Time(1_000_000 + 15 * MINUTE)));
    let third = Time(1_000_000 + 45 * MINUTE);
    assert_eq!(every.next_after(Time(third.0 - 1)), Some(third));
    assert_eq!(every.next_after(third), Some(Time(third.0 + 15 * MINUTE)));
}

#[test]
fn a_moment_comes_once_in_the_zone_it_was_written_for() {
    let once = |text: &str| {
        let when = When::At(text.to_owned());
        Schedule::new(&when, Some("Europe/Berlin"), Time(0)).map_err(|refusal| refusal.code)
    };
    let schedule = once("2026-12-01T09:00").expect("a local time");
    let nine = at("2026-12-01T08:00:00Z");
    assert_eq!(schedule.next_after(Time(0)), Some(nine));
    assert_eq!(schedule.next_after(nine), None);
    let found = schedule.admit(Missed::Once, Time(0), Time(nine.0 + 5), 100);
    assert_eq!(found, Admission { due: vec![nine], skipped: 0, last_missed: None, cursor: nine });
    assert_eq!(schedule.admit(Missed::Once, nine, Time(nine.0 + DAY), 100).due, []);
    assert!(once("2026-12-01T08:00:00Z").is_ok() && once("2026-12-01 09:00:30").is_ok());
    assert_eq!(once("tomorrow").expect_err("no time"), Code::BadSchedule);
}

#[test]
fn what_cannot_be_a_schedule_is_refused_with_a_hint() {
    let refused = |when: When, tz: Option<&str>| {
        let refusal = Schedule::new(&when, tz, Time(0)).expect_err("it cannot be");
        assert!(refusal.hint.is_some(), "{refusal}");
        (refusal.code, refusal.message)
    };
    let cron = |text: &str| When::Cron(text.to_owned());
    let never = (Code::BadSchedule, "\"0 0 31 4 *\" never happens".to_owned());
    assert_eq!(refused(cron("0 0 31 4 *"), None), never);
    assert_eq!(refused(cron("x"), None).0, Code::BadSchedule);
    let nowhere = (Code::BadTimeZone, "unknown time zone \"Mars/Base\"".to_owned());
    assert_eq!(refused(cron("@daily"), Some("Mars/Base")), nowhere);
    assert_eq!(refused(When::EveryMs(10), None).0, Code::BadSchedule);
}

/// What each policy makes of a week without a daemon.
#[test]
fn missed_policies_hold_after_a_week_off() {
    let schedule = cron_of("*/5 * * * *", "Europe/Berlin");
    let cursor = at("2026-03-25T12:00:00Z");
    // Across the change of clocks, and not on time for any.
    let now = at("2026-04-01T12:03:00Z");
    let last = at("2026-04-01T12:00:00Z");
    let of = |missed| schedule.admit(missed, cursor, now, MOST_CAUGHT_UP);
    let week = 7 * 24 * 12;
    assert_eq!(
        of(Missed::Skip),
        Admission { due: Vec::new(), skipped: week, last_missed: Some(last), cursor: last }
    );
    assert_eq!(
        of(Missed::Once),
        Admission { due: vec![last], skipped: week - 1, last_missed: Some(last), cursor: last }
    );
    let all = of(Missed::All);
    assert_eq!((all.due.len(), all.skipped, all.cursor), (100, week - 100, last));
    assert_eq!(all.due.last(), Some(&last));
    // Few enough are all caught up with.
    let few = schedule.admit(Missed::All, Time(now.0 - HOUR), now, MOST_CAUGHT_UP);
    assert_eq!((few.due.len(), few.skipped), (12, 0));
    // What is on time is no missed one, and is made whatever was missed.
    let on_time = |missed| schedule.admit(missed, cursor, Time(last.0 + 30_000), MOST_CAUGHT_UP);
    for missed in [Missed::Skip, Missed::Once] {
        let found = on_time(missed);
        assert_eq!((found.due, found.skipped), (vec![last], week - 1), "{missed:?}");
        assert_eq!(found.last_missed, Some(Time(last.0 - 5 * MINUTE)), "the one before");
    }
    // A year of seconds takes no year to count.
    let seconds = every(1000).admit(Missed::All, Time(1_000_000), Time(365 * DAY), 100);
    assert_eq!((seconds.due.len(), seconds.skipped), (100, 365 * 86_400 - 1000 - 100));
}

#[test]
fn a_clock_set_back_makes_nothing_due_twice() {
    let schedule = cron_of("*/5 * * * *", "UTC");
    let now = at("2026-05-01T12:00:00Z");
    let first = schedule.admit(Missed::All, Time(now.0 - 1), now, 100);
    assert_eq!(first.due, [now]);
    let mut cursor = first.cursor;
    for back in [1, 5 * MINUTE, HOUR, DAY] {
        let found = schedule.admit(Missed::All, cursor, Time(now.0 - back), 100);
        assert_eq!(found, Admission { due: Vec::new(), skipped: 0, last_missed: None, cursor });
        cursor = found.cursor;
    }
    let next = schedule.admit(Missed::All, cursor, Time(now.0 + 5 * MINUTE), 100);
    assert_eq!(next.due, [Time(now.0 + 5 * MINUTE)]);
}

#[test]
fn what_waits_is_bounded_and_the_rest_is_counted() {
    let schedule = every(MINUTE);
    let now = Time(1_000_000 + 10 * MINUTE);
    let found = schedule.admit(Missed::All, Time(1_000_000), now, 3);
    let minutes: Vec<u64> = found.due.iter().map(|at| (at.0 - 1_000_000) / MINUTE).collect();
    assert_eq!((minutes, found.skipped), (vec![1, 2, 3], 7));
    assert_eq!(schedule.admit(Missed::All, Time(1_000_000), now, 0).skipped, 10);
}

#[test]
fn overlap_says_what_becomes_of_the_next() {
    use Overlap::{Parallel, Queue, Skip};
    let cases = [
        (Skip, 0, Verdict::Make),
        (Skip, 1, Verdict::Skip),
        (Queue, 0, Verdict::Make),
        (Queue, 2, Verdict::Queue),
        (Parallel, 7, Verdict::Make),
    ];
    for (overlap, open, expected) in cases {
        assert_eq!(verdict(overlap, open), expected, "{overlap:?} {open}");
    }
}

/// What is on disk, and what has happened in the world.
struct World {
    cursor: Time,
    waiting: BTreeSet<Time>,
    /// Runs by their key, as the journal has them.
    made: BTreeMap<Time, u32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Death {
    None,
    BeforeKeeping,
    BeforeMaking,
    BeforeSettling,
}

impl World {
    /// What a daemon does at one moment; a death leaves what was durable.
    fn tend(&mut self, schedule: &Schedule, now: Time, death: Death) {
        let room = MOST_CAUGHT_UP - self.waiting.len();
        let found = schedule.admit(Missed::All, self.cursor, now, room);
        if death == Death::BeforeKeeping {
            return;
        }
        self.cursor = found.cursor;
        self.waiting.extend(found.due);
        for at in self.waiting.clone() {
            if death == Death::BeforeMaking {
                return;
            }
            // The key finds the run that is there already.
            if !self.made.contains_key(&at) {
                *self.made.entry(at).or_default() += 1;
            }
            if death == Death::BeforeSettling {
                return;
            }
            self.waiting.remove(&at);
        }
    }
}

#[test]
fn a_year_of_five_minutes_with_fifty_kills_makes_each_run_once() {
    for name in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] {
        let schedule = cron_of("*/5 * * * *", name);
        let start = at("2026-01-01T00:00:00Z");
        let (waiting, made) = (BTreeSet::new(), BTreeMap::new());
        let mut world = World { cursor: start, waiting, made };
        let end = Time(start.0 + 365 * DAY);
        let (mut now, mut step, mut kills) = (start, 0_u64, 0);
        while now < end {
            step += 1;
            // At the next occurrence or up to two hours late, and after a death a while later.
            let next = schedule.next_after(world.cursor).expect("there is always a next");
            now = Time((next.0 + step % 24 * 5 * MINUTE).max(now.0).min(end.0));
            let deaths = [Death::BeforeKeeping, Death::BeforeMaking, Death::BeforeSettling];
            if step.is_multiple_of(131) && kills < 50 {
                let death = deaths[kills % 3];
                kills += 1;
                world.tend(&schedule, now, death);
                now = Time((now.0 + step % 7 * HOUR).min(end.0));
            }
            world.tend(&schedule, now, Death::None);
        }
        assert_eq!((kills, world.waiting.len()), (50, 0), "{name}");
        let expected: Vec<Time> =
            (1..=365 * 24 * 12).map(|n| Time(start.0 + n * 5 * MINUTE)).collect();
        assert!(world.made.keys().eq(expected.iter()), "{name}");
        assert!(world.made.values().all(|times| *times == 1), "{name}");
    }
}
