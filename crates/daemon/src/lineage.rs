//! Which journal this home serves, and the highest epoch so far.
//!
//! Both are also in `journal.json`, outside the database. So a daemon recognises a journal that is new, another one,
//! or older than the one served last, and no shim meets a daemon with an epoch below one that it has seen. Decides
//! nothing about runs: `supervisor::strays` handles what the journal has forgotten.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_engine::{RunId, Time};
use outlast_home::layout::Layout;
use outlast_store::{Error, Journal};
use outlast_wire::api::JournalView;
use serde::{Deserialize, Serialize};

use crate::sync::lock;
use crate::view;
use crate::world::files::{self, Lasting};

/// No `journal.json` of ours is as long as this.
const MOST_BYTES: usize = 64 << 10;

/// The names under which the journal itself remembers.
const JOURNAL_ID: &str = "journal_id";
const JOURNAL_BREAK: &str = "journal_break";
const SHIM_EPOCH: &str = "shim_epoch";

/// `journal.json`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    journal: String,
    /// The highest epoch that a daemon may have used.
    epoch: u64,
}

/// The journal is not the one that was served here last, or not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Break {
    pub(crate) at_ms: u64,
    pub(crate) what: String,
}

/// What is known of the journal that this daemon serves.
#[derive(Debug)]
pub(crate) struct Lineage {
    journal: String,
    /// What shims are greeted with: our epoch, or higher if a shim had met a higher one.
    shim_epoch: AtomicU64,
    broken: Mutex<Option<Break>>,
}

impl Lineage {
    /// Takes the next epoch above every one that was ever used here, and says which journal it is of. Both are
    /// durable outside the journal before this returns.
    pub(crate) fn take(
        layout: &Layout,
        store: &dyn Journal,
        new_id: impl FnOnce() -> io::Result<String>,
        now: Time,
    ) -> Result<(u64, Self), Taken> {
        let kept = read(&layout.journal());
        if kept.is_err() {
            // What it said is lost; what the journal and the run directories prove is not. A person is told.
            files::set_aside(&layout.journal()).map_err(Taken::File)?;
        }
        let before = store.epoch()?;
        let known = store.note(JOURNAL_ID)?;
        let noticed = what_changed(&kept, known.as_deref(), before);
        let floor = kept.as_ref().map_or(0, |kept| kept.as_ref().map_or(0, |kept| kept.epoch));
        let epoch = store.take_epoch_above(floor)?;
        let journal = match known {
            Some(journal) => journal,
            None => {
                let journal = new_id().map_err(Taken::File)?;
                store.set_note(JOURNAL_ID, Some(&journal), epoch)?;
                journal
            }
        };
        if let Some(what) = noticed {
            tracing::error!(%what, "the journal is not as it was left");
            let broken = Break { at_ms: now.0, what };
            let text = serde_json::to_string(&broken).expect("a break is plain data");
            store.set_note(JOURNAL_BREAK, Some(&text), epoch)?;
        }
        let broken = store.note(JOURNAL_BREAK)?.and_then(|text| serde_json::from_str(&text).ok());
        write(&layout.journal(), &Kept { journal: journal.clone(), epoch }).map_err(Taken::File)?;
        let (shim_epoch, broken) = (AtomicU64::new(epoch), Mutex::new(broken));
        Ok((epoch, Self { journal, shim_epoch, broken }))
    }

    /// For a test's daemon, which has nothing on disk.
    #[cfg(test)]
    pub(crate) fn of_epoch(epoch: u64) -> Self {
        let shim_epoch = AtomicU64::new(epoch);
        Self { journal: "test".to_owned(), shim_epoch, broken: Mutex::default() }
    }

    /// The epoch that shims are greeted with.
    pub(crate) fn shim_epoch(&self) -> u64 {
        self.shim_epoch.load(Ordering::Relaxed)
    }

    /// Greets shims with a higher epoch from here on. Each time the step is twice as wide, since no shim says how
    /// high it has been. The store refuses it if another daemon has taken the journal since `epoch`.
    pub(crate) fn raise(
        &self,
        layout: &Layout,
        store: &dyn Journal,
        epoch: u64,
    ) -> Result<(), Unraised> {
        let before = self.shim_epoch();
        let ahead = before.saturating_sub(epoch);
        let raised = before.saturating_add(ahead.max(1));
        let noted = store.set_note(SHIM_EPOCH, Some(&raised.to_string()), epoch);
        noted.map_err(Unraised::Store)?;
        let kept = Kept { journal: self.journal.clone(), epoch: raised };
        write(&layout.journal(), &kept).map_err(Unraised::File)?;
        tracing::warn!(before, raised, "a shim has met a higher epoch than ours; ours is raised");
        self.shim_epoch.fetch_max(raised, Ordering::Relaxed);
        Ok(())
    }

    /// A person has seen to what the journal had forgotten.
    pub(crate) fn forget_break(&self, store: &dyn Journal, epoch: u64) -> Result<(), Error> {
        if self.broken().is_some() {
            store.set_note(JOURNAL_BREAK, None, epoch)?;
            lock(&self.broken).take();
        }
        Ok(())
    }

    /// As `daemon status` shows it.
    pub(crate) fn view(&self, not_in_journal: &[RunId]) -> JournalView {
        let broken = self.broken();
        JournalView {
            id: self.journal.clone(),
            problem: broken.as_ref().map(|broken| broken.what.clone()),
            since: broken.map(|broken| view::rfc3339(Time(broken.at_ms))),
            not_in_journal: not_in_journal.iter().map(|id| id.0.clone()).collect(),
        }
    }

    pub(crate) fn broken(&self) -> Option<Break> {
        lock(&self.broken).clone()
    }
}

/// Why shims are greeted with no higher epoch.
#[derive(Debug)]
pub(crate) enum Unraised {
    Store(Error),
    File(io::Error),
}

/// Why no epoch could be taken.
#[derive(Debug)]
pub(crate) enum Taken {
    Store(Error),
    File(io::Error),
}

impl From<Error> for Taken {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// What differs from what was left here, in words; `None` if nothing does. `before` is the journal's own epoch.
fn what_changed(
    kept: &Result<Option<Kept>, String>,
    known: Option<&str>,
    before: u64,
) -> Option<String> {
    let kept = match kept {
        Ok(Some(kept)) => kept,
        // The first daemon here, or the first of a version that keeps this.
        Ok(None) => return None,
        Err(why) => {
            return Some(format!("which journal was served here last cannot be read: {why}"));
        }
    };
    match known {
        Some(known) if known == kept.journal && before >= kept.epoch => None,
        Some(known) if known == kept.journal => Some(format!(
            "this journal is older than the runs on disk: it is at epoch {before}, and {} was served",
            kept.epoch
        )),
        None if before == 0 => {
            Some("this journal is new, and another one was served here before".to_owned())
        }
        Some(_) | None => {
            Some("this journal is another one than was served here before".to_owned())
        }
    }
}

fn read(path: &Path) -> Result<Option<Kept>, String> {
    match files::read_regular(path, MOST_BYTES) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| format!("{}: {error}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn write(path: &Path, kept: &Kept) -> io::Result<()> {
    let json = serde_json::to_vec(kept).map_err(io::Error::other)?;
    files::write_whole(path, &json, Lasting::Power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(journal: &str, epoch: u64) -> Result<Option<Kept>, String> {
        Ok(Some(Kept { journal: journal.to_owned(), epoch }))
    }

    #[test]
    fn only_the_same_journal_that_has_not_gone_back_passes_in_silence() {
        assert_eq!(what_changed(&Ok(None), None, 0), None);
        assert_eq!(what_changed(&Ok(None), None, 7), None, "a journal of an earlier version");
        assert_eq!(what_changed(&kept("a", 5), Some("a"), 5), None);
        // A daemon that died before it could write the file.
        assert_eq!(what_changed(&kept("a", 5), Some("a"), 6), None);
        let older = what_changed(&kept("a", 5), Some("a"), 1).expect("it is noticed");
        assert!(older.contains("older"), "{older}");
        let new = what_changed(&kept("a", 5), None, 0).expect("it is noticed");
        assert!(new.contains("new"), "{new}");
        assert!(what_changed(&kept("a", 5), Some("b"), 9).is_some());
        assert!(
            what_changed(&kept("a", 5), None, 3).is_some(),
            "a backup from before ids were kept"
        );
        assert!(what_changed(&Err("torn".to_owned()), Some("a"), 5).is_some());
    }
}
