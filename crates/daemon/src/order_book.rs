//! The order book: the last orders to the daemon itself, which are `pause --all`, `resume --all` and changes of
//! triggers.
//!
//! The write that carries an order out also records it, under the id that its client chose. So an order that is
//! repeated is found here and not carried out again, whatever another client has ordered since. Orders to a run are
//! in that run's journal. Decides nothing about which caller may give an order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::{By, Order, Time};
use outlast_wire::api::{ByView, OrderView};
use outlast_wire::codes::Code;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::view::rfc3339;

/// The name under which the store has the book.
pub(crate) const NOTE: &str = "orders";

/// How many orders are remembered. Clients ask again for seconds and people give few of these, so one that comes
/// again after as many others does not come from a client that still waits for its answer.
const REMEMBERED: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verb {
    PauseAll,
    /// And end the attempts that are alive.
    PauseAllNow,
    ResumeAll,
    AddTrigger,
    RemoveTrigger,
    PauseTrigger,
    ResumeTrigger,
}

impl Verb {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::PauseAll => "pause_all",
            Self::PauseAllNow => "pause_all_now",
            Self::ResumeAll => "resume_all",
            Self::AddTrigger => "add_trigger",
            Self::RemoveTrigger => "remove_trigger",
            Self::PauseTrigger => "pause_trigger",
            Self::ResumeTrigger => "resume_trigger",
        }
    }

    fn is_for_all(self) -> bool {
        match self {
            Self::PauseAll | Self::PauseAllNow | Self::ResumeAll => true,
            Self::AddTrigger | Self::RemoveTrigger | Self::PauseTrigger | Self::ResumeTrigger => {
                false
            }
        }
    }
}

/// An order that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Taken {
    pub(crate) id: String,
    pub(crate) verb: Verb,
    /// The name of the trigger that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trigger: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trigger_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<By>,
    pub(crate) at_ms: u64,
    /// A digest of what it says; absent in a book from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) said: Option<String>,
}

impl Taken {
    pub(crate) fn view(&self) -> OrderView {
        OrderView {
            id: self.id.clone(),
            verb: self.verb.word().to_owned(),
            trigger: self.trigger.clone(),
            trigger_id: self.trigger_id.clone(),
            by: self.by.as_ref().map(by_view),
            at: rfc3339(Time(self.at_ms)),
        }
    }

    /// When it was given and by whom, for people: `2026-11-17T06:00:00Z by user 1000`.
    pub(crate) fn when_and_who(&self) -> String {
        let OrderView { at, by, .. } = self.view();
        by.map_or_else(|| at.clone(), |by| format!("{at} by {by}"))
    }

    /// As the journals of runs have it.
    fn order(&self) -> Order {
        Order { id: Some(self.id.clone()), by: self.by.clone(), ..Order::default() }
    }
}

pub(crate) fn by_view(by: &By) -> ByView {
    match by {
        By::User { uid, via } => ByView::User { uid: *uid, via: via.clone() },
        By::Run { run } => ByView::Run { run: run.0.clone() },
        By::Daemon => ByView::Daemon,
    }
}

#[derive(Default)]
pub(crate) struct Book {
    /// Held by the client whose order is being taken. One at a time: such orders are rare, and each is decided by
    /// what the one before has left.
    turn: tokio::sync::Mutex<()>,
    page: Mutex<Page>,
}

/// The book as it is, or as it is to become. The oldest is first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Page(Arc<VecDeque<Taken>>);

impl Page {
    /// What the store has.
    pub(crate) fn read(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json).map(|all| Self(Arc::new(all)))
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(&*self.0).expect("plain data")
    }

    /// The `pause --all` that holds.
    pub(crate) fn word(&self) -> Option<Arc<Order>> {
        self.last_word().map(|taken| Arc::new(taken.order()))
    }

    fn last_word(&self) -> Option<&Taken> {
        self.0.iter().rev().find(|taken| taken.verb.is_for_all())
    }

    /// The page after one more order. The `pause --all` that holds is not forgotten.
    fn with(&self, taken: Taken) -> Self {
        let mut all = (*self.0).clone();
        all.push_back(taken);
        let word = all.iter().rposition(|taken| taken.verb.is_for_all());
        if all.len() > REMEMBERED {
            all.remove(usize::from(word == Some(0)));
        }
        Self(Arc::new(all))
    }
}

/// The right to take an order.
pub(crate) struct Turn<'b> {
    book: &'b Book,
    _held: tokio::sync::MutexGuard<'b, ()>,
}

impl Turn<'_> {
    /// The book with this order. It counts once the store has it and the book is turned to it.
    pub(crate) fn page_with(&self, taken: Taken) -> Page {
        self.book.lock().with(taken)
    }

    pub(crate) fn turn_to(&self, page: Page) {
        *self.book.lock() = page;
    }
}

impl Book {
    pub(crate) fn open_at(&self, page: Page) {
        *self.lock() = page;
    }

    pub(crate) async fn turn(&self) -> Turn<'_> {
        Turn { _held: self.turn.lock().await, book: self }
    }

    /// The order under this id, if it was taken before. The same id for something else is another order, and refused.
    pub(crate) fn find(
        &self,
        id: &str,
        verb: Verb,
        trigger: Option<&str>,
        said: Option<&str>,
    ) -> Result<Option<Taken>, Refusal> {
        let page = self.page();
        let Some(taken) = page.0.iter().find(|taken| taken.id == id) else { return Ok(None) };
        let says_the_same = taken.said.is_none() || taken.said.as_deref() == said;
        if taken.verb == verb && taken.trigger.as_deref() == trigger && says_the_same {
            return Ok(Some(taken.clone()));
        }
        let (was, when) = (taken.verb.word(), taken.when_and_who());
        let message = format!("the id {id:?} is that of another order: {was}, given {when}");
        Err(Refusal::new(Code::IdConflict, message).hint("choose a new id for each order"))
    }

    pub(crate) fn last_word(&self) -> Option<Taken> {
        self.page().last_word().cloned()
    }

    /// The last order of this kind about this trigger.
    pub(crate) fn last_of(&self, verb: Verb, trigger_id: &str) -> Option<Taken> {
        let is_it =
            |taken: &&Taken| taken.verb == verb && taken.trigger_id.as_deref() == Some(trigger_id);
        self.page().0.iter().rev().find(is_it).cloned()
    }

    pub(crate) fn views(&self) -> Vec<OrderView> {
        self.page().0.iter().map(Taken::view).collect()
    }

    fn page(&self) -> Page {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Page> {
        // Nothing panics while it holds this, and a page is sound between any two calls.
        self.page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(id: &str, verb: Verb) -> Taken {
        let (trigger, trigger_id, by) = (None, None, Some(By::User { uid: 7, via: None }));
        Taken { id: id.to_owned(), verb, trigger, trigger_id, by, at_ms: 0, said: None }
    }

    #[test]
    fn the_word_that_holds_outlasts_any_number_of_other_orders() {
        let mut page = Page::default().with(taken("p", Verb::PauseAll));
        for number in 0..REMEMBERED * 2 {
            page = page.with(taken(&format!("t{number}"), Verb::PauseTrigger));
        }
        assert_eq!((page.0.len(), page.0[0].id.as_str()), (REMEMBERED, "p"));
        page = page.with(taken("r", Verb::ResumeAll)).with(taken("last", Verb::PauseTrigger));
        assert_eq!(page.0.len(), REMEMBERED);
        assert!(page.0.iter().all(|taken| taken.id != "p"), "it holds no longer");
        let again = Page::read(&page.json()).expect("it was written by us");
        assert_eq!((again.0 == page.0, again.word()), (true, page.word()));
    }
}
