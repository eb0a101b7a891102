//! The books of restarts: which runs a daemon found when it started may not go on yet, and which have lost their
//! conductor.
//!
//! Keeps what [`reconcile`] is asked with, and carries nothing out. Empty once every run goes on by itself. A method
//! that answers true has changed something that the plan may depend on.

use std::collections::BTreeMap;

use outlast_engine::{BootId, Run, RunId, Time};
use outlast_workflow::Supervision;

use crate::reconcile::{Backoff, Desired, Failure, Observed, Plan, Readiness, Rules, reconcile};

#[derive(Debug, Default)]
pub struct RestartQueue {
    /// Found by a daemon that started, and not let go yet.
    pending: BTreeMap<RunId, Entry>,
    /// Without a conductor: the run cannot be read, or its conductor is gone.
    lost: BTreeMap<RunId, Entry>,
    /// Let go, and not yet seen to have started.
    starting: BTreeMap<RunId, Time>,
    /// When others were let go, as long as that matters.
    recent: Vec<Time>,
    backoff: Backoff,
}

#[derive(Debug)]
struct Entry {
    wanted: Desired,
    is_alive: bool,
}

impl RestartQueue {
    pub fn with_rules(rules: Rules) -> Self {
        Self { backoff: Backoff { rules, ..Backoff::default() }, ..Self::default() }
    }

    /// Follows a config that has changed.
    pub fn follow(&mut self, rules: &Supervision) -> bool {
        let at_once = usize::try_from(rules.resumes_at_once).unwrap_or(usize::MAX);
        let known = &mut self.backoff.rules;
        let is_news = (known.at_once, known.gap_ms) != (at_once, rules.resume_gap_ms);
        (known.at_once, known.gap_ms) = (at_once, rules.resume_gap_ms);
        is_news
    }

    /// Nothing that was found is started before this.
    pub fn delay_all_until(&mut self, until: Time) {
        self.backoff.storm_until = Some(until);
    }

    /// A run that was found waits for its turn.
    pub fn push(&mut self, wanted: Desired, is_alive: bool) {
        self.pending.insert(wanted.run.clone(), Entry { wanted, is_alive });
    }

    pub fn is_pending(&self, run: &RunId) -> bool {
        self.pending.contains_key(run)
    }

    /// How many wait to start something.
    pub fn waiting(&self) -> usize {
        self.pending.values().filter(|entry| entry.wanted.readiness == Readiness::Eager).count()
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// A run that waits for its turn would start something now.
    pub fn request_start(&mut self, run: &RunId) {
        if let Some(entry) = self.pending.get_mut(run) {
            entry.wanted.readiness = Readiness::Eager;
        }
    }

    /// A person's word: this run goes on whatever is planned. True if it was pending.
    pub fn release(&mut self, run: &RunId) -> bool {
        self.pending.remove(run).is_some()
    }

    /// Notes what a run has come to.
    pub fn note(&mut self, run: &Run, boot: &BootId) -> bool {
        let is_known = self.pending.contains_key(&run.id) || self.starting.contains_key(&run.id);
        if !is_known {
            return false;
        }
        let wanted = Desired::of(run, boot);
        let is_eager = wanted.readiness == Readiness::Eager;
        let mut is_news = !is_eager && self.starting.remove(&run.id).is_some();
        if let Some(entry) = self.pending.get_mut(&run.id) {
            is_news |= is_eager && entry.wanted.readiness != Readiness::Eager;
            entry.is_alive &= run.live().is_some() || run.live_errand().is_some();
            entry.wanted = wanted;
        }
        is_news
    }

    /// A run that was let go has started, or is queued for a slot: it no longer counts as starting.
    pub fn started(&mut self, run: &RunId) -> bool {
        self.starting.remove(run).is_some()
    }

    /// A run has lost its conductor, and should have one.
    pub fn lost(&mut self, wanted: Desired, is_alive: bool, now: Time) {
        let run = wanted.run.clone();
        let longest_ms = self.backoff.rules.longest_delay_ms;
        let failure = self.backoff.failures.entry(run.clone()).or_insert(Failure::NONE);
        // One that went well for long enough begins anew.
        let is_old = now.ms_since(failure.last) > longest_ms.saturating_mul(2);
        let times = if is_old { 1 } else { failure.times + 1 };
        *failure = Failure { times, last: now };
        self.lost.insert(run, Entry { wanted, is_alive });
    }

    /// A run was found that has no conductor; that is no failure of its own.
    pub fn found(&mut self, wanted: Desired) {
        let run = wanted.run.clone();
        self.lost.entry(run).or_insert(Entry { wanted, is_alive: false });
    }

    pub fn is_lost(&self, run: &RunId) -> bool {
        self.lost.contains_key(run)
    }

    /// A run has a conductor again.
    pub fn conducted(&mut self, run: &RunId) {
        self.lost.remove(run);
    }

    /// The run is over, or another daemon's.
    pub fn forget(&mut self, run: &RunId) -> bool {
        let was_starting = self.starting.remove(run).is_some();
        self.pending.remove(run);
        self.lost.remove(run);
        self.backoff.failures.remove(run);
        was_starting && !self.pending.is_empty()
    }

    /// What is to be done now. A run that the plan lets go is pending no longer.
    pub fn plan(&mut self, has_conductor: impl Fn(&RunId) -> bool, now: Time) -> Plan {
        let plan = self.ask(has_conductor, now);
        for run in plan.adopt.iter().chain(&plan.start) {
            self.pending.remove(run);
        }
        let gap_ms = self.backoff.rules.gap_ms;
        self.recent.retain(|at| now.ms_since(*at) < gap_ms);
        self.recent.extend(plan.start.iter().map(|_| now));
        self.starting.extend(plan.start.iter().map(|run| (run.clone(), now)));
        plan
    }

    fn ask(&self, has_conductor: impl Fn(&RunId) -> bool, now: Time) -> Plan {
        let entries = || self.pending.values().chain(self.lost.values());
        let desired: Vec<Desired> = entries().map(|entry| entry.wanted.clone()).collect();
        let alive = entries().filter(|entry| entry.is_alive);
        let conducted = desired.iter().map(|it| &it.run).filter(|run| has_conductor(run));
        let observed = Observed {
            seated: conducted.cloned().collect(),
            alive: alive.map(|entry| entry.wanted.run.clone()).collect(),
            pending: self.pending.keys().cloned().collect(),
            starting: self.starting.clone(),
            recent: self.recent.clone(),
        };
        reconcile(&desired, &observed, &self.backoff, now)
    }
}
