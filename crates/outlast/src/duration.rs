//! Durations and moments as people type them: `90s`, `5m`, `1h30m`, `500ms`; a bare number is seconds.

use std::time::Duration;

use jiff::{Timestamp, ToSpan, Zoned, civil};
use outlast_client::problem::Problem;

use crate::moment;

/// What to write instead, said in every refusal.
const EXAMPLES: &str = "write 90s, 5m, 2h, 1h30m or 500ms";

pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let ms = parse_ms(text).ok_or_else(|| format!("not a duration; {EXAMPLES}"))?;
    Ok(Duration::from_millis(ms))
}

/// A duration with its unit. What is removed by it does not come back, so a bare number is not guessed at.
pub(crate) fn parse_with_unit(text: &str) -> Result<Duration, String> {
    if text.parse::<u64>().is_ok() {
        return Err(format!("has no unit; write {text}s, {text}m, {text}h or {text}d"));
    }
    parse(text)
}

/// A limit of nothing would end every run before it began.
pub(crate) fn parse_limit(text: &str) -> Result<Duration, String> {
    let limit = parse(text)?;
    if limit.is_zero() {
        return Err(format!("a limit is more than 0; {EXAMPLES}"));
    }
    Ok(limit)
}

/// How long a start is put off; not at all is the start without the option.
pub(crate) fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = parse(text)?;
    if delay.is_zero() {
        return Err("a delay is more than 0; without it, the run starts now".to_owned());
    }
    Ok(delay)
}

/// A moment in the past: an RFC 3339 time, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    At(Timestamp),
    Ago(Duration),
    /// The last time that it was this time of day here.
    Clock(civil::Time),
    /// A day or a moment by the calendar and the clocks of this place.
    Here(civil::DateTime),
    /// The start of a day: today's, or yesterday's.
    DaysAgo(i32),
}

pub(crate) fn parse_since(text: &str) -> Result<Since, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Since::At(at));
    }
    match text {
        "today" => return Ok(Since::DaysAgo(0)),
        "yesterday" => return Ok(Since::DaysAgo(1)),
        _ => {}
    }
    if let Some(clock) = moment::time_of_day(text) {
        return Ok(Since::Clock(clock));
    }
    // A date alone is its midnight; a bare number is no date.
    if text.contains('-')
        && let Ok(here) = text.replacen(' ', "T", 1).parse::<civil::DateTime>()
    {
        return Ok(Since::Here(here));
    }
    parse(text).map(Since::Ago).map_err(|_| {
        "neither a time nor a duration; write 22:00, yesterday, 2026-11-15, \
         2026-11-15T20:50, or 10m for ten minutes ago"
            .to_owned()
    })
}

impl Since {
    /// The same, of a moment that has come: nothing has happened since one in the future.
    pub(crate) fn past(self, now: &Zoned) -> Result<Self, Problem> {
        let at = self.timestamp(now);
        if at <= now.timestamp() {
            return Ok(self);
        }
        let message = format!("--since {at} is in the future");
        Err(Problem::refusal("bad_time", message)
            .hint("write a time that has passed, or 10m for ten minutes ago"))
    }

    /// The moment, by the clocks of the place where `now` is.
    pub(crate) fn timestamp(self, now: &Zoned) -> Timestamp {
        let here = match self {
            Self::At(at) => return at,
            Self::Ago(ago) => {
                return now.timestamp().checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH);
            }
            Self::Clock(clock) => last(clock, now),
            Self::Here(here) => here.to_zoned(now.time_zone().clone()).ok(),
            Self::DaysAgo(days) => {
                now.checked_sub(days.days()).ok().and_then(|day| day.start_of_day().ok())
            }
        };
        here.map_or(Timestamp::UNIX_EPOCH, |here| here.timestamp())
    }
}

/// The last time that the clocks here showed this time of day.
fn last(clock: civil::Time, now: &Zoned) -> Option<Zoned> {
    let today = now.with().time(clock).build().ok()?;
    if today.timestamp() <= now.timestamp() {
        return Some(today);
    }
    now.checked_sub(1.day()).ok()?.with().time(clock).build().ok()
}

pub(crate) fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A bare number is seconds.
fn parse_ms(text: &str) -> Option<u64> {
    match text.parse::<u64>() {
        Ok(seconds) => seconds.checked_mul(1000),
        Err(_) => outlast_workflow::duration::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_by_is_said_with_its_unit() {
        let days = |count: u64| Duration::from_secs(count * 24 * 3600);
        assert_eq!(parse_with_unit("3d"), Ok(days(3)));
        let said = parse_with_unit("3").expect_err("three of what?");
        assert!(said.contains("3s, 3m, 3h or 3d"), "{said}");
    }

    #[test]
    fn durations_as_people_type_them() {
        let cases = [
            ("90", 90_000),
            ("0", 0),
            ("90s", 90_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("1h30m", 5_400_000),
            ("1m500ms", 60_500),
            ("500ms", 500),
            ("7d", 604_800_000),
            ("1w", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let cases = [
            "",
            "m",
            "5x",
            "5 m",
            "-5s",
            "1.5h",
            "30m1h",
            "1h1h",
            "5ms5ms",
            "5m5",
            "s5",
            "+5",
            "99999999999999999999",
            "99999999999999999d",
            "٣s",
        ];
        for text in cases.into_iter().filter(|text| *text != "+5") {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse_limit("0s").is_err());
        assert!(parse_limit("1ms").is_ok());
    }

    #[test]
    fn since_takes_a_time_or_an_age() {
        let now: Zoned = "2026-11-15T13:00:00+01:00[Europe/Berlin]".parse().expect("a time");
        let moment = |text| parse_since(text).map(|since| since.timestamp(&now).to_string());
        assert_eq!(moment("10m"), Ok("2026-11-15T11:50:00Z".to_owned()));
        assert_eq!(moment("2026-11-15T13:00:00+02:00"), Ok("2026-11-15T11:00:00Z".to_owned()));
        let past = |text| parse_since(text).map(|since| since.past(&now).is_ok());
        assert_eq!(past("2030-01-01T00:00:00Z"), Ok(false));
        assert_eq!((past("2026-11-15T12:00:00Z"), past("10m")), (Ok(true), Ok(true)));
    }
    #[test]
    fn a_time_of_day_and_yesterday_were_no_start_of_a_report() {
        let now: Zoned = "2026-11-15T13:00:00+01:00[Europe/Berlin]".parse().expect("a time");
        let moment = |text| parse_since(text).map(|since| since.timestamp(&now).to_string());
        for (text, at) in [
            // The evening before, since it is not 22:00 yet.
            ("22:00", "2026-11-14T21:00:00Z"),
            ("13:00", "2026-11-15T12:00:00Z"),
            ("7:30", "2026-11-15T06:30:00Z"),
            ("today", "2026-11-14T23:00:00Z"),
            ("yesterday", "2026-11-13T23:00:00Z"),
            ("2026-11-10", "2026-11-09T23:00:00Z"),
            ("2026-11-10T22:00", "2026-11-10T21:00:00Z"),
            ("2026-11-10 22:00", "2026-11-10T21:00:00Z"),
            // Clocks were set back in between.
            ("2026-10-01", "2026-09-30T22:00:00Z"),
        ] {
            assert_eq!(moment(text).as_deref(), Ok(at), "{text}");
        }
        for wrong in ["25:00", "22", "tomorrow", "2026-13-01", "22:0"] {
            let is_clock = parse_since(wrong).is_ok_and(|it| !matches!(it, Since::Ago(_)));
            assert!(!is_clock, "{wrong}");
        }
        assert!(parse_since("2026-11-16").is_ok_and(|since| since.past(&now).is_err()));
    }
}
