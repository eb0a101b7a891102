//! Since when there has been no daemon, from the files that the last daemon left on disk.
//!
//! Asks no process: there is none to ask.

use std::path::PathBuf;
use std::time::SystemTime;

use jiff::Timestamp;
use outlast_home::holder;
use outlast_home::layout::{FOR_ALL_LATER, Layout};
use outlast_home::regular;

/// A daemon that is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// When the daemon was told to go; or else the daemon's last sign of life, after which it may have lived on.
    pub since: Timestamp,
    pub was_asked: bool,
}

/// `None` if there has never been a daemon here.
pub fn absence(layout: &Layout) -> Option<Absence> {
    holder::last(&layout.daemon_lock())?;
    let marker = layout.stopped_marker();
    // An order to a daemon that was dead by then did not end it.
    let came_later = regular::read(&marker).is_ok_and(|it| it == FOR_ALL_LATER.as_bytes());
    if let Some(since) = modified(marker).filter(|_| !came_later) {
        return Some(Absence { since, was_asked: true });
    }
    let since = layout.signs_of_life().into_iter().filter_map(modified).max()?;
    Some(Absence { since, was_asked: false })
}

fn modified(path: PathBuf) -> Option<Timestamp> {
    let at: SystemTime = std::fs::metadata(path).ok()?.modified().ok()?;
    let at = Timestamp::try_from(at).ok()?;
    // Whole seconds: files say no more than about when.
    Timestamp::from_second(at.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::time::Duration;

    use super::*;

    fn put(path: PathBuf, text: &str, second: u64) {
        let mut file = File::create(path).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).expect("a time");
    }

    #[test]
    fn a_daemon_is_gone_since_its_last_sign_of_life_or_since_it_was_told_to_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(dir.path());
        std::fs::create_dir_all(&layout.state).expect("a directory");
        assert_eq!(absence(&layout), None);
        put(layout.daemon_lock(), "", 90);
        assert_eq!(absence(&layout), None);
        let said =
            r#"{"pid":7,"version":"0.1.0","epoch":null,"started_at":"2026-11-16T00:00:00Z"}"#;
        put(layout.daemon_lock(), said, 100);
        put(layout.daemon_log(), "", 500);
        put(layout.database(), "", 300);
        let at = |second| Timestamp::from_second(second).expect("a time");
        assert_eq!(absence(&layout), Some(Absence { since: at(500), was_asked: false }));
        put(layout.stopped_marker(), "", 400);
        assert_eq!(absence(&layout), Some(Absence { since: at(400), was_asked: true }));
        put(layout.stopped_marker(), FOR_ALL_LATER, 900);
        assert_eq!(absence(&layout), Some(Absence { since: at(500), was_asked: false }));
        assert_eq!(holder::last(&layout.daemon_lock()).map(|it| it.pid), Some(7));
    }
}
