//! Cron expressions, and the instants that they name in a time zone. Pure: no clock and no file.
//!
//! Where clocks change, this is what holds. An expression whose hour is `*` or `*/n` follows elapsed time: a
//! local time that does not exist is passed over, and one that comes twice counts each time. All others name
//! times of day: what does not exist happens once, at the first instant after the gap; what comes twice
//! happens the first time.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use outlast_engine::Time;

/// So far ahead something has to happen, or it never will: a 29 February can be eight years away.
const FARTHEST_DAYS: u32 = 366 * 9;

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, most: 59, words: &[] },
    Field { name: "hour", least: 0, most: 23, words: &[] },
    Field { name: "day of the month", least: 1, most: 31, words: &[] },
    Field { name: "month", least: 1, most: 12, words: &MONTHS },
    Field { name: "day of the week", least: 0, most: 7, words: &WEEKDAYS },
];
const MONTHS: [&str; 13] =
    ["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct BadCron(String);

impl BadCron {
    pub(crate) const HINT: &str =
        "minute hour day month weekday, such as '*/15 9-17 * * mon-fri'; or @hourly, @daily, …";
}

struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    words: &'static [&'static str],
}

/// Each field as a set of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    day_is_any: bool,
    weekday_is_any: bool,
    /// The hour is `*` or `*/n`.
    follows_elapsed_time: bool,
}

impl Cron {
    pub(crate) fn parse(text: &str) -> Result<Self, BadCron> {
        let text = text.trim();
        let nickname = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let expression = nickname.map_or(text, |(_, expression)| expression);
        if expression.starts_with('@') {
            return Err(BadCron(format!("{text:?} is not the name of a schedule")));
        }
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            let found = fields.len();
            return Err(BadCron(format!(
                "a cron expression has 5 fields, and {text:?} has {found}"
            )));
        };
        let [of_minute, of_hour, of_day, of_month, of_weekday] = &FIELDS;
        let weekdays = of_weekday.parse(weekday)?;
        Ok(Self {
            minutes: of_minute.parse(minute)?,
            hours: of_hour.parse(hour)?,
            days: of_day.parse(day)?,
            months: of_month.parse(month)?,
            // Sunday is 0 and 7.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            day_is_any: day.starts_with('*'),
            weekday_is_any: weekday.starts_with('*'),
            follows_elapsed_time: hour.starts_with('*'),
        })
    }

    /// The first instant after `after`, or `None` if there never is one.
    pub(crate) fn next_after(&self, after: Time, tz: &TimeZone) -> Option<Time> {
        self.after(after, tz).next()
    }

    /// Every instant after `after`, in order.
    pub(crate) fn after(&self, after: Time, tz: &TimeZone) -> Instants<'_> {
        let start = timestamp(after).to_zoned(tz.clone()).date();
        // A zone that crosses the date line has two days at one instant.
        let date = (0..2).fold(start, |date, _| date.yesterday().unwrap_or(date));
        Instants {
            cron: self,
            tz: tz.clone(),
            date: Some(date),
            days_left: FARTHEST_DAYS,
            day: Vec::new().into_iter(),
            last: after,
        }
    }

    fn has_day(&self, date: Date) -> bool {
        let has = |set: u64, number: i8| set >> u32::from(number.unsigned_abs()) & 1 == 1;
        if !has(self.months, date.month()) {
            return false;
        }
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        // As ever: if both are restricted, either will do.
        match (self.day_is_any, self.weekday_is_any) {
            (false, false) => day || weekday,
            (true, false) | (false, true) | (true, true) => day && weekday,
        }
    }

    /// The instants of a day that has any, in order.
    fn instants(&self, date: Date, tz: &TimeZone) -> Vec<Time> {
        if let Some(midnight) = steady_midnight(date, tz) {
            let minutes = numbers(self.hours)
                .flat_map(|hour| numbers(self.minutes).map(move |minute| (hour, minute)));
            let ms = |(hour, minute): (i8, i8)| (i64::from(hour) * 60 + i64::from(minute)) * 60_000;
            return minutes
                .filter_map(|minute| u64::try_from(midnight + ms(minute)).ok().map(Time))
                .collect();
        }
        let mut instants = Vec::new();
        for hour in numbers(self.hours) {
            for minute in numbers(self.minutes) {
                self.push(&mut instants, date.at(hour, minute, 0, 0), tz);
            }
        }
        instants.sort_unstable();
        instants.dedup();
        instants
    }

    fn push(&self, instants: &mut Vec<Time>, local: DateTime, tz: &TimeZone) {
        let ambiguous = tz.to_ambiguous_timestamp(local);
        let at = |offset: Offset| offset.to_timestamp(local).ok();
        match (ambiguous.offset(), self.follows_elapsed_time) {
            (AmbiguousOffset::Unambiguous { offset }, _) => instants.extend(at(offset).map(time)),
            (AmbiguousOffset::Gap { .. }, true) => {}
            (AmbiguousOffset::Gap { after, .. }, false) => {
                // By the later offset it lies before the gap, so the gap's end is the next change.
                let end = at(after).and_then(|at| Some(tz.following(at).next()?.timestamp()));
                instants.extend(end.map(time));
            }
            (AmbiguousOffset::Fold { before, after }, true) => {
                instants.extend([before, after].into_iter().filter_map(at).map(time));
            }
            (AmbiguousOffset::Fold { before, .. }, false) => instants.extend(at(before).map(time)),
        }
    }
}

/// See [`Cron::after`].
pub(crate) struct Instants<'a> {
    cron: &'a Cron,
    tz: TimeZone,
    /// The next day to look at.
    date: Option<Date>,
    /// How many days may still be looked at without a match.
    days_left: u32,
    day: std::vec::IntoIter<Time>,
    last: Time,
}

impl Iterator for Instants<'_> {
    type Item = Time;

    fn next(&mut self) -> Option<Time> {
        loop {
            let last = self.last;
            if let Some(at) = self.day.find(|at| *at > last) {
                (self.last, self.days_left) = (at, FARTHEST_DAYS);
                return Some(at);
            }
            let date = self.date?;
            self.days_left = self.days_left.checked_sub(1)?;
            self.date = date.tomorrow().ok();
            let is_over = || steady_midnight(date, &self.tz).is_some_and(|at| is_past(at, last));
            if self.cron.has_day(date) && !is_over() {
                self.day = self.cron.instants(date, &self.tz).into_iter();
            }
        }
    }
}

impl Field {
    fn parse(&self, text: &str) -> Result<u64, BadCron> {
        text.split(',').try_fold(0, |set, part| Ok(set | self.part(part)?))
    }

    /// `*`, `5`, `1-5`, `*/10`, `10-50/10`, `5/10`
    fn part(&self, part: &str) -> Result<u64, BadCron> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.number(step, "step")?)),
            None => (part, None),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (self.least, self.most),
            Some((from, to)) => (self.value(from)?, self.value(to)?),
            None if step.is_some() => (self.value(range)?, self.most),
            None => (self.value(range)?, self.value(range)?),
        };
        let step = step.unwrap_or(1);
        if from > to || step == 0 {
            return Err(BadCron(format!("{part:?} is not a range for the {}", self.name)));
        }
        Ok((from..=to).step_by(step as usize).fold(0, |set, number| set | 1 << number))
    }

    fn value(&self, text: &str) -> Result<u32, BadCron> {
        let named = self
            .words
            .iter()
            .position(|word| !word.is_empty() && word.eq_ignore_ascii_case(text))
            .and_then(|at| u32::try_from(at).ok());
        let value = named.map_or_else(|| self.number(text, "value"), Ok)?;
        if !(self.least..=self.most).contains(&value) {
            let (name, least, most) = (self.name, self.least, self.most);
            return Err(BadCron(format!("the {name} goes from {least} to {most}, not to {value}")));
        }
        Ok(value)
    }

    fn number(&self, text: &str, what: &str) -> Result<u32, BadCron> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_number);
        number.ok_or_else(|| BadCron(format!("{text:?} is not a {what} for the {}", self.name)))
    }
}

/// When the day begins, in milliseconds, if its clocks are not changed anywhere near it.
fn steady_midnight(date: Date, tz: &TimeZone) -> Option<i64> {
    const HOUR_MS: i64 = 3_600_000;
    // No zone is farther from UTC than this.
    const FARTHEST_MS: i64 = 26 * HOUR_MS;
    let naive = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?.as_millisecond();
    let before = Timestamp::from_millisecond(naive - FARTHEST_MS).ok()?;
    let after = Timestamp::from_millisecond(naive + 24 * HOUR_MS + FARTHEST_MS).ok()?;
    let is_steady = tz.following(before).next().is_none_or(|change| change.timestamp() > after);
    is_steady.then(|| naive - i64::from(tz.to_offset(before).seconds()) * 1000)
}

/// Whether a day that begins then, and is as long as days are, was over by `last`.
fn is_past(midnight: i64, last: Time) -> bool {
    i64::try_from(last.0).is_ok_and(|last| midnight + 86_400_000 <= last)
}

fn numbers(set: u64) -> impl Iterator<Item = i8> {
    (0..60).filter(move |number| set >> *number & 1 == 1)
}

pub(super) fn timestamp(time: Time) -> Timestamp {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX)
}

pub(super) fn time(timestamp: Timestamp) -> Time {
    Time(u64::try_from(timestamp.as_millisecond()).unwrap_or(0))
}

#[cfg(test)]
mod tests;
