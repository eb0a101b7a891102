//! What the runs of one daemon share: slots and budgets, asked together whenever something is decided for a run.

use outlast_engine::{Moment, Run, RunId, RunSpec, Slot};
use outlast_store::{Amount, Entry};

use crate::budgets::Budgets;
use crate::slots::{Queueing, Slots};

#[derive(Default)]
pub struct Books {
    pub slots: Slots,
    pub budgets: Budgets,
}

impl Books {
    /// Whether a run may start something now; takes a slot for it if there is one. `is_held_back` while others go
    /// first after a restart.
    pub fn slot_of(&self, run: &Run, is_held_back: bool, free_mb: impl Fn() -> u64) -> Slot {
        if is_held_back {
            return Slot::Held;
        }
        if run.holds_slot() {
            return Slot::Free;
        }
        self.slots.take(&run.id, &run.spec, run.created_at, free_mb)
    }

    /// The moment for a run that exists: reserves its share of the budgets if there is room.
    pub fn moment_of(&self, run: &Run, moment: Moment) -> Moment {
        let nothing = Amount::default();
        let budget = self.budgets.reserve(&run.id, &run.spec, Some(run), nothing, moment.now);
        Moment { budget, ..moment }
    }

    /// The moment for a run that is being made.
    pub fn moment_for_new(&self, id: &RunId, spec: &RunSpec, moment: Moment) -> Moment {
        let budget = self.budgets.reserve(id, spec, None, Amount::default(), moment.now);
        Moment { budget, ..moment }
    }

    /// The same moment for a run that will have used up so much in it: what it shares may be spent by that.
    pub fn moment_after(&self, run: &Run, moment: &Moment, spent: Entry) -> Moment {
        let (id, spec, now) = (&run.id, &run.spec, moment.now);
        let budget = self.budgets.reserve(id, spec, Some(run), spent.amount, now);
        Moment { budget, nearing: self.budgets.nearing(spec, spent), ..moment.clone() }
    }

    /// Notes what a run has come to, and what it has used up by that; says which runs have to look again.
    pub fn note(&self, run: &Run, is_held_back: bool, spent: Entry) -> Vec<RunId> {
        let queueing = if is_held_back { Queueing::StaysOut } else { Queueing::Joins };
        let next = self.slots.note(run, queueing).filter(|next| *next != run.id);
        let mut woken = self.budgets.note(run, spent);
        woken.extend(next);
        woken
    }

    /// A run that is gone, or was not made, takes nothing; says which runs have to look again.
    pub fn forget(&self, id: &RunId) -> Vec<RunId> {
        let mut woken = self.budgets.forget(id);
        woken.extend(self.slots.forget(id));
        woken
    }
}
