//! When a person last looked at the report, so that the next one begins there.
//!
//! The client keeps it in a small file of the state directory, by the daemon's clock. Only a report on a terminal counts as
//! a look: a script or a scheduled notice is no person.

use std::fs::File;
use std::io::Write;

use jiff::{SignedDuration, Timestamp};
use outlast_home::layout::Layout;
use serde_json::{Value, json};

/// A second look within this time shows the same night again.
const SAME_LOOK: SignedDuration = SignedDuration::from_mins(30);

/// The last two looks that are apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Looked {
    /// What the last look began with.
    pub(crate) since: Option<Timestamp>,
    pub(crate) at: Option<Timestamp>,
}

impl Looked {
    /// What cannot be read is no look.
    pub(crate) fn read(layout: &Layout) -> Self {
        let text = outlast_home::regular::read(&layout.looked_at()).unwrap_or_default();
        let json: Value = serde_json::from_slice(&text).unwrap_or_default();
        let time = |key: &str| json[key].as_str().and_then(|text| text.parse().ok());
        Self { since: time("since"), at: time("at") }
    }

    /// Where a report begins that is asked for at `now`.
    pub(crate) fn begin(self, now: Timestamp) -> Option<Timestamp> {
        let at = self.at.filter(|at| *at <= now)?;
        if now.duration_since(at) < SAME_LOOK { self.since.or(Some(at)) } else { Some(at) }
    }
}

/// A look that cannot be kept costs nothing but a longer report.
pub(crate) fn remember(layout: &Layout, since: Timestamp, now: Timestamp) {
    let text = json!({ "since": since.to_string(), "at": now.to_string() }).to_string();
    let path = layout.looked_at();
    let beside = path.with_extension("tmp");
    let written = File::create(&beside).and_then(|mut file| file.write_all(text.as_bytes()));
    if written.is_ok() {
        drop(std::fs::rename(beside, path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_look_shows_the_same_night_and_a_later_one_goes_on_from_the_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(dir.path());
        std::fs::create_dir_all(&layout.state).expect("directories");
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let (evening, morning) = (at("2026-11-15T19:40:00Z"), at("2026-11-16T08:00:00Z"));
        assert_eq!(Looked::read(&layout).begin(morning), None);
        remember(&layout, evening, morning);
        let looked = Looked::read(&layout);
        assert_eq!(looked.begin(at("2026-11-16T08:10:00Z")), Some(evening));
        assert_eq!(looked.begin(at("2026-11-16T12:00:00Z")), Some(morning));
        assert_eq!(looked.begin(at("2026-11-15T08:00:00Z")), None, "a clock that was set back");
    }
}
