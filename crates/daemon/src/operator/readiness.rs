//! Whether this daemon can take on work, and if not, why not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_home::layout::Layout;
use outlast_store::Error;
use outlast_wire::api::Trouble;
use outlast_wire::codes::Code;
use outlast_wire::words::TroubleCode;

use crate::ground::Ground;
use crate::world::files;

/// With less than this a new run's files and events have no room.
const LEAST_BYTES: u64 = 1 << 20;

/// What is known of it between two questions.
#[derive(Default)]
pub(crate) struct Readiness {
    is_loaded: AtomicBool,
    /// The journal did not take the last append.
    journal: Mutex<Option<Trouble>>,
}

/// One thing that is in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub(crate) code: String,
    pub(crate) message: String,
}

impl Obstacle {
    fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

impl Readiness {
    /// Every open run has its conductor.
    pub(crate) fn loaded(&self) {
        self.is_loaded.store(true, Ordering::Relaxed);
    }

    /// Notes what became of an append, of whichever run.
    pub(crate) fn note_append(
        &self,
        result: &Result<(), Error>,
        trouble: impl FnOnce(TroubleCode, String) -> Trouble,
    ) {
        match result {
            Ok(()) => *self.journal() = None,
            Err(error @ Error::Full(_)) => {
                *self.journal() = Some(trouble(Code::DiskFull.into(), error.to_string()));
            }
            Err(error @ Error::Locked(_)) => {
                *self.journal() = Some(trouble(Code::JournalLocked.into(), error.to_string()));
            }
            Err(error @ (Error::ReadOnly(_) | Error::Io(_) | Error::Corrupt { .. })) => {
                *self.journal() = Some(trouble(TroubleCode::JournalUnwritable, error.to_string()));
            }
            Err(error @ (Error::Unsaved { .. } | Error::Gone { .. })) => {
                *self.journal() = Some(trouble(Code::JournalGone.into(), error.to_string()));
            }
            // Refused for what was asked, or because another daemon has the journal.
            Err(_) => {}
        }
    }

    fn journal(&self) -> MutexGuard<'_, Option<Trouble>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What keeps this daemon from new work; nothing if it is ready. `suspended` says of a run that waits for the
/// journal. May wait for the disk.
pub(crate) fn obstacles(
    ground: &Ground,
    readiness: &Readiness,
    suspended: impl Fn() -> Option<Trouble>,
) -> Vec<Obstacle> {
    let mut found = Vec::new();
    if !readiness.is_loaded.load(Ordering::Relaxed) {
        found.push(Obstacle::new("loading", "the open runs are being taken over"));
    }
    if ground.leaving().borrow().is_some() {
        found.push(Obstacle::new("leaving", "this daemon is about to go"));
    }
    let journal = readiness.journal().clone();
    if let Some(trouble) = journal.or_else(&suspended) {
        // Without a run that tries again by itself, nothing else would find out that there is room again.
        match probe(&ground.layout) {
            Ok(()) if suspended().is_none() => *readiness.journal() = None,
            _ => found.push(Obstacle::new(trouble.code.as_str(), trouble.message)),
        }
    } else if let Some(free) = free_bytes(&ground.layout).filter(|free| *free < LEAST_BYTES) {
        let message = format!("{} KiB free for the state directory", free >> 10);
        found.push(Obstacle::new(Code::DiskFull.word(), message));
    }
    found
}

/// What the file system of the state directory has left; `None` if it does not say.
fn free_bytes(layout: &Layout) -> Option<u64> {
    let stat = rustix::fs::statvfs(&layout.state).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Whether the state directory takes as much as a small append.
fn probe(layout: &Layout) -> std::io::Result<()> {
    let path = layout.state.join("ready.probe");
    let written = files::write(&path, &[0; 16 << 10]);
    files::remove(&path)?;
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_that_is_refused_for_itself_says_nothing_about_the_journal() {
        let readiness = Readiness::default();
        let trouble = |code: TroubleCode, message: String| Trouble {
            code: code.into(),
            message,
            since: String::new(),
        };
        readiness.note_append(&Err(Error::Closed), trouble);
        assert_eq!(readiness.journal().as_ref().map(|it| it.code.clone()), None);
        readiness.note_append(&Err(Error::Full("no room".into())), trouble);
        assert_eq!(
            readiness.journal().as_ref().map(|it| it.code.clone()),
            Some(TroubleCode::Of(Code::DiskFull).into())
        );
        readiness.note_append(&Err(Error::Closed), trouble);
        assert!(readiness.journal().is_some());
        readiness.note_append(&Ok(()), trouble);
        assert!(readiness.journal().is_none());
    }
}
