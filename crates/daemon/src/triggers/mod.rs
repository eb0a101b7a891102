//! Triggers: what makes runs by itself.
//!
//! A trigger's source says what has come (an occurrence of a schedule, a delivery, a file, an item), and that
//! is kept before anything is made of it. One worker makes a run of each thing that was kept, under a key that
//! the trigger and the occurrence give, and only then settles it: whoever dies in between, there is one run.
//! Nothing here decides about runs once they are made.

pub(crate) mod add;
pub(crate) mod cron;
mod failure;
pub(crate) mod folder;
pub(crate) mod make;
pub(crate) mod poll;
pub(crate) mod progress;
pub(crate) mod schedule;
pub(crate) mod view;
pub(crate) mod webhook;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::Time;
use outlast_store::{Delivery, Error, Trigger, TriggerChange};
use outlast_wire::api::{AddTrigger, Missed, Overlap, TriggerSource, Trouble};
use outlast_wire::hook;
use tokio::sync::{Notify, Semaphore, oneshot};

use crate::supervisor::Supervisor;
use progress::Progress;
use schedule::Schedule;
use webhook::Condition;

pub(crate) use worker::start;

/// Bodies of webhooks that are held at once; each has up to a MiB.
const MOST_BODIES: usize = 16;

/// All triggers, as everybody in the daemon sees them.
pub(crate) struct Desk {
    table: Mutex<BTreeMap<String, Entry>>,
    /// Those that cannot be read. They are shown and left alone.
    unreadable: Mutex<BTreeMap<String, (String, Trouble)>>,
    wake: Notify,
    /// Somebody waits for a run of the same trigger to end.
    holds: AtomicBool,
    pub(crate) bodies: Semaphore,
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) spec: Arc<AddTrigger>,
    pub(crate) schedule: Option<Arc<Schedule>>,
    pub(crate) filters: Arc<[Condition]>,
    pub(crate) paused: bool,
    pub(crate) created_at: Time,
    pub(crate) progress: Progress,
    /// Deliveries of which no run has been made yet.
    pub(crate) waiting: u64,
    /// Since the daemon started.
    pub(crate) filtered: u64,
    pub(crate) settled: u64,
    /// What keeps it from hearing what comes.
    pub(crate) trouble: Option<Trouble>,
    /// What keeps it from making runs of that.
    pub(crate) stuck: Option<Stuck>,
    /// What is wrong and does not keep it from that: its loop file, for which the last good one stands in.
    pub(crate) note: Option<Trouble>,
    /// Its command runs just now.
    pub(crate) is_polling: bool,
}

/// Runs cannot be made just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub(crate) trouble: Trouble,
    pub(crate) failures: u32,
    pub(crate) retry_at: Time,
}

impl Entry {
    pub(crate) fn overlap(&self) -> Overlap {
        let usual = match self.spec.source {
            TriggerSource::Schedule { .. } => Overlap::Skip,
            _ => Overlap::Parallel,
        };
        self.spec.overlap.unwrap_or(usual)
    }

    pub(crate) fn missed(&self) -> Missed {
        self.spec.missed.unwrap_or(Missed::Once)
    }
}

impl Default for Desk {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            unreadable: Mutex::default(),
            wake: Notify::new(),
            holds: AtomicBool::new(false),
            bodies: Semaphore::new(MOST_BODIES),
        }
    }
}

impl Desk {
    /// Takes over what the store has.
    fn load(&self, supervisor: &Supervisor) -> Result<(), Error> {
        for trigger in supervisor.store.triggers()? {
            let waiting = supervisor.store.tally(&trigger.name)?.waiting;
            match add::read(&trigger) {
                Ok(entry) => self.insert(&trigger.name, Entry { waiting, ..entry }),
                Err(what) => self.quarantine(supervisor, &trigger, what),
            }
        }
        Ok(())
    }

    fn quarantine(&self, supervisor: &Supervisor, trigger: &Trigger, what: String) {
        tracing::error!(trigger = trigger.name, %what, "cannot read this trigger; it is left alone");
        let trouble = supervisor.trouble("unreadable", what);
        lock(&self.unreadable).insert(trigger.name.clone(), (trigger.kind.clone(), trouble));
    }

    pub(crate) fn insert(&self, name: &str, entry: Entry) {
        lock(&self.table).insert(name.to_owned(), entry);
    }

    pub(crate) fn forget(&self, name: &str) {
        lock(&self.table).remove(name);
        lock(&self.unreadable).remove(name);
        self.wake();
    }

    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.table).keys().cloned().collect()
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        lock(&self.table).get(name).cloned()
    }

    fn entries(&self) -> Vec<Entry> {
        lock(&self.table).values().cloned().collect()
    }

    fn unreadable(&self) -> BTreeMap<String, (String, Trouble)> {
        lock(&self.unreadable).clone()
    }

    /// Changes what is known of a trigger, if it is still there.
    pub(crate) fn with<T>(&self, name: &str, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        lock(&self.table).get_mut(name).map(change)
    }

    /// Has the worker look at everything again.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// A run is over. Only whoever waits for that has to know.
    pub(crate) fn run_ended(&self) {
        if self.holds.load(Ordering::Relaxed) {
            self.wake();
        }
    }
}

/// While everything is paused nothing is made, polled or let in; what comes is kept.
pub(crate) fn is_held(supervisor: &Supervisor) -> bool {
    supervisor.is_held()
}

/// Keeps what has come, and how far its trigger has come thereby; says how many were new. Whoever asked may go
/// away meanwhile: what is kept is also made.
pub(crate) async fn keep(
    supervisor: &Arc<Supervisor>,
    trigger: &str,
    deliveries: Vec<Delivery>,
    progress: Option<Progress>,
) -> Result<u64, Error> {
    let (done, kept) = oneshot::channel();
    let change = TriggerChange::Keep {
        trigger: trigger.to_owned(),
        deliveries,
        state: progress.map(Progress::json),
    };
    let (desk, name) = (supervisor.clone(), trigger.to_owned());
    let answer = move |result: Result<u64, Error>| {
        if let Ok(new @ 1..) = result {
            hook!("daemon.occurrence-kept");
            desk.triggers.with(&name, |entry| entry.waiting += new);
            desk.triggers.wake();
        }
        let _gone = done.send(result);
    };
    supervisor.store.change_trigger(change, supervisor.epoch, Box::new(answer));
    kept.await.unwrap_or(Err(Error::Closed))
}

/// Has a change written, and waits until it is.
pub(crate) async fn change(supervisor: &Supervisor, change: TriggerChange) -> Result<(), Error> {
    let (done, changed) = oneshot::channel();
    let answer = move |result: Result<u64, Error>| {
        let _gone = done.send(result);
    };
    supervisor.store.change_trigger(change, supervisor.epoch, Box::new(answer));
    changed.await.unwrap_or(Err(Error::Closed)).map(drop)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds these, and a table is sound between any two calls.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
