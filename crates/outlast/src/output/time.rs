//! Times for people: relative, short, with a unit.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_workflow::duration;

/// `3m ago`, `in 12s`, `now`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let ms = now.as_millisecond().saturating_sub(at.as_millisecond());
    let text = duration::short(ms.unsigned_abs());
    match ms {
        -999..=999 => "now".to_owned(),
        1000.. => format!("{text} ago"),
        _ => format!("in {text}"),
    }
}

/// Milliseconds from one time in a JSON body to another; `None` if either is unreadable.
pub(crate) fn ms_between(from: &str, to: Timestamp) -> Option<u64> {
    let from: Timestamp = from.parse().ok()?;
    u64::try_from(to.as_millisecond() - from.as_millisecond()).ok()
}

/// `3m ago`, where there is little room; what is not a time is shown as it came.
pub(crate) fn ago(at: &str, now: Timestamp) -> String {
    at.parse::<Timestamp>().map_or_else(|_| at.to_owned(), |time| relative(time, now))
}

/// `3m ago (2026-11-15 21:50:00 CET)`; what is not a time is shown as it came.
pub(crate) fn both(at: &str, now: Timestamp) -> String {
    match at.parse::<Timestamp>() {
        Ok(time) => format!("{} ({})", relative(time, now), stamp(time)),
        Err(_) => at.to_owned(),
    }
}

/// `2026-11-15 21:50:00 CET`: by this machine's clock; what is not a time is shown as it came.
pub(crate) fn local(at: &str) -> String {
    at.parse::<Timestamp>().map_or_else(|_| at.to_owned(), stamp)
}

/// A sentence of the daemon's with its times by this machine's clock.
pub(crate) fn localised(text: &str) -> String {
    let word = |word: &str| {
        let time = word.trim_end_matches([',', ';', ':', ')', '.']).trim_start_matches('(');
        let is_time = time.ends_with('Z') && time.contains('T');
        match time.parse::<Timestamp>() {
            Ok(at) if is_time => word.replace(time, &stamp(at)),
            _ => word.to_owned(),
        }
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn stamp(at: Timestamp) -> String {
    at.to_zoned(zone()).strftime("%Y-%m-%d %H:%M:%S %Z").to_string()
}

/// This machine's, except in tests, which say the same everywhere.
fn zone() -> TimeZone {
    if cfg!(test) { TimeZone::UTC } else { TimeZone::system() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_look_both_ways() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        let told = |at: &str| relative(at.parse().expect("a time"), now);
        assert_eq!(told("2026-11-15T11:57:00Z"), "3m ago");
        assert_eq!(told("2026-11-15T12:00:12Z"), "in 12s");
        assert_eq!(told("2026-11-15T12:00:00.4Z"), "now");
        assert_eq!(told("2026-11-13T10:00:00Z"), "2d 2h ago");
        assert_eq!(both("soon", now), "soon");
        assert_eq!(both("2026-11-15T11:59:00Z", now), "1m ago (2026-11-15 11:59:00 UTC)");
        assert_eq!(
            localised("paused since 2026-11-15T11:59:00.123Z, by user 0 (at T Z)"),
            "paused since 2026-11-15 11:59:00 UTC, by user 0 (at T Z)"
        );
    }
}
