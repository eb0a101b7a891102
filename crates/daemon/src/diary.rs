//! The diary: what happened to daemons and schedules lately, for `outlast report`.
//!
//! It is one small file that each daemon continues. The journal knows runs only; that a daemon died, that the machine was
//! rebooted or that a schedule's time passed without a daemon is written here. A diary that cannot be written is logged and
//! stops nothing. One that cannot be read is set aside, and a new one begins with what is not known: nothing is claimed of
//! the time before, for as long as a report reaches back to it.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outlast_engine::Time;
use outlast_home::holder::{self, Holder};
use outlast_home::layout::Layout;
use outlast_wire::api::{DaemonStart, MissedTimes, NightView, Predecessor};
use serde::{Deserialize, Serialize};

use crate::instance;
use crate::service::Before;
use crate::starts::Ended;
use crate::sync::lock;
use crate::view::rfc3339;
use crate::world::World;
use crate::world::files::{self, Lasting};

/// So many entries are kept, the latest.
const MOST: usize = 256;
/// Nothing that we wrote is as long as this.
const MOST_BYTES: usize = 256 << 10;

pub(crate) struct Diary {
    path: PathBuf,
    pages: Mutex<Pages>,
}

#[derive(Debug, Default)]
struct Pages {
    entries: Vec<Entry>,
    keeping: Keeping,
}

/// What becomes of entries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Keeping {
    #[default]
    Written,
    /// A file that cannot be read could not be set aside either, and is not overwritten.
    InMemory,
}

/// Times are the daemon's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    Started {
        at_ms: u64,
        before: Predecessor,
        rebooted: bool,
        last_sign_ms: Option<u64>,
        /// Of a daemon that died: when an order came that it stay stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ordered_ms: Option<u64>,
    },
    /// The diary of before was lost: what happened before this is not known.
    Lost {
        at_ms: u64,
        why: String,
    },
    Missed {
        at_ms: u64,
        trigger: String,
        due_ms: u64,
        skipped: u64,
        late: u64,
    },
    /// A later version's.
    #[serde(other)]
    Other,
}

/// What the daemon before this one has left, as this one finds it before it writes anything.
pub(crate) struct Traces {
    last: Option<Holder>,
    ended: Ended,
    /// How long ago the last sign of life was.
    silent_ms: Option<u64>,
    /// How long ago a daemon that had died was ordered to stay stopped.
    ordered_ms: Option<u64>,
}

impl Traces {
    pub(crate) fn of(layout: &Layout) -> Self {
        let age = |path: PathBuf| std::fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
        let ms = |age: std::time::Duration| u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        let marker = layout.stopped_marker();
        // An order that came after the death is no sign of life.
        let (ended, sign, order) = match instance::was_dead_before_the_order(layout) {
            true => (Ended::Unasked, None, Some(marker)),
            false => (instance::last_end(layout), Some(marker), None),
        };
        let signs = layout.signs_of_life().into_iter().chain(sign);
        let silent_ms = signs.filter_map(age).min().map(ms);
        let ordered_ms = order.and_then(age).map(ms);
        Self { last: holder::last(&layout.daemon_lock()), ended, silent_ms, ordered_ms }
    }

    /// True if a daemon served this home before.
    pub(crate) fn has_predecessor(&self) -> bool {
        self.last.is_some()
    }

    pub(crate) fn started(&self, before: Before, world: &World) -> Entry {
        let now = world.now();
        let boot = self.last.as_ref().and_then(|last| last.boot.as_deref());
        let predecessor = match (&self.last, before, self.ended) {
            (None, _, _) => Predecessor::None,
            (Some(_), Before::HandedOver, _) => Predecessor::Replaced,
            (Some(_), Before::Unknown, Ended::Asked) => Predecessor::Stopped,
            (Some(_), Before::Unknown, Ended::Unasked) => Predecessor::Died,
        };
        let ago = |ms: u64| now.0.saturating_sub(ms);
        let last_sign_ms = self.silent_ms.map(ago);
        Entry::Started {
            at_ms: now.0,
            before: predecessor,
            rebooted: boot.is_some_and(|boot| boot != world.boot.0),
            last_sign_ms: last_sign_ms.filter(|_| predecessor != Predecessor::None),
            ordered_ms: self.ordered_ms.map(ago).filter(|_| predecessor == Predecessor::Died),
        }
    }
}

impl Diary {
    /// Reads what earlier daemons wrote. Where there were some and their diary is not there, nothing is known of them.
    pub(crate) fn read(path: PathBuf, had_daemons: bool, now: Time) -> Self {
        let read = files::read_regular(&path, MOST_BYTES);
        let is_missing =
            read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound);
        let entries = read
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
        let pages = match entries {
            Ok(entries) => Pages { entries, keeping: Keeping::Written },
            Err(_) if is_missing && !had_daemons => Pages::default(),
            Err(_) if is_missing => Pages::lost("there was no diary".to_owned(), now),
            Err(why) => Pages::unreadable(&path, &why, now),
        };
        Self { path, pages: Mutex::new(pages) }
    }

    /// Blocks for a short write. The same entry twice is one: what a daemon wrote and could not act on, it does again.
    pub(crate) fn note(&self, entry: Entry) {
        let mut pages = lock(&self.pages);
        if pages.entries.iter().any(|known| known.is_again(&entry)) {
            return;
        }
        pages.entries.push(entry);
        let surplus = pages.entries.len().saturating_sub(MOST);
        pages.entries.drain(..surplus);
        if pages.keeping == Keeping::InMemory {
            return;
        }
        let json = serde_json::to_vec(&pages.entries).expect("plain data");
        if let Err(error) = files::write_whole(&self.path, &json, Lasting::Power) {
            tracing::error!(%error, path = %self.path.display(), "cannot write the diary");
        }
    }

    pub(crate) fn since(&self, since: Time, now: Time) -> NightView {
        let pages = lock(&self.pages);
        let (begins, why) = pages.begins();
        let is_short = begins.is_some_and(|begins| begins > since);
        let mut view = NightView {
            now: rfc3339(now),
            since: rfc3339(since),
            known_from: pages.entries.iter().filter_map(Entry::at).min().map(rfc3339),
            unknown_before: begins.filter(|_| is_short).map(rfc3339),
            problem: why.filter(|_| is_short),
            ..NightView::default()
        };
        for entry in pages.entries.iter().filter(|entry| entry.at() >= Some(since)) {
            match entry {
                Entry::Started { at_ms, before, rebooted, last_sign_ms, ordered_ms } => {
                    view.starts.push(DaemonStart {
                        at: rfc3339(Time(*at_ms)),
                        before: *before,
                        rebooted: *rebooted,
                        last_sign_at: last_sign_ms.map(|ms| rfc3339(Time(ms))),
                        stay_stopped_at: ordered_ms.map(|ms| rfc3339(Time(ms))),
                    });
                }
                Entry::Missed { at_ms, trigger, due_ms, skipped, late } => {
                    view.missed.push(MissedTimes {
                        trigger: trigger.clone(),
                        at: rfc3339(Time(*at_ms)),
                        due_at: rfc3339(Time(*due_ms)),
                        skipped: *skipped,
                        late: *late,
                    });
                }
                Entry::Lost { .. } | Entry::Other => {}
            }
        }
        view
    }
}

impl Pages {
    fn lost(why: String, now: Time) -> Self {
        Self { entries: vec![Entry::Lost { at_ms: now.0, why }], keeping: Keeping::Written }
    }

    /// The file is kept under another name: it may be mended by hand, and is not ours to delete.
    fn unreadable(path: &Path, why: &str, now: Time) -> Self {
        tracing::error!(%why, path = %path.display(), "cannot read the diary of earlier daemons");
        match files::set_aside(path) {
            Ok(aside) => {
                let name = aside.file_name().unwrap_or_default().to_string_lossy();
                Self::lost(format!("the diary could not be read and is kept as {name}: {why}"), now)
            }
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "cannot set the diary aside");
                let why = format!("the diary cannot be read and is not continued: {why}");
                Self { keeping: Keeping::InMemory, ..Self::lost(why, now) }
            }
        }
    }

    /// Where what is known begins, and why not before; no time if it begins with the first daemon of the home.
    fn begins(&self) -> (Option<Time>, Option<String>) {
        let lost = self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Lost { at_ms, why } => Some((Some(Time(*at_ms)), Some(why.clone()))),
            Entry::Started { .. } | Entry::Missed { .. } | Entry::Other => None,
        });
        let is_whole =
            matches!(self.entries.first(), Some(Entry::Started { before: Predecessor::None, .. }));
        let oldest = self.entries.iter().filter_map(Entry::at).min().filter(|_| !is_whole);
        lost.unwrap_or((oldest, None))
    }
}

impl Entry {
    fn at(&self) -> Option<Time> {
        match self {
            Self::Started { at_ms, .. } | Self::Missed { at_ms, .. } | Self::Lost { at_ms, .. } => {
                Some(Time(*at_ms))
            }
            Self::Other => None,
        }
    }

    /// True if both say the same of one schedule's time.
    fn is_again(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Missed { trigger, due_ms, .. },
                Self::Missed { trigger: another, due_ms: also, .. },
            ) => trigger == another && due_ms == also,
            (Self::Started { .. } | Self::Missed { .. } | Self::Lost { .. } | Self::Other, _) => {
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missed(at_ms: u64, due_ms: u64) -> Entry {
        Entry::Missed { at_ms, trigger: "nightly".to_owned(), due_ms, skipped: 1, late: 0 }
    }

    #[test]
    fn a_diary_goes_on_from_daemon_to_daemon_and_stays_small() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("diary.json");
        let died = Entry::Started {
            at_ms: 500,
            before: Predecessor::Died,
            rebooted: true,
            last_sign_ms: Some(400),
            ordered_ms: Some(450),
        };
        read(&path, 0).note(died);
        let diary = read(&path, 500);
        diary.note(missed(600, 550));
        diary.note(missed(700, 550));
        let view = diary.since(Time(0), Time(1000));
        assert_eq!((view.starts.len(), view.missed.len()), (1, 1), "{view:?}");
        assert_eq!(view.starts[0].before, Predecessor::Died);
        assert!(view.starts[0].rebooted);
        assert_eq!(view.starts[0].last_sign_at.as_deref(), Some("1970-01-01T00:00:00.400Z"));
        assert_eq!(view.starts[0].stay_stopped_at.as_deref(), Some("1970-01-01T00:00:00.450Z"));
        assert_eq!(view.unknown_before, view.known_from, "it does not begin with the first daemon");
        assert_eq!(diary.since(Time(550), Time(1000)).starts, []);
        assert_eq!(view.known_from.as_deref(), Some("1970-01-01T00:00:00.500Z"));
        (0..1000).for_each(|at| diary.note(missed(1000 + at, at)));
        assert_eq!(read(&path, 9000).since(Time(0), Time(9000)).missed.len(), MOST);
    }

    fn read(path: &Path, now: u64) -> Diary {
        Diary::read(path.to_owned(), false, Time(now))
    }

    fn first(at_ms: u64) -> Entry {
        let (before, rebooted) = (Predecessor::None, false);
        Entry::Started { at_ms, before, rebooted, last_sign_ms: None, ordered_ms: None }
    }

    #[test]
    fn a_diary_that_cannot_be_read_is_set_aside_and_its_time_stays_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("diary.json");
        #[expect(clippy::disallowed_methods, reason = "a test damages its own file")]
        std::fs::write(&path, b"[{").unwrap();
        read(&path, 700).note(missed(800, 790));
        let names = crate::world::files::names(dir.path()).unwrap();
        assert_eq!(names.len(), 2, "the unreadable file is kept: {names:?}");
        // The daemon after the next one still knows that.
        let view = read(&path, 900).since(Time(0), Time(1000));
        assert_eq!(view.unknown_before.as_deref(), Some("1970-01-01T00:00:00.700Z"));
        assert!(view.problem.is_some_and(|why| why.contains("kept as diary.json")));
        let later = read(&path, 900).since(Time(700), Time(1000));
        assert_eq!((later.unknown_before, later.problem), (None, None), "it is known from then on");
    }

    #[test]
    fn a_diary_that_was_deleted_is_not_a_night_without_events() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("diary.json");
        let deleted = Diary::read(path.clone(), true, Time(700)).since(Time(0), Time(1000));
        assert!(deleted.unknown_before.is_some() && deleted.problem.is_some(), "{deleted:?}");
        let new = read(&path, 700);
        new.note(first(700));
        assert_eq!(
            new.since(Time(0), Time(1000)).unknown_before,
            None,
            "there was no daemon before"
        );
    }

    #[test]
    fn an_entry_of_a_later_version_is_passed_over() {
        let json = r#"[{"kind":"dreamt","at_ms":7},{"kind":"started","at_ms":9,"before":"eloped","rebooted":false,"last_sign_ms":null}]"#;
        let entries: Vec<Entry> = serde_json::from_str(json).unwrap();
        assert_eq!(entries[0], Entry::Other);
        assert!(matches!(entries[1], Entry::Started { before: Predecessor::Unknown, .. }));
    }
}
