//! The moment at which something is decided for a run: the clock, its place, what it shares with others, and
//! whether everything is to rest.

use std::sync::{Mutex, PoisonError};

use outlast_engine::{Hold, Moment, Run, RunId, RunSpec, Seen, Slot, Time};
use outlast_store::{Amount, Entry, Error};
use outlast_workflow::Config;

use crate::budgets::{Budgets, Standing};
use crate::supervisor::Supervisor;

/// Since when everything rests, as the store has it.
const HELD: &str = "held";

/// What every run has to go by, beside its own journal.
#[derive(Default)]
pub(crate) struct Shared {
    pub(crate) budgets: Budgets,
    held_since: Mutex<Option<Time>>,
}

impl Supervisor {
    /// Reads what an earlier daemon was told, and what was spent.
    pub(crate) fn load_shared(&self) -> Result<(), Error> {
        let held = self.store.note(HELD)?;
        let since = held
            .map(|since| since.parse().map(Time))
            .transpose()
            .map_err(|_| Error::Io(format!("the setting {HELD} in the store is not a time")))?;
        *self.shared.held_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
        if let Ok(config) = self.settings.current() {
            self.follow_budgets(&config)?;
        }
        Ok(())
    }

    /// The moment for a run that exists.
    pub(crate) fn moment_of(&self, run: &Run, slot: Slot, seen: Seen) -> Moment {
        let moment = self.moment(slot);
        let nothing = Amount::default();
        let budget = self.shared.budgets.room(&run.id, &run.spec, Some(run), nothing, moment.now);
        Moment { hold: self.hold(), budget, seen, ..moment }
    }

    /// The same moment for a run that will have used up so much in it: what it shares may be spent by that.
    pub(crate) fn moment_after(&self, run: &Run, moment: &Moment, spent: Entry) -> Moment {
        let (id, spec, now) = (&run.id, &run.spec, moment.now);
        let budget = self.shared.budgets.room(id, spec, Some(run), spent.amount, now);
        Moment { budget, nearing: self.shared.budgets.nearing(spec, spent), ..moment.clone() }
    }

    /// The moment for a run that is being made.
    pub(crate) fn moment_for_new(&self, id: &RunId, spec: &RunSpec, slot: Slot) -> Moment {
        let moment = self.moment(slot);
        let budget = self.shared.budgets.room(id, spec, None, Amount::default(), moment.now);
        Moment { hold: self.hold(), budget, ..moment }
    }

    /// Notes what a run has used up, and has those look again whom that concerns.
    pub(crate) fn note_spent(&self, run: &Run, spent: Entry) {
        self.shared.budgets.note(run, spent).iter().for_each(|id| self.poke(id));
    }

    /// A run that is gone, or was not made, takes nothing of any budget.
    pub(crate) fn forget_budget(&self, id: &RunId) {
        self.shared.budgets.forget(id).iter().for_each(|id| self.poke(id));
    }

    /// The sums are read again after an append whose answer got lost.
    pub(crate) fn reload_budgets(&self) {
        if let Err(error) = self.shared.budgets.reload(self.world.now(), &*self.store) {
            tracing::error!(%error, "cannot read what was spent; budgets go by what is known");
        }
    }

    pub(crate) fn follow_budgets(&self, config: &Config) -> Result<(), Error> {
        let (rules, near) = (&config.budgets, config.health.near_limit_percent);
        let changed = self.shared.budgets.follow(rules, near, self.world.now(), &*self.store)?;
        changed.iter().for_each(|id| self.poke(id));
        Ok(())
    }

    pub(crate) fn budgets(&self) -> Vec<Standing> {
        self.shared.budgets.standing(self.world.now())
    }

    /// True while everything is to rest: nothing new is started by itself.
    pub(crate) fn is_held(&self) -> bool {
        self.held_since().is_some()
    }

    pub(crate) fn held_since(&self) -> Option<Time> {
        *self.shared.held_since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self) -> Hold {
        if self.is_held() { Hold::On } else { Hold::Off }
    }

    /// Has everything rest, or go on. Durable before anybody follows it; asked again it changes nothing.
    pub(crate) fn set_hold(&self, hold: Hold) -> Result<Option<Time>, Error> {
        let since = match (hold, self.held_since()) {
            (Hold::On, Some(since)) => Some(since),
            (Hold::On, None) => Some(self.world.now()),
            (Hold::Off, _) => None,
        };
        let text = since.map(|since| since.0.to_string());
        self.store.set_note(HELD, text.as_deref(), self.epoch)?;
        *self.shared.held_since.lock().unwrap_or_else(PoisonError::into_inner) = since;
        self.triggers.wake();
        Ok(since)
    }
}
