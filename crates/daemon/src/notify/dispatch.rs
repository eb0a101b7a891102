//! A teller for each sink while something waits for it, and none otherwise: an idle daemon has no task here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_store::Change;
use tokio::sync::{Notify, Semaphore};

use super::teller::Teller;
use crate::supervisor::Supervisor;

/// Sinks that are told something at the same time.
const AT_ONCE: usize = 32;

/// What was settled is remembered so long, and so much of it.
const KEEP_MS: u64 = 30 * 24 * 60 * 60 * 1000;
const KEEP: u64 = 10_000;

pub(crate) struct Dispatch {
    tellers: Mutex<HashMap<String, Place>>,
    pub(super) room: Semaphore,
}

/// A teller's, in the table.
struct Place {
    bell: Arc<Notify>,
    /// Something has come since the teller last looked.
    has_news: bool,
}

impl Default for Dispatch {
    fn default() -> Self {
        Self { tellers: Mutex::default(), room: Semaphore::new(AT_ONCE) }
    }
}

/// Whether a teller goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    Left,
    ThereIsNews,
}

impl Dispatch {
    /// Has these sinks told what waits for them.
    pub(crate) fn wake<'s>(
        &self,
        supervisor: &Arc<Supervisor>,
        sinks: impl IntoIterator<Item = &'s str>,
    ) {
        let mut tellers = self.tellers();
        for sink in sinks {
            if let Some(place) = tellers.get_mut(sink) {
                place.has_news = true;
                place.bell.notify_one();
                continue;
            }
            let bell = Arc::new(Notify::new());
            tellers.insert(sink.to_owned(), Place { bell: bell.clone(), has_news: false });
            let teller = Teller::new(supervisor.clone(), sink.to_owned(), bell);
            #[expect(
                clippy::disallowed_methods,
                reason = "a teller is owned by the table of tellers and leaves it when it ends"
            )]
            let _teller = tokio::spawn(teller.tell());
        }
    }

    /// Takes up whatever an earlier daemon, or a lost answer of the journal, has left.
    pub(crate) fn wake_waiting(&self, supervisor: &Arc<Supervisor>) {
        match supervisor.store.waiting_sinks() {
            Ok(sinks) => self.wake(supervisor, sinks.iter().map(String::as_str)),
            Err(error) => tracing::error!(%error, "cannot see what is still to be told"),
        }
    }

    /// Forgets what was settled long ago.
    pub(crate) fn prune(&self, supervisor: &Supervisor) {
        let before = outlast_engine::Time(supervisor.world.now().0.saturating_sub(KEEP_MS));
        let done = Box::new(|pruned: Result<(), outlast_store::Error>| {
            if let Err(error) = pruned {
                tracing::warn!(%error, "cannot forget old notices");
            }
        });
        supervisor.store.change(supervisor.epoch, Change::Prune { before, keep: KEEP }, done);
    }

    /// A teller that has seen nothing to do leaves, unless something has come meanwhile.
    pub(super) fn leave(&self, sink: &str) -> Leave {
        let mut tellers = self.tellers();
        match tellers.get_mut(sink) {
            Some(place) if place.has_news => {
                place.has_news = false;
                Leave::ThereIsNews
            }
            _ => {
                tellers.remove(sink);
                Leave::Left
            }
        }
    }

    /// A teller that is gone, however that came, has no place.
    pub(super) fn forget(&self, sink: &str, bell: &Arc<Notify>) {
        let mut tellers = self.tellers();
        if tellers.get(sink).is_some_and(|place| Arc::ptr_eq(&place.bell, bell)) {
            tellers.remove(sink);
        }
    }

    /// Whatever has come so far, the teller is about to see.
    pub(super) fn look(&self, sink: &str) {
        if let Some(place) = self.tellers().get_mut(sink) {
            place.has_news = false;
        }
    }

    fn tellers(&self) -> MutexGuard<'_, HashMap<String, Place>> {
        // Nothing panics while it holds this.
        self.tellers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
