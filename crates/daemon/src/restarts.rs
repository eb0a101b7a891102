//! The books of restarts, shared by all tasks of a daemon, and a bell for the tasks that wait for a change in them.

use std::sync::{Mutex, MutexGuard};

use outlast_conduct::reconcile::{Desired, Plan};
use outlast_conduct::restart_queue::RestartQueue;
use outlast_engine::{BootId, Run, RunId, Time};
use outlast_workflow::Supervision;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::sync::lock;

#[derive(Default)]
pub(crate) struct Restarts {
    queue: Mutex<RestartQueue>,
    /// Something has changed that the plan may depend on.
    news: Notify,
    /// A run is pending no longer.
    released: Notify,
}

impl Restarts {
    /// Follows a config that has changed.
    pub(crate) fn follow(&self, rules: &Supervision) {
        let is_news = self.queue().follow(rules);
        self.nudge_if(is_news);
    }

    pub(crate) fn delay_all_until(&self, until: Time) {
        self.queue().delay_all_until(until);
    }

    pub(crate) fn push(&self, wanted: Desired, is_alive: bool) {
        self.queue().push(wanted, is_alive);
    }

    pub(crate) fn is_pending(&self, run: &RunId) -> bool {
        self.queue().is_pending(run)
    }

    /// How many wait to start something.
    pub(crate) fn waiting(&self) -> usize {
        self.queue().waiting()
    }

    pub(crate) fn request_start(&self, run: &RunId) {
        self.queue().request_start(run);
    }

    /// A person's word: this run goes on whatever is planned.
    pub(crate) fn release(&self, run: &RunId) {
        if self.queue().release(run) {
            self.released.notify_waiters();
        }
    }

    pub(crate) fn note(&self, run: &Run, boot: &BootId) {
        let is_news = self.queue().note(run, boot);
        self.nudge_if(is_news);
    }

    pub(crate) fn started(&self, run: &RunId) {
        let is_news = self.queue().started(run);
        self.nudge_if(is_news);
    }

    pub(crate) fn lost(&self, wanted: Desired, is_alive: bool, now: Time) {
        self.queue().lost(wanted, is_alive, now);
        self.nudge();
    }

    pub(crate) fn found(&self, wanted: Desired) {
        self.queue().found(wanted);
    }

    pub(crate) fn is_lost(&self, run: &RunId) -> bool {
        self.queue().is_lost(run)
    }

    pub(crate) fn conducted(&self, run: &RunId) {
        self.queue().conducted(run);
    }

    pub(crate) fn forget(&self, run: &RunId) {
        let is_news = self.queue().forget(run);
        self.nudge_if(is_news);
    }

    pub(crate) fn plan(&self, has_conductor: impl Fn(&RunId) -> bool, now: Time) -> Plan {
        let plan = self.queue().plan(has_conductor, now);
        if !(plan.adopt.is_empty() && plan.start.is_empty()) {
            self.released.notify_waiters();
        }
        plan
    }

    /// Has the reconciler look again.
    pub(crate) fn nudge(&self) {
        self.news.notify_one();
    }

    fn nudge_if(&self, is_news: bool) {
        if is_news {
            self.nudge();
        }
    }

    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// The next time that a run is let go, from now on.
    pub(crate) fn released(&self) -> Notified<'_> {
        self.released.notified()
    }

    fn queue(&self) -> MutexGuard<'_, RestartQueue> {
        lock(&self.queue)
    }
}
