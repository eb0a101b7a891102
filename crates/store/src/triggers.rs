//! Triggers, and what has come to them: an occurrence of a schedule, a delivery, a file, an item.
//!
//! Remembers only. Whatever comes is kept before a run is made of it, and is known for good once it is
//! kept, so that nothing that comes twice makes a second run.

use std::collections::BTreeMap;
use std::sync::mpsc;

use outlast_engine::{RunId, Time};

use crate::Error;

/// What makes runs by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub name: String,
    pub kind: String,
    /// What it is, as JSON.
    pub spec: String,
    /// How far it has come, as JSON.
    pub state: String,
    pub paused: bool,
    pub created_at: Time,
}

/// Something that has come and is to be made into a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Unique within its trigger.
    pub id: String,
    pub at: Time,
    /// What the run is told of it, as JSON.
    pub body: String,
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    Made { run: RunId },
    Skipped { why: String },
    Refused { why: String },
}

impl Settlement {
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Made { .. } => "made",
            Self::Skipped { .. } => "skipped",
            Self::Refused { .. } => "refused",
        }
    }

    pub(crate) fn run(&self) -> Option<&RunId> {
        match self {
            Self::Made { run } => Some(run),
            Self::Skipped { .. } | Self::Refused { .. } => None,
        }
    }

    pub(crate) fn why(&self) -> Option<&str> {
        match self {
            Self::Made { .. } => None,
            Self::Skipped { why } | Self::Refused { why } => Some(why),
        }
    }
}

/// One thing that is to be remembered, whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerChange {
    Add(Trigger),
    /// What is `None` stays as it is.
    Update {
        trigger: String,
        spec: Option<String>,
        state: Option<String>,
        paused: Option<bool>,
    },
    /// With all that has come to it.
    Remove {
        trigger: String,
    },
    /// What has come, and how far the trigger has come with it. What is known already is left as it is.
    Keep {
        trigger: String,
        deliveries: Vec<Delivery>,
        state: Option<String>,
    },
    /// What has come, unless the same was kept under another name a while ago. What is kept leaves its mark.
    KeepUnlessMarked {
        trigger: String,
        delivery: Delivery,
        /// What is the same about two deliveries; unlike every delivery's id.
        mark: String,
        /// For how long the mark counts.
        within_ms: u64,
    },
    Settle {
        trigger: String,
        id: String,
        settled: Settlement,
    },
    /// Forgets the oldest that are settled, but for so many.
    Forget {
        trigger: String,
        but: u64,
    },
    /// A change, and a note of the daemon's that is written with it or not at all.
    Noted {
        change: Box<Self>,
        note: String,
        value: String,
    },
}

impl TriggerChange {
    pub fn trigger(&self) -> &str {
        match self {
            Self::Add(trigger) => &trigger.name,
            Self::Update { trigger, .. }
            | Self::Remove { trigger }
            | Self::Keep { trigger, .. }
            | Self::KeepUnlessMarked { trigger, .. }
            | Self::Settle { trigger, .. }
            | Self::Forget { trigger, .. } => trigger,
            Self::Noted { change, .. } => change.trigger(),
        }
    }
}

/// How many deliveries of a trigger are in which state, and how many of its runs are open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    pub open: u64,
    pub waiting: u64,
    pub made: u64,
    pub skipped: u64,
    pub refused: u64,
    /// The newest that was made.
    pub last_made: Option<(Time, RunId)>,
    /// The newest that was refused, and why.
    pub last_refused: Option<(Time, String)>,
    /// True if nothing that came after the newest refused one has been made into a run.
    pub is_refusing: bool,
}

/// Told how many of the deliveries were new, 0 where there were none to keep. It runs on the writer's thread.
pub type Changed = Box<dyn FnOnce(Result<u64, Error>) + Send>;

/// A store of triggers.
pub trait Triggers {
    /// Queues the change; `done` is told once it is durable, or why it is not.
    fn change_trigger(&self, change: TriggerChange, epoch: u64, done: Changed);

    /// Changes and waits for the answer.
    fn change_trigger_wait(&self, change: TriggerChange, epoch: u64) -> Result<u64, Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.change_trigger(change, epoch, Box::new(move |result| drop(answer.send(result))));
        answered.recv().unwrap_or(Err(Error::Closed))
    }

    /// Up to `most` triggers after this name, by name, each with how many of its deliveries wait. No name comes
    /// before the empty one.
    fn triggers_page(&self, after: &str, most: usize) -> Result<Vec<(Trigger, u64)>, Error>;

    /// All of them, by name.
    fn triggers(&self) -> Result<Vec<Trigger>, Error> {
        Ok(self.triggers_page("", usize::MAX)?.into_iter().map(|(trigger, _)| trigger).collect())
    }

    fn trigger(&self, name: &str) -> Result<Option<Trigger>, Error>;

    /// Up to `most` deliveries of which no run has been made yet, the oldest first.
    fn deliveries(&self, trigger: &str, most: usize) -> Result<Vec<Delivery>, Error>;

    fn is_known(&self, trigger: &str, id: &str) -> Result<bool, Error>;

    /// The run that was made of a delivery, also if that run has been removed since.
    fn made_of(&self, trigger: &str, id: &str) -> Result<Option<RunId>, Error>;

    /// The tallies of all triggers from the first of these names to the last; one to which nothing has come and
    /// that has no open run may be missing.
    fn tallies(&self, first: &str, last: &str) -> Result<BTreeMap<String, Tally>, Error>;

    fn tally(&self, trigger: &str) -> Result<Tally, Error> {
        Ok(self.tallies(trigger, trigger)?.remove(trigger).unwrap_or_default())
    }

    /// The run that has this key.
    fn run_of_key(&self, key: &str) -> Result<Option<RunId>, Error>;

    /// The newest run of this trigger that has not been removed, and its name.
    fn newest_run_of(&self, trigger: &str) -> Result<Option<(RunId, Option<String>)>, Error>;

    /// How many runs of this trigger are open.
    fn open_runs_of(&self, trigger: &str) -> Result<u64, Error>;
}
