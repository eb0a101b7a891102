//! What the sink workers of all sinks share: who of them is at work, and how many may tell at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use outlast_store::Change;
use tokio::sync::{Notify, Semaphore};

use super::Inbox;
use crate::ground::Ground;
use crate::sync::lock;

/// Sinks that are told at once.
const AT_ONCE: usize = 32;

/// Notices that are settled are forgotten after this, and all but so many of them at any time.
const KEEP_MS: u64 = 30 * 24 * 60 * 60 * 1000;
const KEEP: u64 = 10_000;

pub(super) struct SinkWorkers {
    pub(super) ground: Arc<Ground>,
    pub(super) inbox: Weak<dyn Inbox>,
    at_work: Mutex<HashMap<String, AtWork>>,
    pub(super) room: Semaphore,
}

/// A sink worker that is at work.
struct AtWork {
    bell: Arc<Notify>,
    /// Something came since the sink worker looked last.
    has_news: bool,
}

/// What a sink worker that has nothing more to tell is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    Left,
    ThereIsNews,
}

impl SinkWorkers {
    pub(super) fn new(ground: Arc<Ground>, inbox: Weak<dyn Inbox>) -> Self {
        Self { ground, inbox, at_work: Mutex::default(), room: Semaphore::new(AT_ONCE) }
    }

    /// Rings for the sink worker of a sink; the bell of a new one if there was none at work.
    pub(super) fn ring(&self, sink: &str) -> Option<Arc<Notify>> {
        let mut at_work = self.at_work();
        if let Some(worker) = at_work.get_mut(sink) {
            worker.has_news = true;
            worker.bell.notify_one();
            return None;
        }
        let bell = Arc::new(Notify::new());
        at_work.insert(sink.to_owned(), AtWork { bell: bell.clone(), has_news: false });
        Some(bell)
    }

    /// Forgets what was told long ago.
    pub(super) fn prune(&self) {
        let before = outlast_engine::Time(self.ground.world.now().0.saturating_sub(KEEP_MS));
        let done = Box::new(|pruned: Result<(), outlast_store::Error>| {
            if let Err(error) = pruned {
                tracing::warn!(%error, "cannot forget old notices");
            }
        });
        let change = Change::Prune { before, keep: KEEP };
        self.ground.store.change(self.ground.epoch, change, done);
    }

    /// A sink worker has nothing more to tell, unless there was news since it looked.
    pub(super) fn leave(&self, sink: &str) -> Leave {
        let mut at_work = self.at_work();
        match at_work.get_mut(sink) {
            Some(worker) if worker.has_news => {
                worker.has_news = false;
                Leave::ThereIsNews
            }
            _ => {
                at_work.remove(sink);
                Leave::Left
            }
        }
    }

    /// A sink worker is gone, however that came.
    pub(super) fn forget(&self, sink: &str, bell: &Arc<Notify>) {
        let mut at_work = self.at_work();
        if at_work.get(sink).is_some_and(|worker| Arc::ptr_eq(&worker.bell, bell)) {
            at_work.remove(sink);
        }
    }

    /// A sink worker looks at what waits from here on.
    pub(super) fn look(&self, sink: &str) {
        if let Some(worker) = self.at_work().get_mut(sink) {
            worker.has_news = false;
        }
    }

    fn at_work(&self) -> MutexGuard<'_, HashMap<String, AtWork>> {
        lock(&self.at_work)
    }
}
