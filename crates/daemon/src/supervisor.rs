//! Every run that is open, each with its conductor, and what everybody in the daemon shares.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::{Input, Moment, Run, RunId, RunSpec, Slot, StopMode, Time};
use outlast_store::{Error, Journal};
use outlast_wire::api::{Mode, Trouble};
use outlast_wire::layout::Layout;
use outlast_workflow::{Config, Problem};
use tokio::sync::{mpsc, oneshot, watch};

use crate::conductor::{self, Message, Snapshot};
use crate::driver::Seat;
use crate::instance;
use crate::keeper::OutputWatch;
use crate::lineage::Lineage;
use crate::moments::Shared;
use crate::notify::Dispatch;
use crate::operator::Operator;
use crate::order_book::Book;
use crate::resumes::Resumes;
use crate::service::{Scopes, Service};
use crate::settings::Settings;
use crate::slots::{Queueing, Slots};
use crate::strays::Strays;
use crate::tokens::Tokens;
use crate::triggers::Desk;
use crate::view;
use crate::waiter::{self, Needs};
use crate::watchers::Watchers;
use crate::world::{self, World};

/// How much news can wait for one run; whoever brings more waits.
const MAILBOX: usize = 64;

/// So many events are read at a time when a run is replayed.
const REPLAY_PAGE: usize = 10_000;

/// What everybody in the daemon shares.
pub(crate) struct Supervisor {
    pub(crate) layout: Layout,
    pub(crate) exe: PathBuf,
    pub(crate) build: &'static str,
    pub(crate) world: World,
    pub(crate) epoch: u64,
    pub(crate) lineage: Lineage,
    pub(crate) started_at: String,
    /// When this daemon came to be, as a time that runs are compared with.
    pub(crate) began: Time,
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
    pub(crate) orders: Book,
    pub(crate) triggers: Desk,
    pub(crate) tokens: Tokens,
    /// Directories that the journal does not know.
    pub(crate) strays: Strays,
    pub(crate) needs: Needs,
    runs: Mutex<HashMap<RunId, Handle>>,
    /// Runs that cannot be read. They are shown, left alone, and read again later.
    pub(crate) quarantine: Mutex<BTreeMap<RunId, Trouble>>,
    /// Runs whose directory is being made or removed just now.
    claims: Mutex<BTreeSet<RunId>>,
    /// Where clients find us just now.
    socket: Mutex<PathBuf>,
    /// Set when this daemon has to go.
    leaving: watch::Sender<Option<Leaving>>,
}

/// Why a daemon goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    Asked,
    /// Another daemon waits for the lock: a service manager's, or one of another build.
    Replaced,
    /// Another daemon has taken the journal.
    Fenced,
    /// The journal's files are no longer ours: the next daemon serves what is in their place.
    Parted,
}

/// The way to a run's conductor.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) mailbox: mpsc::Sender<Message>,
    pub(crate) snapshot: watch::Receiver<Snapshot>,
    pub(crate) output: Arc<OutputWatch>,
    /// The order to stop that was given last, for a conductor that is kept from its mailbox by a full disk.
    pub(crate) stop_asked: Arc<watch::Sender<Option<StopMode>>>,
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
    pub(crate) build: &'static str,
    pub(crate) world: World,
    pub(crate) epoch: u64,
    pub(crate) lineage: Lineage,
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
        let Parts {
            layout,
            exe,
            build,
            world,
            epoch,
            lineage,
            store,
            settings,
            storm,
            mode,
            service,
        } = parts;
        let scopes = Scopes::new(service.bus());
        let socket = Mutex::new(layout.socket());
        let began = world.now();
        let started_at = view::rfc3339(began);
        let leaving = watch::Sender::new(None);
        let tokens = Tokens::new(layout.token_key());
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
            build,
            world,
            epoch,
            lineage,
            started_at,
            began,
            store,
            settings,
            mode,
            service,
            scopes,
            watchers: Watchers::default(),
            operator: Operator::default(),
            notices: Dispatch::default(),
            shared: Shared::default(),
            orders: Book::default(),
            triggers: Desk::default(),
            tokens,
            strays: Strays::default(),
            needs: Needs::default(),
            slots,
            resumes,
            storm,
            runs,
            quarantine,
            claims,
            socket,
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
        let page = |after| {
            self.store.events(id, after, REPLAY_PAGE).map_err(|error| match error {
                Error::UnreadableRun { what, .. } => what,
                other => other.to_string(),
            })
        };
        let mut run = Run::replay(id, &page(0)?).map_err(|illegal| illegal.to_string())?;
        // However long the journal is, a page of it is all that is held.
        loop {
            let events = page(run.seq())?;
            for event in &events {
                run = run.apply(event).map_err(|illegal| illegal.to_string())?;
            }
            if events.len() < REPLAY_PAGE {
                return Ok(run);
            }
        }
    }

    /// Gives a run its conductor.
    pub(crate) fn seat(self: &Arc<Self>, seat: Seat, first: Option<Input>) -> Handle {
        let id = seat.run().id.clone();
        self.needs.note(seat.run());
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        let (snapshot, seen) = watch::channel(Snapshot::of(seat.run()));
        let (output, stop_asked) = (Arc::default(), Arc::default());
        let handle = Handle { mailbox, snapshot: seen, output, stop_asked };
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
        self.needs.forget(id);
        self.unseat(id);
        self.resumes.forget(id);
    }

    pub(crate) fn unseat(&self, id: &RunId) {
        let gone = lock(&self.runs).remove(id);
        self.watchers.note(id);
        self.forget_budget(id);
        self.give_back_slot(id);
        match gone {
            Some(handle) => {
                if let Some(origin) = &handle.snapshot.borrow().run.spec.origin {
                    self.triggers.run_ended(&origin.trigger);
                }
            }
            None => self.triggers.runs_may_have_ended(),
        }
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
        self.needs.note(run);
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
    pub(crate) fn config(&self) -> Result<Arc<Config>, Vec<Problem>> {
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

    /// This moment. If the line of time has moved, the next daemon is left that first, so that it goes on on the same.
    pub(crate) fn moment(&self, slot: Slot) -> Moment {
        let moment = self.world.moment(slot);
        if self.world.is_news()
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
        self.needs.forget(id);
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
        if why == Leaving::Asked {
            if let Err(error) = instance::mark_stopped(&self.layout) {
                tracing::error!(%error, "cannot say that this stop was asked for; shims will start a daemon again");
            }
            // A daemon that takes our place finds the waiter, and one that does not come is started by it.
            waiter::end(&self.layout);
        }
        self.leaving
            .send_if_modified(|leaving| leaving.is_none() && leaving.replace(why).is_none());
    }

    /// Notes where clients find us from now on.
    pub(crate) fn listens_at(&self, socket: PathBuf) {
        *lock(&self.socket) = socket;
    }

    pub(crate) fn socket(&self) -> PathBuf {
        lock(&self.socket).clone()
    }

    pub(crate) fn leaving(&self) -> watch::Receiver<Option<Leaving>> {
        self.leaving.subscribe()
    }
}

impl Handle {
    /// Brings news and waits until the journal has it; answers with the run as the news left it. `None` if the
    /// conductor is gone.
    pub(crate) async fn tell(&self, input: Input) -> Option<Arc<Run>> {
        let (done, told) = oneshot::channel();
        self.mailbox.send(Message::Input { input, done: Some(done) }).await.ok()?;
        told.await.ok()
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds these, and a table is sound between any two calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
