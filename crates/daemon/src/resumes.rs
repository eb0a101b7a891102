//! The books of restarts: which runs are held back after a start, and which have lost their conductor.
//!
//! [`reconcile`] is asked with these books; nothing is carried out here. They are empty once every run goes on by
//! itself, and then cost nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_engine::{BootId, Run, RunId, Time};
use outlast_workflow::Supervision;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::reconcile::{Backoff, Desired, Failure, Observed, Plan, Standing, reconcile};

#[derive(Default)]
pub(crate) struct Resumes {
    table: Mutex<Table>,
    /// Something has changed that the plan may depend on.
    news: Notify,
    /// Somebody is no longer held back.
    released: Notify,
}

#[derive(Default)]
struct Table {
    held: BTreeMap<RunId, Entry>,
    /// Who has nobody: it cannot be read, or its conductor is gone.
    lost: BTreeMap<RunId, Entry>,
    starting: BTreeMap<RunId, Time>,
    /// When others were let go, as long as that matters.
    recent: Vec<Time>,
    backoff: Backoff,
}

struct Entry {
    wanted: Desired,
    is_alive: bool,
}

impl Resumes {
    /// Follows a config that has changed.
    pub(crate) fn follow(&self, rules: &Supervision) {
        let mut table = self.lock();
        let at_once = usize::try_from(rules.resumes_at_once).unwrap_or(usize::MAX);
        let held = &mut table.backoff.rules;
        if (held.at_once, held.gap_ms) != (at_once, rules.resume_gap_ms) {
            (held.at_once, held.gap_ms) = (at_once, rules.resume_gap_ms);
            drop(table);
            self.nudge();
        }
    }

    /// Nothing that was found is started before this.
    pub(crate) fn hold_all_until(&self, until: Time) {
        self.lock().backoff.storm_until = Some(until);
    }

    pub(crate) fn hold(&self, wanted: Desired, is_alive: bool) {
        self.lock().held.insert(wanted.run.clone(), Entry { wanted, is_alive });
    }

    pub(crate) fn is_held(&self, run: &RunId) -> bool {
        self.lock().held.contains_key(run)
    }

    /// How many wait to go on.
    pub(crate) fn waiting(&self) -> usize {
        let table = self.lock();
        table.held.values().filter(|entry| entry.wanted.standing == Standing::Eager).count()
    }

    /// A run that is held back would start something now.
    pub(crate) fn wants_to_start(&self, run: &RunId) {
        if let Some(entry) = self.lock().held.get_mut(run) {
            entry.wanted.standing = Standing::Eager;
        }
    }

    /// Somebody's word: this one goes on whatever is planned.
    pub(crate) fn free(&self, run: &RunId) {
        if self.lock().held.remove(run).is_some() {
            self.released.notify_waiters();
        }
    }

    /// Notes what a run has come to.
    pub(crate) fn note(&self, run: &Run, boot: &BootId) {
        let mut table = self.lock();
        let is_known = table.held.contains_key(&run.id) || table.starting.contains_key(&run.id);
        if !is_known {
            return;
        }
        let wanted = Desired::of(run, boot);
        let is_eager = wanted.standing == Standing::Eager;
        let mut is_news = !is_eager && table.starting.remove(&run.id).is_some();
        if let Some(entry) = table.held.get_mut(&run.id) {
            is_news |= is_eager && entry.wanted.standing != Standing::Eager;
            entry.is_alive &= run.live().is_some() || run.live_errand().is_some();
            entry.wanted = wanted;
        }
        drop(table);
        if is_news {
            self.nudge();
        }
    }

    /// Whoever was let go has come to it, or waits among all others.
    pub(crate) fn has_gone_on(&self, run: &RunId) {
        if self.lock().starting.remove(run).is_some() {
            self.nudge();
        }
    }

    /// A run has nobody, and should.
    pub(crate) fn lose(&self, wanted: Desired, is_alive: bool, now: Time) {
        let mut table = self.lock();
        let run = wanted.run.clone();
        let longest_ms = table.backoff.rules.longest_delay_ms;
        let failure = table.backoff.failures.entry(run.clone()).or_insert(Failure::NONE);
        // One that went well for long enough begins anew.
        let is_old = now.ms_since(failure.last) > longest_ms.saturating_mul(2);
        let times = if is_old { 1 } else { failure.times + 1 };
        *failure = Failure { times, last: now };
        table.lost.insert(run, Entry { wanted, is_alive });
        drop(table);
        self.nudge();
    }

    /// A run was found that has nobody; that is no failure of its own.
    pub(crate) fn find(&self, wanted: Desired) {
        let run = wanted.run.clone();
        self.lock().lost.entry(run).or_insert(Entry { wanted, is_alive: false });
    }

    pub(crate) fn is_lost(&self, run: &RunId) -> bool {
        self.lock().lost.contains_key(run)
    }

    /// Somebody sees to it.
    pub(crate) fn is_seated(&self, run: &RunId) {
        self.lock().lost.remove(run);
    }

    /// It is over, or somebody else's.
    pub(crate) fn forget(&self, run: &RunId) {
        let mut table = self.lock();
        let was_starting = table.starting.remove(run).is_some();
        table.held.remove(run);
        table.lost.remove(run);
        table.backoff.failures.remove(run);
        let is_news = was_starting && !table.held.is_empty();
        drop(table);
        if is_news {
            self.nudge();
        }
    }

    /// What is to be done now. Whoever it lets go is held back no longer.
    pub(crate) fn plan(&self, is_seated: impl Fn(&RunId) -> bool, now: Time) -> Plan {
        let mut table = self.lock();
        let plan = table.plan(is_seated, now);
        for run in plan.adopt.iter().chain(&plan.start) {
            table.held.remove(run);
        }
        let gap_ms = table.backoff.rules.gap_ms;
        table.recent.retain(|at| now.ms_since(*at) < gap_ms);
        table.recent.extend(plan.start.iter().map(|_| now));
        table.starting.extend(plan.start.iter().map(|run| (run.clone(), now)));
        drop(table);
        if !(plan.adopt.is_empty() && plan.start.is_empty()) {
            self.released.notify_waiters();
        }
        plan
    }

    pub(crate) fn nudge(&self) {
        self.news.notify_one();
    }

    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// The next time that somebody is let go, from now on.
    pub(crate) fn released(&self) -> Notified<'_> {
        self.released.notified()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds this.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn plan(&self, is_seated: impl Fn(&RunId) -> bool, now: Time) -> Plan {
        let entries = || self.held.values().chain(self.lost.values());
        let desired: Vec<Desired> = entries().map(|entry| entry.wanted.clone()).collect();
        let alive = entries().filter(|entry| entry.is_alive);
        let observed = Observed {
            seated: desired
                .iter()
                .map(|it| &it.run)
                .filter(|run| is_seated(run))
                .cloned()
                .collect(),
            alive: alive.map(|entry| entry.wanted.run.clone()).collect(),
            held: self.held.keys().cloned().collect(),
            starting: self.starting.clone(),
            recent: self.recent.clone(),
        };
        reconcile(&desired, &observed, &self.backoff, now)
    }
}
