//! The heartbeat: a file that a child touches when it is alive and has nothing to say.
//!
//! Looked at only when the child would otherwise be called silent, so that it costs no wakeup. A beat is a
//! modification time that has changed since the last look. One in the future counts as now, and once: no
//! date keeps a silent child alive.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use crate::clock;

#[derive(Debug)]
pub(crate) struct Heartbeat {
    path: PathBuf,
    last: Look,
}

/// What was seen, and when by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    now: Instant,
    wall: SystemTime,
    /// As last known: a file that is gone takes no beat back.
    modified: Option<SystemTime>,
}

impl Heartbeat {
    /// Whatever the file says by now is not a beat.
    pub(crate) fn watch(path: PathBuf) -> Self {
        let last = Look { now: clock::now(), wall: clock::wall(), modified: modified(&path) };
        Self { path, last }
    }

    /// Looks, and says when the last beat was, if there was one since the last look.
    pub(crate) fn beat(&mut self, now: Instant) -> Option<Instant> {
        let modified = modified(&self.path).or(self.last.modified);
        let look = Look { now, wall: clock::wall(), modified };
        let before = std::mem::replace(&mut self.last, look);
        look.beat_since(&before)
    }
}

impl Look {
    fn beat_since(&self, before: &Self) -> Option<Instant> {
        let modified = self.modified.filter(|_| self.modified != before.modified)?;
        let age = since(self.wall, modified);
        // The wall clock runs ahead while the machine is suspended, or is set. That is no age of a beat.
        let awake = self.now.saturating_duration_since(before.now);
        let ahead = since(self.wall, before.wall).saturating_sub(awake);
        self.now.checked_sub(age.saturating_sub(ahead))
    }
}

/// Nothing, if `earlier` is not.
fn since(later: SystemTime, earlier: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or(Duration::ZERO)
}

/// Of a file that is one: where a link leads is not the child's to say.
fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?.modified().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A look at a file that was touched `modified` seconds after the beginning, and another look that is
    /// `awake` seconds later by one clock and `wall` by the other: how old the beat is.
    fn age(modified: u64, awake: u64, wall: u64) -> Option<Duration> {
        let (now, begun) = (clock::now() + secs(10_000), clock::wall());
        let before = Look { now, wall: begun, modified: Some(begun) };
        let look = Look {
            now: now + secs(awake),
            wall: begun + secs(wall),
            modified: Some(begun + secs(modified)),
        };
        look.beat_since(&before).map(|beat| look.now - beat)
    }

    #[test]
    fn a_beat_is_as_old_as_the_file_says() {
        assert_eq!(age(40, 60, 60), Some(secs(20)));
    }

    #[test]
    fn an_unchanged_file_is_no_beat() {
        assert_eq!(age(0, 60, 60), None);
    }

    #[test]
    fn a_beat_in_the_future_is_one_of_now() {
        assert_eq!(age(1_000_000, 60, 60), Some(Duration::ZERO));
    }

    #[test]
    fn a_machine_that_slept_does_not_age_a_beat() {
        assert_eq!(age(40, 60, 8 * 3600), Some(secs(20)), "before its sleep");
        assert_eq!(age(8 * 3600 - 5, 60, 8 * 3600), Some(Duration::ZERO), "after it");
    }

    #[test]
    fn a_file_that_is_missing_or_a_link_or_not_touched_again_says_nothing() {
        let temp = tempfile::tempdir().expect("a directory");
        let (file, link) = (temp.path().join("file"), temp.path().join("link"));
        std::os::unix::fs::symlink(&file, &link).expect("links");
        let mut on_file = Heartbeat::watch(file.clone());
        let mut on_link = Heartbeat::watch(link);
        assert_eq!(on_file.beat(clock::now()), None);
        std::fs::File::create(&file).expect("creates");
        assert!(on_file.beat(clock::now()).is_some());
        assert_eq!(on_file.beat(clock::now()), None);
        assert_eq!(on_link.beat(clock::now()), None);
        std::fs::remove_file(&file).expect("removes");
        assert_eq!(on_file.beat(clock::now()), None);
    }
}
