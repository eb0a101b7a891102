//! What was acknowledged, in order, and what may have become of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};

use anyhow::Result;

use super::tasks::Task;
use crate::private::Private;

#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) id: String,
    pub(super) task: Task,
}

/// An answer or a message that was acknowledged.
#[derive(Debug, Clone)]
pub(super) struct Acknowledged {
    pub(super) run: String,
    pub(super) text: String,
    pub(super) at: u64,
}

/// An old journal was put back: what was acknowledged in between may be gone from it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Restore {
    pub(super) copied_at: u64,
    pub(super) restored_at: u64,
}

impl Restore {
    pub(super) fn covers(&self, at: u64) -> bool {
        self.copied_at < at && at <= self.restored_at
    }
}

#[derive(Default)]
pub(super) struct Ledger {
    runs: Mutex<Vec<Run>>,
    orders: Mutex<Vec<Acknowledged>>,
    /// Runs that were stopped, and when that was acknowledged last.
    stops: Mutex<BTreeMap<String, u64>>,
    restores: Mutex<Vec<Restore>>,
    /// What was done to a run, which may show in its outcome.
    harmed: Mutex<BTreeMap<String, String>>,
    clock: AtomicU64,
    /// Held by the adversary while no client may start a daemon.
    pub(super) quiet: RwLock<()>,
    pub(super) is_over: AtomicBool,
}

impl Ledger {
    pub(super) fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(super) fn acknowledge(&self, id: String, task: Task) {
        lock(&self.runs).push(Run { id, task });
    }

    pub(super) fn ordered(&self, run: &str, text: &str) {
        let at = self.tick();
        lock(&self.orders).push(Acknowledged { run: run.to_owned(), text: text.to_owned(), at });
    }

    pub(super) fn stopped(&self, run: &str) {
        let at = self.tick();
        lock(&self.stops).insert(run.to_owned(), at);
    }

    /// True if an older journal has forgotten that this run was stopped.
    pub(super) fn has_lost_stop(&self, run: &str) -> bool {
        let Some(at) = lock(&self.stops).get(run).copied() else { return false };
        self.restores().iter().any(|restore| restore.covers(at))
    }

    pub(super) fn restored(&self, restore: Restore) {
        lock(&self.restores).push(restore);
    }

    /// Noted before it is done, so that its outcome cannot be seen without its cause.
    pub(super) fn harm(&self, run: &str, how: &str) {
        lock(&self.harmed).entry(run.to_owned()).or_insert_with(|| how.to_owned());
    }

    pub(super) fn harm_of(&self, run: &str) -> Option<String> {
        lock(&self.harmed).get(run).cloned()
    }

    pub(super) fn runs(&self) -> Vec<Run> {
        lock(&self.runs).clone()
    }

    pub(super) fn orders(&self) -> Vec<Acknowledged> {
        lock(&self.orders).clone()
    }

    pub(super) fn restores(&self) -> Vec<Restore> {
        lock(&self.restores).clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || crate::interrupt::is_asked()
    }

    /// How many runs are going on, as far as a daemon can be asked.
    pub(super) fn live(&self, outlast: &Private) -> Result<usize> {
        let _not_while_quiet = self.quiet.read().expect("no holder panics");
        let listed = outlast.ask_json(&["ps", "--json"]);
        Ok(listed.ok().and_then(|listed| listed.as_array().map(Vec::len)).unwrap_or(0))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder panics")
}
