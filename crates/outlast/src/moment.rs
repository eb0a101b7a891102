//! A time of day as people type it: `03:00` is the next one here, `2026-12-24T18:00` is that day.

use jiff::civil::{DateTime, Time};
use jiff::{Timestamp, ToSpan, Zoned};
use outlast_client::problem::Problem;

/// The moment that is meant, as RFC 3339. One that has passed is refused.
pub(crate) fn next(text: &str, now: &Zoned) -> Result<String, Problem> {
    let Some(at) = meant(text.trim(), now) else {
        let message = format!("{text:?} is not a time");
        return Err(Problem::refusal("bad_time", message)
            .hint("write 03:00, 2026-12-24T18:00 or 2026-12-24T18:00:00Z"));
    };
    if at <= now.timestamp() {
        let message = format!("{text} has passed: it is {} here", now.strftime("%Y-%m-%dT%H:%M"));
        return Err(Problem::refusal("bad_time", message)
            .hint("leave --at out to start now, or write the time alone for the next one"));
    }
    Ok(at.to_string())
}

fn meant(text: &str, now: &Zoned) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at);
    }
    if let Some(at) = time_of_day(text) {
        let today = now.with().time(at).build().ok()?;
        let next = if today.timestamp() > now.timestamp() {
            today
        } else {
            now.checked_add(1.day()).ok()?.with().time(at).build().ok()?
        };
        return Some(next.timestamp());
    }
    let local = text.replacen(' ', "T", 1).parse::<DateTime>().ok()?;
    Some(local.to_zoned(now.time_zone().clone()).ok()?.timestamp())
}

/// `3:00`, `03:00` or `03:00:30`.
pub(crate) fn time_of_day(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let hour: i8 = parts.next().filter(|hour| hour.len() <= 2)?.parse().ok()?;
    let minute: i8 = parts.next().filter(|minute| minute.len() == 2)?.parse().ok()?;
    let second: i8 = match parts.next() {
        Some(second) => second.parse().ok()?,
        None => 0,
    };
    if parts.next().is_some() {
        return None;
    }
    Time::new(hour, minute, second, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Result<String, Problem> {
        let now: Zoned = "2026-11-18T01:30:00+01:00[Europe/Berlin]".parse().expect("a time");
        next(text, &now)
    }

    #[test]
    fn a_time_alone_is_the_next_one_here() {
        assert_eq!(at("03:00"), Ok("2026-11-18T02:00:00Z".to_owned()));
        assert_eq!(at("1:30"), Ok("2026-11-19T00:30:00Z".to_owned()));
        assert_eq!(at("01:29"), Ok("2026-11-19T00:29:00Z".to_owned()));
    }

    #[test]
    fn a_day_is_that_day_and_never_one_that_has_passed() {
        assert_eq!(at("2026-12-24T18:00"), Ok("2026-12-24T17:00:00Z".to_owned()));
        assert_eq!(at("2026-12-24 18:00"), Ok("2026-12-24T17:00:00Z".to_owned()));
        assert_eq!(at("2026-12-24T18:00:00Z"), Ok("2026-12-24T18:00:00Z".to_owned()));
        assert!(at("2026-11-17T03:00").is_err());
        for wrong in ["", "3", "25:00", "03:60", "3:0", "tomorrow", "03:00:00:00"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
