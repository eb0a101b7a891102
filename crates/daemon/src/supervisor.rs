//! Every run that is open, each with its conductor, and what everybody in the daemon shares.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::{Input, Moment, Run, RunId, RunSpec, Slot, Time};
use outlast_store::{Error, Journal};
use outlast_wire::api::{Mode, Trouble};
use outlast_wire::layout::Layout;
use outlast_workflow::{Config, Problem};
use tokio::sync::{mpsc, oneshot, watch};

use crate::conductor::{self, Message, Snapshot};
use crate::driver::Seat;
use crate::instance;
use crate::keeper::OutputWatch;
use crate::moments::Shared;
use crate::notify::Dispatch;
use crate::operator::Operator;
use crate::resumes::Resumes;
use crate::service::{Scopes, Service};
use crate::settings::Settings;
use crate::slots::{Queueing, Slots};
use crate::triggers::Desk;
use crate::view;
use crate::watchers::Watchers;
use crate::world::{self, World};

/// How much news can wait for one run; whoever brings more waits.
const MAILBOX: usize = 64;

/// The most events one run is replayed from. Far above any loop; a bound all the same.
const MOST_EVENTS: usize = 50_000_000;

/// What everybody in the daemon shares.
pub(crate) struct Supervisor {
    pub(crate) layout: Layout,
    pub(crate) exe: PathBuf,
    pub(crate) world: World,
    pub(crate) epoch: u64,
    pub(crate) started_at: String,
    pub(crate) store: Arc<dyn Journal>,
    pub(crate) settings: Settings,
    pub(crate) slots: Slots,
    pub(crate) resumes: Resumes,
    /// Set if daemons have died too fast before this one.
    pub(crate) storm: Option<Storm>,
    pub(crate) mode: Mode,
    pub(crate) service: Service,
    pub(crate) scopes: Scopes,
    pub(crate) watchers: Watchers,
    pub(crate) operator: Operator,
    pub(crate) notices: Dispatch,
    pub(crate) shared: Shared,
    pub(crate) triggers: Desk,
    runs: Mutex<HashMap<RunId, Handle>>,
    /// Runs that cannot be read. They are shown, left alone, and read again later.
    pub(crate) quarantine: Mutex<BTreeMap<RunId, Trouble>>,
    /// Runs whose directory is being made or removed just now.
    claims: Mutex<BTreeSet<RunId>>,
    /// Set when this daemon has to go.
    leaving: watch::Sender<Option<Leaving>>,
}

/// Why a daemon goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    Asked,
    /// A service manager's daemon waits for the lock.
    Replaced,
    /// Another daemon has taken the journal.
    Fenced,
}

/// The way to a run's conductor.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) mailbox: mpsc::Sender<Message>,
    pub(crate) snapshot: watch::Receiver<Snapshot>,
    pub(crate) output: Arc<OutputWatch>,
}

/// Given back when dropped.
pub(crate) struct Claim {
    supervisor: Arc<Supervisor>,
    id: RunId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        lock(&self.supervisor.claims).remove(&self.id);
    }
}

/// What a daemon is made of.
pub(crate) struct Parts {
    pub(crate) layout: Layout,
    pub(crate) exe: PathBuf,
    pub(crate) world: World,
    pub(crate) epoch: u64,
    pub(crate) store: Arc<dyn Journal>,
    pub(crate) settings: Settings,
    pub(crate) storm: Option<Storm>,
    pub(crate) mode: Mode,
    pub(crate) service: Service,
}

/// Daemons have died too fast.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Storm {
    pub(crate) until: Time,
    pub(crate) deaths: usize,
}

impl Supervisor {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { layout, exe, world, epoch, store, settings, storm, mode, service } = parts;
        let scopes = Scopes::new(service.bus());
        let started_at = view::rfc3339(world.now());
        let leaving = watch::Sender::new(None);
        let (runs, quarantine, claims) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (slots, resumes) = (Slots::default(), Resumes::default());
        if let Ok(config) = settings.current() {
            slots.follow(&config.concurrency);
            resumes.follow(&config.supervision);
        }
        if let Some(storm) = storm {
            resumes.hold_all_until(storm.until);
        }
        Arc::new(Self {
            layout,
            exe,
            world,
            epoch,
            started_at,
            store,
            settings,
            mode,
            service,
            scopes,
            watchers: Watchers::default(),
            operator: Operator::default(),
            notices: Dispatch::default(),
            shared: Shared::default(),
            triggers: Desk::default(),
            slots,
            resumes,
            storm,
            runs,
            quarantine,
            claims,
            leaving,
        })
    }

    /// Takes over a run that is open and has nobody: its creation became durable and nobody was told.
    pub(crate) fn seat_if_open(self: &Arc<Self>, id: &RunId) {
        if self.handle(id).is_some() || !matches!(self.store.row(id), Ok(Some(row)) if row.is_open)
        {
            return;
        }
        self.take_over(id);
    }

    /// The run as its journal has it.
    pub(crate) fn replay(&self, id: &RunId) -> Result<Run, String> {
        let events = self.store.events(id, 0, MOST_EVENTS).map_err(|error| match error {
            Error::UnreadableRun { what, .. } => what,
            other => other.to_string(),
        })?;
        Run::replay(id, &events).map_err(|illegal| illegal.to_string())
    }

    /// Gives a run its conductor.
    pub(crate) fn seat(self: &Arc<Self>, seat: Seat, first: Option<Input>) -> Handle {
        let id = seat.run().id.clone();
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let (snapshot, seen) = watch::channel(Snapshot::of(seat.run()));
        let handle = Handle { mailbox, snapshot: seen, output: Arc::default() };
        let is_first = {
            let mut runs = lock(&self.runs);
            runs.insert(id.clone(), handle.clone());
            runs.len() == 1
        };
        if is_first {
            // From here on there may be something to miss.
            self.resumes.nudge();
        }
        self.watchers.note(&id);
        let conductor = conductor::Conductor::new(self.clone(), seat, handle.clone(), snapshot);
        #[expect(
            clippy::disallowed_methods,
            reason = "a conductor is owned by the table of runs and leaves it when it ends"
        )]
        let _conductor = tokio::spawn(conductor.conduct(inbox, first));
        handle
    }

    /// The right to make or remove the directory of a run that no journal knows; `None` while somebody else
    /// has it.
    pub(crate) fn claim(self: &Arc<Self>, id: &RunId) -> Option<Claim> {
        let is_free = lock(&self.claims).insert(id.clone());
        is_free.then(|| Claim { supervisor: self.clone(), id: id.clone() })
    }

    /// Nothing is left to do for this run.
    pub(crate) fn forget(&self, id: &RunId) {
        self.unseat(id);
        self.resumes.forget(id);
    }

    pub(crate) fn unseat(&self, id: &RunId) {
        lock(&self.runs).remove(id);
        self.watchers.note(id);
        self.forget_budget(id);
        self.give_back_slot(id);
        self.triggers.run_ended();
    }

    /// Whether a run may start something now.
    pub(crate) fn slot_of(&self, run: &Run) -> Slot {
        if self.resumes.is_held(&run.id) {
            return Slot::Held;
        }
        if run.holds_slot() {
            return Slot::Free;
        }
        let slot = self.take_slot(&run.id, &run.spec, run.created_at);
        if slot == Slot::Taken {
            self.resumes.has_gone_on(&run.id);
        }
        slot
    }

    /// A place for a run that has none, if it may have one now.
    pub(crate) fn take_slot(&self, id: &RunId, spec: &RunSpec, since: Time) -> Slot {
        self.slots.take(id, spec, since, world::free_memory_mb)
    }

    /// Notes what a run has come to, and asks whoever can have the place it left.
    pub(crate) fn note_slot(&self, run: &Run) {
        let is_held = self.resumes.is_held(&run.id);
        let queueing = if is_held { Queueing::StaysOut } else { Queueing::Joins };
        if let Some(next) = self.slots.note(run, queueing).filter(|next| *next != run.id) {
            self.poke(&next);
        }
        self.resumes.note(run, &self.world.boot);
    }

    /// A run that was not made needs no place.
    pub(crate) fn give_back_slot(&self, id: &RunId) {
        self.forget_budget(id);
        if let Some(next) = self.slots.forget(id) {
            self.poke(&next);
        }
    }

    pub(crate) fn waits_for_memory(&self) -> bool {
        self.slots.waits_for_memory()
    }

    /// What holds for whatever starts now; the queue follows it too.
    pub(crate) fn config(&self) -> Result<Config, Vec<Problem>> {
        let config = self.settings.current()?;
        if let Some(next) = self.slots.follow(&config.concurrency) {
            self.poke(&next);
        }
        self.resumes.follow(&config.supervision);
        if let Err(error) = self.follow_budgets(&config) {
            tracing::error!(%error, "cannot read what was spent; the budgets before hold");
        }
        Ok(config)
    }

    /// Reads the config again because somebody asked for that.
    pub(crate) fn reload(&self) {
        match self.config() {
            Ok(_) => tracing::info!("looked at the config again, as asked"),
            Err(problems) => {
                tracing::error!(
                    problems = problems.len(),
                    "the config is not right; `outlast doctor` shows why"
                );
            }
        }
        self.resumes.nudge();
    }

    /// Has a run look again. One that has no room for this has other news, after which it looks anyway.
    pub(crate) fn poke(&self, id: &RunId) {
        if let Some(handle) = self.handle(id) {
            let look = Message::Input { input: Input::Woke, done: None };
            let _has_other_news = handle.mailbox.try_send(look);
        }
    }

    /// This moment. After a leap of the clock the next daemon is left that first, so that nothing in the
    /// journal lies in its future, where no limit would count it.
    pub(crate) fn moment(&self, slot: Slot) -> Moment {
        let moment = self.world.moment(slot);
        if self.world.has_leapt()
            && let Err(error) = self.keep_clock()
        {
            tracing::error!(%error, "cannot leave the next daemon what the clock says");
        }
        moment
    }

    pub(crate) fn keep_clock(&self) -> std::io::Result<()> {
        let reading = self.world.reading();
        instance::keep_clock(&self.layout, &self.world.boot, reading)?;
        self.world.kept(reading);
        Ok(())
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
        self.resumes.forget(id);
    }

    /// True while there is something that could be missed.
    pub(crate) fn has_open(&self) -> bool {
        !lock(&self.runs).is_empty() || !lock(&self.quarantine).is_empty()
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

    pub(crate) fn trouble(&self, code: &str, message: impl Into<String>) -> Trouble {
        Trouble {
            code: code.to_owned(),
            message: message.into(),
            since: view::rfc3339(self.world.now()),
        }
    }

    /// Has the daemon go. That it was asked to is on disk before anybody can see it gone.
    pub(crate) fn leave(&self, why: Leaving) {
        if why == Leaving::Asked
            && let Err(error) = instance::mark_stopped(&self.layout)
        {
            tracing::error!(%error, "cannot say that this stop was asked for; shims will start a daemon again");
        }
        self.leaving
            .send_if_modified(|leaving| leaving.is_none() && leaving.replace(why).is_none());
    }

    pub(crate) fn leaving(&self) -> watch::Receiver<Option<Leaving>> {
        self.leaving.subscribe()
    }
}

impl Handle {
    /// Brings news and waits until the journal has it. `None` if the conductor is gone.
    pub(crate) async fn tell(&self, input: Input) -> Option<()> {
        let (done, told) = oneshot::channel();
        self.mailbox.send(Message::Input { input, done: Some(done) }).await.ok()?;
        told.await.ok()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds these, and a table is sound between any two calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
