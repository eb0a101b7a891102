//! Times as people read them: on their own wall, with the day where it is another one.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::output::printable;

/// Times as the person who reads has them on the wall.
pub(super) struct When {
    now: Zoned,
}

impl When {
    pub(super) fn new(now: Timestamp, tz: &TimeZone) -> Self {
        Self { now: now.to_zoned(tz.clone()) }
    }

    /// `02:14`, `yesterday 19:40`, `Nov 12 08:00`.
    pub(super) fn at(&self, at: Timestamp) -> String {
        let at = at.to_zoned(self.now.time_zone().clone());
        let clock = at.strftime("%H:%M");
        if at.date() == self.now.date() {
            return clock.to_string();
        }
        let is =
            |day: Result<jiff::civil::Date, jiff::Error>| day.is_ok_and(|day| day == at.date());
        if is(self.now.date().yesterday()) {
            return format!("yesterday {clock}");
        }
        if is(self.now.date().tomorrow()) {
            return format!("tomorrow {clock}");
        }
        let is_this_year = at.year() == self.now.year();
        at.strftime(if is_this_year { "%b %-d %H:%M" } else { "%b %-d %Y %H:%M" }).to_string()
    }

    /// The same of a time as JSON has it; what is no time is shown as it came.
    pub(super) fn text(&self, at: &str) -> String {
        at.parse::<Timestamp>().map_or_else(|_| printable(at), |at| self.at(at))
    }
}
