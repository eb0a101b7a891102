//! What holds a run back after a restart, and a run whose conductor is gone. Carries no plan out: that is the
//! reconciler's.

use outlast_engine::{Effect, Run, RunId};
use outlast_wire::api::Holding;

use super::Supervisor;
use crate::starts;
use crate::steps;
use crate::view;
use outlast_conduct::reconcile::{Desired, Readiness};

impl Supervisor {
    /// A run that is held back would go on; true if it may. Runs that the plan wants conducted are left to the
    /// reconciler.
    pub(crate) fn lets_go(&self, run: &Run) -> bool {
        self.restarts.request_start(&run.id);
        let is_entered = |id: &RunId| self.handle(id).is_some();
        let plan = self.restarts.plan(is_entered, self.ground.world.steady());
        plan.adopt.iter().chain(&plan.start).for_each(|id| self.poke(id));
        // If it may not, the reconciler has to look again when it may.
        self.restarts.nudge();
        !self.restarts.is_pending(&run.id)
    }

    /// A conductor has gone and its run is open.
    pub(crate) fn lost(&self, id: &RunId) {
        let Some(handle) = self.handle(id) else { return };
        let run = handle.snapshot.borrow().run.clone();
        self.unseat(id);
        // One in quarantine is looked at again by itself.
        if self.ground.leaving().borrow().is_some() || self.quarantined().contains_key(id) {
            return;
        }
        tracing::error!(run = %id, "its conductor is gone; it gets another");
        let wanted =
            Desired { readiness: Readiness::Resting, ..Desired::of(&run, &self.ground.world.boot) };
        self.restarts.lost(wanted, self.is_alive(&run), self.ground.world.steady());
    }

    /// Until when this daemon starts nothing by itself, and why, if it does not.
    pub(crate) fn holding(&self) -> Option<Holding> {
        let storm = self.storm?;
        (self.ground.world.steady() < storm.until).then(|| Holding {
            until: view::rfc3339(storm.until),
            why: format!(
                "{} daemons ended unexpectedly within {} s",
                storm.deaths,
                starts::WINDOW_MS / 1000
            ),
            runs: self.restarts.waiting(),
        })
    }

    /// True if a shim holds the lock of the step that the run has.
    pub(crate) fn is_alive(&self, run: &Run) -> bool {
        let dir = self.ground.layout.run(run.id.as_str());
        run.due().into_iter().any(|effect| match effect {
            Effect::Ensure { step, boot } => {
                boot == self.ground.world.boot && steps::is_locked(&steps::step_dir(&dir, step))
            }
            _ => false,
        })
    }
}
