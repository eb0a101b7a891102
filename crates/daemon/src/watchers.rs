//! The clients that watch the list of runs, and the runs that each has yet to be shown.
//!
//! Holds ids and never rows: a slow reader accumulates ids, and each row is built when it can be sent. Without
//! watchers nothing happens here.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use outlast_engine::RunId;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct Watchers {
    all: Mutex<Vec<Weak<Watcher>>>,
}

/// A client that watches, until this is dropped.
#[derive(Default)]
pub(crate) struct Watcher {
    unseen: Mutex<BTreeSet<RunId>>,
    news: Notify,
}

impl Watchers {
    pub(crate) fn watch(&self) -> Arc<Watcher> {
        let watcher = Arc::new(Watcher::default());
        let mut all = lock(&self.all);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&watcher));
        watcher
    }

    /// Tells every watcher that this run looks different now. Called after it does.
    pub(crate) fn note(&self, id: &RunId) {
        lock(&self.all).retain(|one| {
            one.upgrade().is_some_and(|watcher| {
                watcher.note(id);
                true
            })
        });
    }
}

impl Watcher {
    pub(crate) fn note(&self, id: &RunId) {
        let is_news = lock(&self.unseen).insert(id.clone());
        if is_news {
            self.news.notify_one();
        }
    }

    /// The runs that have changed since this was last asked; waits until there are some.
    pub(crate) async fn unseen(&self) -> BTreeSet<RunId> {
        loop {
            let unseen = std::mem::take(&mut *lock(&self.unseen));
            if !unseen.is_empty() {
                return unseen;
            }
            self.news.notified().await;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds these, and a list is sound between any two calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> RunId {
        RunId(text.to_owned())
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
    }

    #[test]
    fn a_run_that_changes_often_is_shown_once_to_whoever_is_slow() {
        let watchers = Watchers::default();
        let slow = watchers.watch();
        for _ in 0..1000 {
            watchers.note(&id("a"));
            watchers.note(&id("b"));
        }
        let seen = runtime().block_on(slow.unseen());
        assert_eq!(seen, BTreeSet::from([id("a"), id("b")]));
        watchers.note(&id("b"));
        assert_eq!(runtime().block_on(slow.unseen()), BTreeSet::from([id("b")]));
    }

    #[test]
    fn whoever_waits_is_woken_by_a_change() {
        let watchers = Watchers::default();
        let watcher = watchers.watch();
        let seen = runtime().block_on(async {
            let (seen, ()) = tokio::join!(watcher.unseen(), async {
                tokio::task::yield_now().await;
                watchers.note(&id("a"));
            });
            seen
        });
        assert_eq!(seen, BTreeSet::from([id("a")]));
    }

    #[test]
    fn whoever_has_left_is_forgotten() {
        let watchers = Watchers::default();
        drop(watchers.watch());
        watchers.note(&id("a"));
        assert!(lock(&watchers.all).is_empty());
    }
}
