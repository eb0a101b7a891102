//! The table of open runs, and what they share: slots, budgets, restarts, notices, triggers.
//!
//! Starts no task. `conductor` gives a run its task and enters the run here; `reconciler` decides which run gets one.

mod contexts;
mod inbox;
mod pacing;
mod quarantine;
pub(crate) mod restored;
mod sessions;
pub(crate) mod strays;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use outlast_engine::{Input, Run, RunId, RunSpec, Slot, Time};
use outlast_store::Entry;
use outlast_wire::api::Trouble;
use outlast_wire::codes::Code;
use outlast_wire::words::TroubleCode;
use outlast_workflow::{Config, Refused};
use tokio::sync::Notify;

use crate::ground::Ground;
use crate::mailbox::{Handle, Message};
use crate::notify::Dispatch;
use crate::operator::Operator;
use crate::operator::readiness::{self, Obstacle};
use crate::order_book::Book;
use crate::restarts::Restarts;
use crate::sync::lock;
use crate::triggers::Triggers;
use crate::waiter::Needs;
use crate::watchers::Watchers;
use crate::world;
use crate::world::zones::Zones;
use contexts::Shared;
use outlast_conduct::books::Books;
use outlast_conduct::budgets::Budgets;
use outlast_conduct::slots::{Full, Slots};
use sessions::Sessions;
use strays::Strays;

/// The open runs, and what they share.
pub(crate) struct Supervisor {
    pub(crate) ground: Arc<Ground>,
    pub(crate) books: Books,
    pub(crate) restarts: Arc<Restarts>,
    /// Set if daemons have died too fast before this one.
    pub(crate) storm: Option<Storm>,
    pub(crate) watchers: Watchers,
    pub(crate) operator: Arc<Operator>,
    pub(crate) notices: Dispatch,
    pub(crate) shared: Shared,
    pub(crate) orders: Book,
    pub(crate) triggers: Arc<Triggers>,
    /// Directories that the journal does not know.
    pub(crate) strays: Strays,
    pub(crate) needs: Needs,
    pub(crate) sessions: Sessions,
    runs: Mutex<HashMap<RunId, Handle>>,
    /// Runs that cannot be read. They are shown, left alone, and read again later.
    pub(crate) quarantine: Mutex<BTreeMap<RunId, Trouble>>,
    /// Runs whose directory is being made or removed just now.
    claims: Mutex<BTreeSet<RunId>>,
    /// Rung whenever a claim is given back.
    claim_freed: Notify,
}

/// How long a client's order waits for a directory that another task looks at or changes.
const CLAIM_WITHIN: Duration = Duration::from_secs(5);

/// Given back when dropped.
pub(crate) struct Claim {
    supervisor: Arc<Supervisor>,
    id: RunId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.supervisor.claims).remove(&self.id);
        self.supervisor.claim_freed.notify_waiters();
    }
}

/// Daemons have died too fast.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storm {
    pub(crate) until: Time,
    pub(crate) deaths: usize,
}

impl Supervisor {
    pub(crate) fn new(ground: Arc<Ground>, storm: Option<Storm>) -> Arc<Self> {
        let (runs, quarantine, claims) = (Mutex::default(), Mutex::default(), Mutex::default());
        let budgets = Budgets::by(Arc::new(Zones));
        let (slots, restarts) = (Slots::default(), Arc::new(Restarts::default()));
        let books = Books { slots, budgets };
        if let Ok(config) = ground.settings.current() {
            books.slots.follow(&config.concurrency);
            restarts.follow(&config.supervision);
        }
        if let Some(storm) = storm {
            restarts.delay_all_until(storm.until);
        }
        Arc::new_cyclic(|us: &Weak<Self>| Self {
            notices: Dispatch::new(ground.clone(), us.clone()),
            triggers: Triggers::new(ground.clone(), us.clone()),
            ground,
            watchers: Watchers::default(),
            operator: Arc::default(),
            shared: Shared::default(),
            orders: Book::default(),
            strays: Strays::default(),
            needs: Needs::default(),
            sessions: Sessions::default(),
            books,
            restarts,
            storm,
            runs,
            quarantine,
            claims,
            claim_freed: Notify::new(),
        })
    }

    /// Notes a run that has a conductor from here on.
    pub(crate) fn enter(&self, run: &Run, handle: Handle) {
        self.needs.note(run);
        self.sessions.note(run, &self.ground.world.boot);
        let is_first = {
            let mut runs = lock(&self.runs);
            runs.insert(run.id.clone(), handle);
            runs.len() == 1
        };
        if is_first {
            // From here on there may be something to miss.
            self.restarts.nudge();
        }
        self.watchers.note(&run.id);
    }

    /// The right to make or remove the directory of a run that no journal knows; `None` while another task
    /// has it.
    pub(crate) fn claim(self: &Arc<Self>, id: &RunId) -> Option<Claim> {
        let is_free = lock(&self.claims).insert(id.clone());
        is_free.then(|| Claim { supervisor: self.clone(), id: id.clone() })
    }

    /// The same right, once the task that has it is through: a look at a directory takes a moment. `None` if that
    /// task takes too long.
    pub(crate) async fn claim_soon(self: &Arc<Self>, id: &RunId) -> Option<Claim> {
        let claimed = async {
            loop {
                // Listens before it asks, so that nothing is given back unheard in between.
                let mut freed = std::pin::pin!(self.claim_freed.notified());
                freed.as_mut().enable();
                if let Some(claim) = self.claim(id) {
                    return claim;
                }
                freed.await;
            }
        };
        tokio::time::timeout(CLAIM_WITHIN, claimed).await.ok()
    }

    /// Nothing is left to do for this run.
    pub(crate) fn forget(&self, id: &RunId) {
        self.needs.forget(id);
        self.unseat(id);
        self.restarts.forget(id);
    }

    pub(crate) fn unseat(&self, id: &RunId) {
        let gone = lock(&self.runs).remove(id);
        self.sessions.forget(id);
        self.watchers.note(id);
        self.give_back(id);
        match gone {
            Some(handle) => {
                if let Some(origin) = &handle.snapshot.borrow().run.spec.origin {
                    self.triggers.table.run_ended(&origin.trigger);
                }
            }
            None => self.triggers.table.runs_may_have_ended(),
        }
    }

    /// Whether a run may start something now.
    pub(crate) fn slot_of(&self, run: &Run) -> Slot {
        let is_paced = self.restarts.is_pending(&run.id);
        let slot = self.books.slot_of(run, is_paced, world::free_memory_mb);
        if slot == Slot::Taken {
            self.restarts.started(&run.id);
        }
        slot
    }

    /// A place for a run that has none, if it may have one now.
    pub(crate) fn take_slot(&self, id: &RunId, spec: &RunSpec, since: Time) -> Slot {
        self.books.slots.take(id, spec, since, world::free_memory_mb)
    }

    /// What keeps a run that is queued from a place; `None` if it only has its turn after a restart.
    pub(crate) fn full(&self, run: &Run) -> Option<Full> {
        let is_paced = self.restarts.is_pending(&run.id);
        (!is_paced).then(|| self.books.slots.full(&run.spec, world::free_memory_mb))
    }

    /// Notes what a run has come to and what it has used up by that, and has those look again whom that concerns.
    pub(crate) fn note(&self, run: &Run, spent: Entry) {
        self.needs.note(run);
        let is_paced = self.restarts.is_pending(&run.id);
        self.books.note(run, is_paced, spent).iter().for_each(|id| self.poke(id));
        self.restarts.note(run, &self.ground.world.boot);
    }

    /// A run that is gone, or was not made, takes no slot and nothing of any budget.
    pub(crate) fn give_back(&self, id: &RunId) {
        self.books.forget(id).iter().for_each(|id| self.poke(id));
    }

    pub(crate) fn waits_for_memory(&self) -> bool {
        self.books.slots.waits_for_memory()
    }

    /// What holds for whatever starts now; the queue follows it too.
    pub(crate) fn config(&self) -> Result<Arc<Config>, Refused> {
        let config = self.ground.settings.current()?;
        if let Some(next) = self.books.slots.follow(&config.concurrency) {
            self.poke(&next);
        }
        self.restarts.follow(&config.supervision);
        if let Err(error) = self.follow_budgets(&config) {
            tracing::error!(%error, "cannot read what was spent; the budgets before hold");
        }
        Ok(config)
    }

    /// Reads the config again because a client asked for that.
    pub(crate) fn reload(&self) {
        match self.config() {
            Ok(_) => tracing::info!("looked at the config again, as asked"),
            Err(refused) => {
                tracing::error!(
                    problems = refused.errors.len(),
                    "the config is not valid; outlast doctor shows why"
                );
            }
        }
        self.restarts.nudge();
    }

    /// Has a run look again. One that has no room for this has other news, after which it looks anyway.
    pub(crate) fn poke(&self, id: &RunId) {
        if let Some(handle) = self.handle(id) {
            let look = Message::Input { input: Input::Woke, done: None };
            let _has_other_news = handle.mailbox.try_send(look);
        }
    }

    pub(crate) fn handle(&self, id: &RunId) -> Option<Handle> {
        lock(&self.runs).get(id).cloned()
    }

    pub(crate) fn handles(&self) -> Vec<(RunId, Handle)> {
        lock(&self.runs).iter().map(|(id, handle)| (id.clone(), handle.clone())).collect()
    }

    pub(crate) fn quarantined(&self) -> BTreeMap<RunId, Trouble> {
        lock(&self.quarantine).clone()
    }

    pub(crate) fn release(&self, id: &RunId) {
        lock(&self.quarantine).remove(id);
        self.needs.forget(id);
        self.restarts.forget(id);
    }

    /// True while there is something that could be missed.
    pub(crate) fn has_open(&self) -> bool {
        !lock(&self.runs).is_empty() || !lock(&self.quarantine).is_empty()
    }

    /// What keeps this daemon from new work; nothing if it is ready. May wait for the disk.
    pub(crate) fn obstacles(&self) -> Vec<Obstacle> {
        readiness::obstacles(&self.ground, &self.operator.readiness, || self.suspended())
    }

    /// What keeps a run from the journal, if a run waits for it.
    fn suspended(&self) -> Option<Trouble> {
        self.handles().into_iter().find_map(|(_, handle)| {
            let trouble = handle.snapshot.borrow().trouble.clone()?;
            let is_of_journal =
                trouble.code == Code::DiskFull || trouble.code == TroubleCode::JournalUnwritable;
            is_of_journal.then_some(trouble)
        })
    }

    pub(crate) fn is_claimed(&self, id: &RunId) -> bool {
        lock(&self.claims).contains(id)
    }

    /// What keeps the daemon from knowing or writing this run's state, if something does.
    pub(crate) fn trouble_of(&self, id: &RunId) -> Option<Trouble> {
        let quarantined = lock(&self.quarantine).get(id).cloned();
        quarantined
            .or_else(|| self.handle(id).and_then(|handle| handle.snapshot.borrow().trouble.clone()))
    }
}
