//! Days of a time zone: when they begin and when they end.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_conduct::budgets::{Calendar, Day, Utc};
use outlast_engine::Time;

/// The zones of the database that the program brings, and that of this machine.
pub(crate) struct Zones;

impl Calendar for Zones {
    fn day(&self, tz: Option<&str>, at: Time) -> Day {
        // The config was refused if it names a zone that does not exist.
        let named = tz.and_then(|name| TimeZone::get(name).ok());
        let zone = named.or_else(|| TimeZone::try_system().ok()).unwrap_or(TimeZone::UTC);
        day(&zone, at).unwrap_or_else(|| Utc.day(tz, at))
    }
}

fn day(zone: &TimeZone, at: Time) -> Option<Day> {
    let at = Timestamp::from_millisecond(i64::try_from(at.0).ok()?).ok()?.to_zoned(zone.clone());
    let begins = at.start_of_day().ok()?;
    let ends = at.tomorrow().ok()?.start_of_day().ok()?;
    let time = |at: &jiff::Zoned| u64::try_from(at.timestamp().as_millisecond()).ok().map(Time);
    let name = match zone.iana_name() {
        Some("Etc/UTC") => "UTC".to_owned(),
        Some(name) => name.to_owned(),
        None => begins.strftime("UTC%:z").to_string(),
    };
    Some(Day { begins: time(&begins)?, ends: time(&ends)?, zone: name })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        let at: Timestamp = text.parse().expect("a time");
        Time(u64::try_from(at.as_millisecond()).expect("after 1970"))
    }

    #[test]
    fn a_day_is_from_midnight_to_midnight_also_when_the_clocks_change() {
        for (zone, at, begins, ends) in [
            ("UTC", "2026-11-15T12:00:00Z", "2026-11-15T00:00:00Z", "2026-11-16T00:00:00Z"),
            (
                "Europe/Berlin",
                "2026-11-15T23:30:00Z",
                "2026-11-15T23:00:00Z",
                "2026-11-16T23:00:00Z",
            ),
            (
                "America/Los_Angeles",
                "2026-11-15T07:59:00Z",
                "2026-11-14T08:00:00Z",
                "2026-11-15T08:00:00Z",
            ),
            // Twenty-five hours.
            (
                "Europe/Berlin",
                "2026-10-25T12:00:00Z",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            (
                "Asia/Kathmandu",
                "2026-11-15T12:00:00Z",
                "2026-11-14T18:15:00Z",
                "2026-11-15T18:15:00Z",
            ),
        ] {
            let day = Zones.day(Some(zone), time(at));
            assert_eq!((day.begins, day.ends), (time(begins), time(ends)), "{zone} at {at}");
            assert_eq!(day.zone, zone);
        }
    }
}
