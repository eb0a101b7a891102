//! What the runs of one daemon share: slots and budgets, asked together whenever something is decided for a run.

use outlast_engine::{Context, Run, RunId, RunSpec, Slot};
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
    pub fn slot_of(&self, run: &Run, is_paced: bool, free_mb: impl Fn() -> u64) -> Slot {
        if is_paced {
            return Slot::Paced;
        }
        if run.holds_slot() {
            return Slot::Free;
        }
        self.slots.take(&run.id, &run.spec, run.created_at, free_mb)
    }

    /// The context of a decision for a run that exists: reserves its share of the budgets if there is room.
    pub fn context_of(&self, run: &Run, context: Context) -> Context {
        let nothing = Amount::default();
        let budget = self.budgets.reserve(&run.id, &run.spec, Some(run), nothing, context.now);
        Context { budget, ..context }
    }

    /// The context of a decision for a run that is being made.
    pub fn context_for_new(&self, id: &RunId, spec: &RunSpec, context: Context) -> Context {
        let budget = self.budgets.reserve(id, spec, None, Amount::default(), context.now);
        Context { budget, ..context }
    }

    /// The same context for a run that will have used up so much in it: what it shares may be spent by that.
    pub fn context_after(&self, run: &Run, context: &Context, spent: Entry) -> Context {
        let (id, spec, now) = (&run.id, &run.spec, context.now);
        let budget = self.budgets.reserve(id, spec, Some(run), spent.used.amount, now);
        Context { budget, nearing: self.budgets.nearing(spec, spent), ..context.clone() }
    }

    /// Notes what a run has come to, and what it has used up by that; says which runs have to look again.
    pub fn note(&self, run: &Run, is_paced: bool, spent: Entry) -> Vec<RunId> {
        let queueing = if is_paced { Queueing::StaysOut } else { Queueing::Joins };
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
