//! When a schedule's runs are due. Pure: what it is asked with is all it knows.
//!
//! A schedule goes forward over its occurrences and never back: each is let in or passed over once, and the
//! cursor, which is durable before anything is made of it, says up to where. A clock that is set back thus
//! finds nothing due until it has caught up.

use std::collections::VecDeque;

use jiff::ToSpan;
use jiff::civil::{self, DateTime};
use jiff::tz::TimeZone;
use outlast_engine::Time;
use outlast_wire::api::{Missed, Overlap, When};
use outlast_wire::codes::Code;

use super::cron::{self, BadCron, Cron};
use crate::refusal::Refusal;

/// What is let in no later than this was not missed.
pub(crate) const ON_TIME_MS: u64 = 60_000;
/// So many are caught up with at most, and so many wait at most; the rest is passed over, and counted.
pub(crate) const MOST_CAUGHT_UP: usize = 100;
/// What was missed before this long ago is not even counted.
const FARTHEST_BACK_MS: u64 = 400 * 24 * 3_600_000;
const SHORTEST_MS: u64 = 1000;

#[derive(Debug, Clone)]
pub(crate) enum Schedule {
    Cron {
        cron: Cron,
        tz: TimeZone,
    },
    /// Counted from when it was made.
    Every {
        ms: u64,
        from: Time,
    },
    At {
        at: Time,
        tz: TimeZone,
    },
}

/// What a moment finds due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Admission {
    /// In order.
    pub(crate) due: Vec<Time>,
    pub(crate) skipped: u64,
    /// The latest that was not looked at in time, whether it is let in or not.
    pub(crate) last_missed: Option<Time>,
    /// Everything up to here is settled.
    pub(crate) cursor: Time,
}

/// What becomes of an occurrence that is let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Make,
    Skip,
    /// Until a run of the same trigger has ended.
    Queue,
}

/// What to do with the next occurrence while so many runs of its trigger are open.
pub(crate) fn verdict(overlap: Overlap, open: u64) -> Verdict {
    match (overlap, open) {
        (Overlap::Parallel, _) | (Overlap::Skip | Overlap::Queue, 0) => Verdict::Make,
        (Overlap::Skip, _) => Verdict::Skip,
        (Overlap::Queue, _) => Verdict::Queue,
    }
}

impl Schedule {
    /// `now` is when it is made. One that would never happen is refused.
    pub(crate) fn new(when: &When, tz: Option<&str>, now: Time) -> Result<Self, Refusal> {
        let schedule = Self::read(when, tz, now)?;
        if let When::Cron(text) = when
            && schedule.next_after(now).is_none()
        {
            return Err(Refusal::new(Code::BadSchedule, format!("{text:?} never happens"))
                .hint("does the month have that day?"));
        }
        Ok(schedule)
    }

    /// One that was made then, and was looked at when it was made.
    pub(crate) fn read(when: &When, tz: Option<&str>, now: Time) -> Result<Self, Refusal> {
        let zone = zone(tz)?;
        match when {
            When::Cron(text) => {
                let cron = Cron::parse(text).map_err(|bad| bad_cron(&bad))?;
                Ok(Self::Cron { cron, tz: zone })
            }
            When::EveryMs(ms) if *ms < SHORTEST_MS => {
                Err(Refusal::new(Code::BadSchedule, "an interval is at least a second")
                    .hint("write 90s, 15m, 2h or 1h30m"))
            }
            When::EveryMs(ms) => Ok(Self::Every { ms: *ms, from: now }),
            When::At(text) => Ok(Self::At { at: moment(text, &zone)?, tz: zone }),
        }
    }

    /// The first occurrence after `after`.
    pub(crate) fn next_after(&self, after: Time) -> Option<Time> {
        match self {
            Self::Cron { cron, tz } => cron.next_after(after, tz),
            Self::Every { ms, from } => {
                let passed = after.0.saturating_sub(from.0) / ms;
                Some(Time(from.0.saturating_add(ms.saturating_mul(passed + 1))))
            }
            Self::At { at, .. } => (*at > after).then_some(*at),
        }
    }

    /// What is due at `now` of what comes after `cursor`, with room for so many.
    pub(crate) fn admit(&self, missed: Missed, cursor: Time, now: Time, room: usize) -> Admission {
        let from = Time(cursor.0.max(now.0.saturating_sub(FARTHEST_BACK_MS)));
        let (total, newest) = self.due(from, now);
        let cursor = newest.back().map_or(cursor, |last| (*last).max(cursor));
        let is_on_time = |at: &Time| now.ms_since(*at) <= ON_TIME_MS;
        let last_missed = newest.iter().rfind(|at| !is_on_time(at)).copied();
        let mut due: Vec<Time> = match missed {
            Missed::All => newest.into(),
            Missed::Skip => newest.into_iter().filter(is_on_time).collect(),
            Missed::Once if newest.iter().any(is_on_time) => {
                newest.into_iter().filter(is_on_time).collect()
            }
            Missed::Once => newest.back().copied().into_iter().collect(),
        };
        due.truncate(room);
        let skipped = total.saturating_sub(u64::try_from(due.len()).unwrap_or(u64::MAX));
        Admission { due, skipped, last_missed, cursor }
    }

    /// How many are due, and the newest of them.
    fn due(&self, after: Time, now: Time) -> (u64, VecDeque<Time>) {
        let mut newest = VecDeque::new();
        let mut total = 0;
        let mut keep = |at: Time| {
            total += 1;
            if newest.len() == MOST_CAUGHT_UP {
                newest.pop_front();
            }
            newest.push_back(at);
        };
        match self {
            Self::Cron { cron, tz } => {
                cron.after(after, tz).take_while(|at| *at <= now).for_each(&mut keep);
            }
            Self::Every { ms, from } => {
                let until = |at: Time| at.0.saturating_sub(from.0) / ms;
                let (first, last) = (until(after) + 1, until(now));
                let near = last.saturating_sub(MOST_CAUGHT_UP as u64 - 1).max(first);
                (near..=last).for_each(|n| keep(Time(from.0 + n * ms)));
                total = (last + 1).saturating_sub(first);
            }
            Self::At { at, .. } if (after < *at) && (*at <= now) => keep(*at),
            Self::At { .. } => {}
        }
        (total, newest)
    }

    /// A time as this schedule's zone writes it.
    pub(crate) fn local(&self, at: Time) -> String {
        let tz = match self {
            Self::Cron { tz, .. } | Self::At { tz, .. } => tz.clone(),
            Self::Every { .. } => TimeZone::UTC,
        };
        cron::timestamp(at).to_zoned(tz).strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string()
    }
}

/// `at 23:59` as the day and time that it means at `now`, in the zone; all else as it is. What is kept has a day.
pub(crate) fn with_day(when: When, tz: Option<&str>, now: Time) -> Result<When, Refusal> {
    let When::At(text) = &when else { return Ok(when) };
    let is_time_of_day = text.contains(':') && text.chars().all(|c| c.is_ascii_digit() || c == ':');
    let Some(time) = text.parse::<civil::Time>().ok().filter(|_| is_time_of_day) else {
        return Ok(when);
    };
    let here = cron::timestamp(now).to_zoned(zone(tz)?);
    let today = here.date().to_datetime(time);
    let is_over = today.to_zoned(here.time_zone().clone()).is_ok_and(|at| at <= here);
    let day = if is_over { today.checked_add(1.day()).unwrap_or(today) } else { today };
    Ok(When::At(day.to_string()))
}

fn bad_cron(bad: &BadCron) -> Refusal {
    Refusal::new(Code::BadSchedule, bad.to_string()).hint(BadCron::HINT)
}

fn zone(tz: Option<&str>) -> Result<TimeZone, Refusal> {
    let Some(name) = tz else { return Ok(TimeZone::UTC) };
    TimeZone::get(name).map_err(|_| {
        Refusal::new(Code::BadTimeZone, format!("unknown time zone {name:?}"))
            .hint("a name such as Europe/Berlin, America/New_York or UTC")
    })
}

fn moment(text: &str, tz: &TimeZone) -> Result<Time, Refusal> {
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Ok(cron::time(at));
    }
    let local = text.parse::<DateTime>().ok().and_then(|local| local.to_zoned(tz.clone()).ok());
    local.map(|at| cron::time(at.timestamp())).ok_or_else(|| {
        Refusal::new(Code::BadSchedule, format!("{text:?} is not a time"))
            .hint("23:59, 2026-12-01T09:00 (in the zone of --tz) or 2026-12-01T09:00:00Z")
    })
}

#[cfg(test)]
mod tests;
