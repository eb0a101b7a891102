//! Carries the plan out: at the start, whenever something happens that it depends on, and every ten minutes
//! while a run is open, in case something was missed.
//!
//! Decides nothing: that is `reconcile`. With no run open it waits for news, and there is no timer.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Effect, Run, RunId, Time};
use outlast_store::Error;
use outlast_wire::api::Holding;

use crate::children;
use crate::driver::Seat;
use crate::keeper;
use crate::lanes::Lane;
use crate::reconcile::{Desired, Standing};
use crate::recovery;
use crate::reserve;
use crate::slots::Queueing;
use crate::starts;
use crate::strays;
use crate::supervisor::{Supervisor, lock};
use crate::view;
use crate::waiter;

#[cfg(test)]
mod tests;

/// Between two looks for what was missed.
const TICK_MS: u64 = 600_000;

/// Carrying a plan out leaves nothing to do but what it has set off itself: a run that could not be read.
const PLANS: usize = 3;

/// Goes on for the daemon's life.
pub(crate) async fn run(supervisor: &Arc<Supervisor>) -> Infallible {
    let mut tick_at = None;
    loop {
        let look_at = supervisor.reconcile();
        let now = supervisor.world.steady();
        tick_at = if supervisor.has_open() { tick_at.or(Some(now.plus_ms(TICK_MS))) } else { None };
        wait(supervisor, earlier(look_at, tick_at), now).await;
        if tick_at.is_some_and(|at| at <= supervisor.world.steady()) {
            tick_at = None;
            supervisor.look_for_missed().await;
        }
    }
}

async fn wait(supervisor: &Supervisor, until: Option<Time>, now: Time) {
    let Some(until) = until else { return supervisor.resumes.news().await };
    let wait = Duration::from_millis(until.ms_since(now));
    // Early or late, everything is looked at again.
    let _elapsed = tokio::time::timeout(wait, supervisor.resumes.news()).await;
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

impl Supervisor {
    /// Takes over every run that is open. One that cannot be read does not keep the others from it.
    pub(crate) fn load(self: &Arc<Self>) -> Result<usize, Error> {
        self.load_shared()?;
        self.look_for_strays()?;
        let open = self.store.open_runs()?;
        let mut loaded = HashMap::new();
        for id in &open {
            match self.replay(id) {
                Ok(run) if let Some(why) = self.ahead_of(&run) => {
                    self.quarantine_as(id, recovery::BEHIND, why);
                }
                Ok(run) => {
                    // The daemon that made it may have died before it could.
                    strays::acknowledge(&self.layout.run(id.as_str()));
                    self.resumes.hold(Desired::of(&run, &self.world.boot), self.is_alive(&run));
                    // Whoever was doing something goes on doing it, before anybody is let in.
                    self.slots.note(&run, Queueing::StaysOut);
                    let _nobody_waits_yet =
                        self.shared.budgets.note(&run, outlast_store::Entry::default());
                    loaded.insert(id.clone(), run);
                }
                Err(message) => self.quarantine(id, message),
            }
        }
        let parents: Vec<Run> = loaded.values().cloned().collect();
        self.carry_out(loaded);
        children::catch_up(self, &parents)?;
        self.notices.wake_waiting(self);
        self.notices.prune(self);
        Ok(open.len())
    }

    /// Does what is to be done now; says when to look again.
    pub(crate) fn reconcile(self: &Arc<Self>) -> Option<Time> {
        self.carry_out(HashMap::new())
    }

    fn carry_out(self: &Arc<Self>, mut loaded: HashMap<RunId, Run>) -> Option<Time> {
        let mut look_again_at = None;
        for _ in 0..PLANS {
            let plan = self.resumes.plan(|run| self.handle(run).is_some(), self.world.steady());
            look_again_at = plan.look_again_at;
            for id in &plan.seat {
                match loaded.remove(id) {
                    Some(run) => {
                        let first = self.first_news(&run);
                        self.seat(Seat::new(run, self.epoch), Some(first));
                    }
                    None => self.take_over(id),
                }
            }
            plan.retry.iter().for_each(|id| self.take_over(id));
            plan.adopt.iter().chain(&plan.start).for_each(|id| self.poke(id));
            if plan.seat.is_empty() && plan.retry.is_empty() {
                break;
            }
        }
        look_again_at
    }

    /// Gives a run that has nobody a conductor, if it is to have one.
    pub(crate) fn take_over(self: &Arc<Self>, id: &RunId) {
        if self.handle(id).is_some() {
            return self.resumes.is_seated(id);
        }
        let is_open = match self.store.row(id) {
            Ok(row) => row.is_some_and(|row| row.is_open),
            Err(error) => return self.quarantine(id, error.to_string()),
        };
        if !is_open {
            self.release(id);
            return;
        }
        match self.replay(id) {
            Ok(run) if let Some(why) = self.ahead_of(&run) => {
                self.quarantine_as(id, recovery::BEHIND, why);
            }
            Ok(run) => {
                tracing::info!(run = %id, "taken over");
                self.unquarantine(id);
                self.resumes.is_seated(id);
                let (parent, first) = (run.clone(), self.first_news(&run));
                self.seat(Seat::new(run, self.epoch), Some(first));
                if let Err(error) = children::catch_up(self, &[parent]) {
                    tracing::error!(run = %id, %error, "cannot look for what its children came to");
                }
            }
            Err(message) => self.quarantine(id, message),
        }
    }

    /// Leaves a run alone that cannot be read, until it is read again.
    pub(crate) fn quarantine(&self, id: &RunId, message: String) {
        self.quarantine_as(id, "unreadable", message);
    }

    /// The same for another reason than that it cannot be read.
    pub(crate) fn quarantine_as(&self, id: &RunId, code: &str, message: String) {
        let trouble = self.trouble(code, message);
        let mut quarantine = lock(&self.quarantine);
        let known = quarantine.entry(id.clone()).or_insert_with(|| {
            tracing::error!(run = %id, message = trouble.message, "this run is left alone");
            trouble.clone()
        });
        known.message = trouble.message;
        drop(quarantine);
        self.needs.note_unreadable(id);
        self.watchers.note(id);
        let (standing, since) = (Standing::Unreadable, self.world.steady());
        let wanted = Desired { run: id.clone(), standing, priority: 0, since };
        self.resumes.lose(wanted, false, since);
    }

    pub(crate) fn unquarantine(&self, id: &RunId) {
        if lock(&self.quarantine).remove(id).is_some() {
            tracing::info!(run = %id, "it can be read again");
        }
    }

    /// A run that is held back would go on; true if it may.
    pub(crate) fn lets_go(self: &Arc<Self>, run: &Run) -> bool {
        self.resumes.wants_to_start(&run.id);
        self.reconcile();
        // If it may not, somebody has to look again when it may.
        self.resumes.nudge();
        !self.resumes.is_held(&run.id)
    }

    /// A conductor has gone and its run is open.
    pub(crate) fn lost(&self, id: &RunId) {
        let Some(handle) = self.handle(id) else { return };
        let run = handle.snapshot.borrow().run.clone();
        self.unseat(id);
        // One in quarantine is looked at again by itself.
        if self.leaving().borrow().is_some() || self.quarantined().contains_key(id) {
            return;
        }
        tracing::error!(run = %id, "its conductor is gone; it gets another");
        let wanted = Desired { standing: Standing::Resting, ..Desired::of(&run, &self.world.boot) };
        self.resumes.lose(wanted, self.is_alive(&run), self.world.steady());
    }

    /// Looks for what no event has told of: a run that is open and has nobody, one that is open no more, a config
    /// that has changed.
    async fn look_for_missed(self: &Arc<Self>) {
        self.triggers.runs_may_have_ended();
        if self.config().is_err() {
            tracing::warn!("the config is not right; `outlast doctor` shows why");
        }
        let (store, layout) = (self.store.clone(), self.layout.clone());
        let look = move || {
            reserve::make(&layout);
            // One that another daemon has started does not tell us when it is frozen.
            waiter::rouse(&layout);
            store.open_runs()
        };
        let open = Lane::Steps.run(look).await;
        let open = match open {
            Ok(Ok(open)) => open,
            Ok(Err(error)) => {
                return tracing::error!(%error, "cannot look for runs that have nobody");
            }
            Err(error) => return tracing::error!(%error, "looking for runs that have nobody died"),
        };
        for id in open {
            let has_somebody = self.handle(&id).is_some_and(|it| !it.mailbox.is_closed());
            if has_somebody || self.is_claimed(&id) || self.quarantined().contains_key(&id) {
                continue;
            }
            tracing::warn!(run = %id, "open, and conducted by nobody");
            self.unseat(&id);
            let since = self.world.steady();
            self.resumes.find(Desired { run: id, standing: Standing::Resting, priority: 0, since });
        }
    }

    /// Until when this daemon starts nothing by itself, and why, if it does not.
    pub(crate) fn holding(&self) -> Option<Holding> {
        let storm = self.storm?;
        (self.world.steady() < storm.until).then(|| Holding {
            until: view::rfc3339(storm.until),
            why: format!(
                "{} daemons have ended unasked within {} s",
                storm.deaths,
                starts::WINDOW_MS / 1000
            ),
            runs: self.resumes.waiting(),
        })
    }

    /// True if a shim holds the lock of the step that the run has.
    fn is_alive(&self, run: &Run) -> bool {
        let dir = self.layout.run(run.id.as_str());
        run.due().into_iter().any(|effect| match effect {
            Effect::Ensure { step, boot } => {
                boot == self.world.boot && keeper::is_locked(&keeper::step_dir(&dir, step))
            }
            _ => false,
        })
    }
}
