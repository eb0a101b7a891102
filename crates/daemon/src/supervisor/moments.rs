//! The moment at which something is decided for a run: the clock, its place, what it shares with others, and
//! whether everything is to rest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::{Hold, Moment, Order, Run, RunId, RunSpec, Seen, Slot, Time};
use outlast_store::Error;
use outlast_wire::api::ByView;
use outlast_workflow::Config;

use super::Supervisor;
use crate::order_book::{self, Page};
use outlast_conduct::budgets::BudgetStatus;

/// Since when everything rests, as the store has it.
const HELD: &str = "held";

/// What every run has to go by, beside its own journal.
#[derive(Default)]
pub(crate) struct Shared {
    hold: Mutex<Word>,
}

/// The `pause --all` that holds.
#[derive(Default)]
struct Word {
    /// Since when everything rests, while it does.
    since: Option<Time>,
    /// The order that it is.
    order: Option<Arc<Order>>,
}

impl Supervisor {
    /// Reads what an earlier daemon was told, and what was spent.
    pub(crate) fn load_shared(&self) -> Result<(), Error> {
        let held = self.ground.store.note(HELD)?;
        let since = held
            .map(|since| since.parse().map(Time))
            .transpose()
            .map_err(|_| Error::Io(format!("the setting {HELD} in the store is not a time")))?;
        let page =
            self.ground.store.note(order_book::NOTE)?.map(|json| Page::read(&json)).transpose();
        let page = page.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the orders that were taken; they are not known again");
            None
        });
        let page = page.unwrap_or_default();
        *self.word() = Word { since, order: page.word() };
        self.orders.open_at(page);
        if let Ok(config) = self.ground.settings.current() {
            self.follow_budgets(&config)?;
        }
        Ok(())
    }

    /// The moment for a run that exists.
    pub(crate) fn moment_of(&self, run: &Run, slot: Slot, seen: Seen) -> Moment {
        let (hold, word) = self.hold();
        let moment = Moment { hold, word, seen, ..self.ground.moment(slot) };
        self.books.moment_of(run, moment)
    }

    /// The moment for a run that is being made.
    pub(crate) fn moment_for_new(&self, id: &RunId, spec: &RunSpec, slot: Slot) -> Moment {
        let (hold, word) = self.hold();
        let moment = Moment { hold, word, ..self.ground.moment(slot) };
        self.books.moment_for_new(id, spec, moment)
    }

    /// The sums are read again after an append whose answer got lost.
    pub(crate) fn reload_budgets(&self) {
        if let Err(error) = self.books.budgets.reload(self.ground.world.now(), &*self.ground.store)
        {
            tracing::error!(%error, "cannot read what was spent; budgets go by what is known");
        }
    }

    pub(crate) fn follow_budgets(&self, config: &Config) -> Result<(), Error> {
        let (rules, near) = (&config.budgets, config.health.near_limit_percent);
        let changed =
            self.books.budgets.follow(rules, near, self.ground.world.now(), &*self.ground.store)?;
        changed.iter().for_each(|id| self.poke(id));
        Ok(())
    }

    pub(crate) fn budgets(&self) -> Vec<BudgetStatus> {
        self.books.budgets.status(self.ground.world.now())
    }

    pub(crate) fn held_since(&self) -> Option<Time> {
        self.word().since
    }

    /// Who has everything rest, while it does.
    pub(crate) fn held_by(&self) -> Option<ByView> {
        let word = self.word();
        let order = word.order.as_ref().filter(|_| word.since.is_some())?;
        order.by.as_ref().map(order_book::by_view)
    }

    /// Whether everything is to rest, and who said so last.
    fn hold(&self) -> (Hold, Option<Arc<Order>>) {
        let word = self.word();
        (if word.since.is_some() { Hold::On } else { Hold::Off }, word.order.clone())
    }

    fn word(&self) -> MutexGuard<'_, Word> {
        // Nothing panics while it holds this.
        self.shared.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has everything rest, or go on, by the last order of this page of the order book. Both are durable, in one
    /// write, before any run follows.
    pub(crate) fn set_hold(&self, hold: Hold, page: &Page) -> Result<(), Error> {
        let since = match (hold, self.held_since()) {
            (Hold::On, Some(since)) => Some(since),
            (Hold::On, None) => Some(self.ground.world.now()),
            (Hold::Off, _) => None,
        };
        let text = since.map(|since| since.0.to_string());
        let book = page.json();
        let notes = [(HELD, text.as_deref()), (order_book::NOTE, Some(book.as_str()))];
        self.ground.store.set_notes(&notes, self.ground.epoch)?;
        *self.word() = Word { since, order: page.word() };
        self.triggers.table.wake();
        Ok(())
    }
}
