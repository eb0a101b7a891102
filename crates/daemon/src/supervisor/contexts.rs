//! The context in which something is decided for a run: the clock, its slot, what it shares with others, and
//! whether everything is to rest.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::{Context, Order, PauseAll, Run, RunId, RunSpec, Seen, Slot, Time};
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
    pause_all: Mutex<Word>,
}

/// The `pause --all` that is in force.
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
        let noted = self.ground.store.note(HELD)?;
        let since = noted
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

    /// The context of a decision for a run that exists.
    pub(crate) fn context_of(&self, run: &Run, slot: Slot, seen: Seen) -> Context {
        let (pause_all, word) = self.pause_all();
        let context = Context { pause_all, word, seen, ..self.ground.context(slot) };
        self.books.context_of(run, context)
    }

    /// The context of a decision for a run that is being made.
    pub(crate) fn context_for_new(&self, id: &RunId, spec: &RunSpec, slot: Slot) -> Context {
        let (pause_all, word) = self.pause_all();
        let context = Context { pause_all, word, ..self.ground.context(slot) };
        self.books.context_for_new(id, spec, context)
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
    fn pause_all(&self) -> (PauseAll, Option<Arc<Order>>) {
        let word = self.word();
        (if word.since.is_some() { PauseAll::On } else { PauseAll::Off }, word.order.clone())
    }

    fn word(&self) -> MutexGuard<'_, Word> {
        // Nothing panics while it holds this.
        self.shared.pause_all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has everything rest, or go on, by the last order of this page of the order book. Both are durable, in one
    /// write, before any run follows.
    pub(crate) fn set_pause_all(&self, wanted: PauseAll, page: &Page) -> Result<(), Error> {
        let since = match (wanted, self.held_since()) {
            (PauseAll::On, Some(since)) => Some(since),
            (PauseAll::On, None) => Some(self.ground.world.now()),
            (PauseAll::Off, _) => None,
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
