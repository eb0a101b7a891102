//! Triggers: they make runs without a person.
//!
//! A trigger's source reports what has come (a time of a schedule, a delivery, a file, an item), and the store keeps
//! that before anything is made of it. One worker makes a run of each kept delivery, under a key of the trigger's
//! name and the delivery's id, and only then settles it. So a daemon that dies in between leaves one run. Nothing
//! here decides about runs once they are made. The README of this folder has a drawing.

pub(crate) mod add;
mod agenda;
pub(crate) mod cron;
mod failure;
pub(crate) mod folder;
pub(crate) mod make;
pub(crate) mod poll;
mod polls;
pub(crate) mod progress;
pub(crate) mod run_of;
pub(crate) mod schedule;
pub(crate) mod view;
mod watch;
pub(crate) mod webhook;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, Weak};

use futures_util::future::BoxFuture;
use outlast_engine::Time;
use outlast_store::{Delivery, Error, Trigger, TriggerChange};
use outlast_wire::api::{CreateRun, Created, Missed, Overlap, TriggerSource, Trouble};
use outlast_wire::codes::Code;
use outlast_wire::hook;
use tokio::sync::{Notify, Semaphore, oneshot};

use crate::ground::Ground;
use crate::occasion::Occasion;
use crate::refusal::{Answer, Refusal};
use crate::sync::lock;
use agenda::{Agenda, Line};
use progress::Progress;
use schedule::Schedule;
use webhook::Condition;

pub(crate) use worker::start;

/// Bodies of webhooks that are held at once; each has up to a MiB.
const MOST_BODIES: usize = 16;

/// Triggers that are read from the store at once when a daemon starts.
const LOAD_PAGE: usize = 1000;

/// The way to make runs. A trigger reaches the runs by this alone, and makes none itself.
pub(crate) trait MakeRuns: Send + Sync {
    /// Makes the run that is asked for, or finds it.
    fn make(
        self: Arc<Self>,
        run: CreateRun,
        occasion: Occasion,
    ) -> BoxFuture<'static, Answer<Created>>;

    /// Whether such a run could be made now, and what is to be said of it. Blocks.
    fn try_out(&self, run: &CreateRun, occasion: &Occasion) -> Answer<Vec<String>>;

    /// While everything is paused nothing is made, polled or let in; what comes is kept.
    fn is_paused(&self) -> bool;
}

/// The triggers of this daemon, and what they stand on.
pub(crate) struct Triggers {
    pub(crate) ground: Arc<Ground>,
    pub(crate) table: TriggerTable,
    maker: Weak<dyn MakeRuns>,
}

impl Triggers {
    pub(crate) fn new(ground: Arc<Ground>, maker: Weak<dyn MakeRuns>) -> Arc<Self> {
        Arc::new(Self { ground, table: TriggerTable::default(), maker })
    }

    /// Who makes the runs; refused by a daemon that is about to go.
    fn maker(&self) -> Answer<Arc<dyn MakeRuns>> {
        let gone =
            || Refusal::new(Code::DaemonLeaving, "this daemon is stopping").hint("try again");
        self.maker.upgrade().ok_or_else(gone)
    }

    /// True while everything is paused.
    fn is_paused(&self) -> bool {
        self.maker.upgrade().is_none_or(|maker| maker.is_paused())
    }
}

/// All triggers, as the whole daemon sees them.
pub(crate) struct TriggerTable {
    /// In boxes, since a map has room for as many again as it holds.
    table: Mutex<BTreeMap<Arc<str>, Box<Entry>>>,
    /// Those that cannot be read. They are shown and left alone.
    unreadable: Mutex<BTreeMap<String, (String, Trouble)>>,
    /// Those that the worker has to look at, whatever their time is.
    news: Mutex<Line>,
    /// Those that wait for a run of theirs to end.
    queued: Mutex<BTreeSet<Arc<str>>>,
    wake: Notify,
    pub(crate) bodies: Semaphore,
}

/// A trigger in memory. What its runs are (environment, task, loop file) stays in the store until one is made:
/// a hundred thousand environments are no business of the memory.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) brief: Arc<Brief>,
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
    pub(crate) stuck: Option<CreateBackoff>,
    /// What is wrong and does not keep it from that: its loop file, for which the last good one stands in.
    pub(crate) note: Option<Trouble>,
    /// Its command runs just now.
    pub(crate) is_polling: bool,
}

/// What was asked for, without what its runs are.
pub(crate) struct Brief {
    /// Of the order that added it; a trigger from before orders had ids has none.
    id: Option<String>,
    pub(crate) name: Arc<str>,
    pub(crate) source: TriggerSource,
    overlap: Option<Overlap>,
    missed: Option<Missed>,
    /// The command or the task, on one line, cut to what a list shows.
    pub(crate) what: String,
}

/// Runs cannot be made just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreateBackoff {
    pub(crate) trouble: Trouble,
    pub(crate) failures: u32,
    pub(crate) retry_at: Time,
}

impl Entry {
    /// Tells it from another that had or will have its name. One from before triggers had ids goes by when it was
    /// added.
    pub(crate) fn id(&self) -> String {
        self.brief.id.clone().unwrap_or_else(|| format!("added-{}", self.created_at.0))
    }

    pub(crate) fn overlap(&self) -> Overlap {
        let usual = match self.brief.source {
            TriggerSource::Schedule { .. } => Overlap::Skip,
            _ => Overlap::Parallel,
        };
        self.brief.overlap.unwrap_or(usual)
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.brief.name
    }

    pub(crate) fn missed(&self) -> Missed {
        self.brief.missed.unwrap_or(Missed::Once)
    }
}

impl Default for TriggerTable {
    fn default() -> Self {
        Self {
            table: Mutex::default(),
            unreadable: Mutex::default(),
            news: Mutex::default(),
            queued: Mutex::default(),
            wake: Notify::new(),
            bodies: Semaphore::new(MOST_BODIES),
        }
    }
}

impl TriggerTable {
    /// Takes over what the store has, page by page, and says when each trigger is to be looked at first.
    fn load(&self, ground: &Ground) -> Result<Agenda, Error> {
        let mut agenda = Agenda::default();
        let mut after = String::new();
        loop {
            let page = ground.store.triggers_page(&after, LOAD_PAGE)?;
            for (trigger, waiting) in &page {
                match add::read(trigger) {
                    Ok(entry) => {
                        let entry = Entry { waiting: *waiting, ..entry };
                        agenda.put(entry.name(), worker::first_look(&entry));
                        self.put(entry);
                    }
                    Err(what) => self.quarantine(ground, trigger, what),
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == LOAD_PAGE => after.clone_from(&last.name),
                _ => return Ok(agenda),
            }
        }
    }

    fn quarantine(&self, ground: &Ground, trigger: &Trigger, what: String) {
        tracing::error!(trigger = trigger.name, %what, "cannot read this trigger; it starts no runs");
        let trouble = ground.trouble(Code::Unreadable, what);
        lock(&self.unreadable).insert(trigger.name.clone(), (trigger.kind.clone(), trouble));
    }

    fn put(&self, entry: Entry) {
        lock(&self.table).insert(entry.name().clone(), Box::new(entry));
    }

    /// Takes in a trigger that is new, or that replaces one: what is counted of that one goes on.
    pub(crate) fn insert(&self, entry: Entry) {
        let name = entry.name().clone();
        let mut table = lock(&self.table);
        let entry = match table.get(&name) {
            Some(there) => Entry {
                waiting: there.waiting,
                filtered: there.filtered,
                settled: there.settled,
                ..entry
            },
            None => entry,
        };
        table.insert(name.clone(), Box::new(entry));
        drop(table);
        self.look_at(&name);
    }

    pub(crate) fn forget(&self, name: &str) {
        let gone = lock(&self.table).remove(name);
        lock(&self.unreadable).remove(name);
        if let Some(gone) = gone {
            self.let_go(gone.name());
            self.look_at(gone.name());
        }
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        lock(&self.table).get(name).map(|entry| (**entry).clone())
    }

    /// The names of the triggers that take deliveries of a webhook.
    pub(crate) fn webhooks(&self) -> Vec<String> {
        let table = lock(&self.table);
        let webhooks = table
            .values()
            .filter(|entry| matches!(entry.brief.source, TriggerSource::Webhook { .. }));
        webhooks.map(|entry| entry.name().to_string()).collect()
    }

    /// Up to `most` triggers after this name, by name.
    fn page(&self, after: &str, most: usize) -> Vec<Known> {
        let after = (Bound::Excluded(after), Bound::Unbounded);
        let table = lock(&self.table);
        let entries = table.range::<str, _>(after).take(most);
        let mut page: Vec<Known> =
            entries.map(|(_, entry)| Known::Readable(entry.clone())).collect();
        drop(table);
        let unreadable = lock(&self.unreadable);
        let unreadable = unreadable.range::<str, _>(after).take(most);
        page.extend(unreadable.map(|(name, (kind, trouble))| Known::Unreadable {
            name: name.clone(),
            kind: kind.clone(),
            trouble: trouble.clone(),
        }));
        page.sort_by(|one, other| one.name().cmp(other.name()));
        page.truncate(most);
        page
    }

    fn known(&self, name: &str) -> Option<Known> {
        let readable = lock(&self.table).get(name).cloned().map(Known::Readable);
        readable.or_else(|| {
            let unreadable = lock(&self.unreadable);
            let (kind, trouble) = unreadable.get(name)?.clone();
            Some(Known::Unreadable { name: name.to_owned(), kind, trouble })
        })
    }

    /// Changes what is known of a trigger, if it is still there.
    pub(crate) fn with<T>(&self, name: &str, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        lock(&self.table).get_mut(name).map(|entry| change(entry))
    }

    /// Has the worker look at this trigger now.
    pub(crate) fn look_at(&self, name: &Arc<str>) {
        lock(&self.news).push(name);
        self.wake();
    }

    fn take_news(&self) -> Option<Arc<str>> {
        lock(&self.news).pop()
    }

    /// Has the worker look at the clock, and at whether it may work, again.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// From here on the end of a run of this trigger has the worker look at it.
    fn queue(&self, name: &Arc<str>) {
        lock(&self.queued).insert(name.clone());
    }

    fn let_go(&self, name: &Arc<str>) {
        lock(&self.queued).remove(name);
    }

    /// A run of this trigger is over.
    pub(crate) fn run_ended(&self, trigger: &str) {
        let queued = lock(&self.queued).take(trigger);
        if let Some(name) = queued {
            self.look_at(&name);
        }
    }

    /// Runs may be over of which nothing was heard.
    pub(crate) fn runs_may_have_ended(&self) {
        let queued = std::mem::take(&mut *lock(&self.queued));
        queued.iter().for_each(|name| self.look_at(name));
    }
}

/// A trigger, as far as it can be read.
enum Known {
    Readable(Box<Entry>),
    Unreadable { name: String, kind: String, trouble: Trouble },
}

impl Known {
    fn name(&self) -> &str {
        match self {
            Self::Readable(entry) => entry.name(),
            Self::Unreadable { name, .. } => name,
        }
    }
}

/// Keeps what has come, and how far its trigger has come with it; says how many were new. The sender may go
/// away meanwhile: what is kept is also made.
pub(crate) async fn keep(
    triggers: &Arc<Triggers>,
    trigger: &str,
    deliveries: Vec<Delivery>,
    progress: Option<Progress>,
) -> Result<u64, Error> {
    let (trigger, state) = (trigger.to_owned(), progress.map(Progress::json));
    keep_by(triggers, TriggerChange::Keep { trigger, deliveries, state }).await
}

/// Keeps what has come, unless the same came under another id before; says how many were new.
pub(crate) async fn keep_unless_marked(
    triggers: &Arc<Triggers>,
    trigger: &str,
    delivery: Delivery,
    mark: String,
) -> Result<u64, Error> {
    let (trigger, within_ms) = (trigger.to_owned(), webhook::SAME_BODY_MS);
    let change = TriggerChange::KeepUnlessMarked { trigger, delivery, mark, within_ms };
    keep_by(triggers, change).await
}

async fn keep_by(triggers: &Arc<Triggers>, change: TriggerChange) -> Result<u64, Error> {
    let (done, kept) = oneshot::channel();
    let (told, name) = (triggers.clone(), change.trigger().to_owned());
    let answer = move |result: Result<u64, Error>| {
        if let Ok(new @ 1..) = result {
            hook!("daemon.occurrence-kept");
            let known = told.table.with(&name, |entry| {
                entry.waiting += new;
                entry.name().clone()
            });
            if let Some(name) = known {
                told.table.look_at(&name);
            }
        }
        let _gone = done.send(result);
    };
    triggers.ground.store.change_trigger(change, triggers.ground.epoch, Box::new(answer));
    kept.await.unwrap_or(Err(Error::Closed))
}

/// Has a change written, and waits until it is.
pub(crate) async fn change(triggers: &Triggers, change: TriggerChange) -> Result<(), Error> {
    let (done, changed) = oneshot::channel();
    let answer = move |result: Result<u64, Error>| {
        let _gone = done.send(result);
    };
    triggers.ground.store.change_trigger(change, triggers.ground.epoch, Box::new(answer));
    changed.await.unwrap_or(Err(Error::Closed)).map(drop)
}
