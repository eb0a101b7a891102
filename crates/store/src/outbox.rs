//! What every store promises of notices that are on their way, and of the sinks they go to.
//!
//! Rows come with the append that they tell of (`Append::outbox`). Here they are found, told apart and
//! settled. Nothing here knows what a sink is, or what time it is.

use std::sync::mpsc;

use outlast_engine::{RunId, Time};

use crate::{Done, Error};

/// A notice that its sink has not had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub id: String,
    pub run: RunId,
    /// The word that stands under `type`.
    pub kind: String,
    pub at: Time,
    pub body: String,
    /// How often its sink has answered that it will not have it.
    pub tries: u32,
    /// Not before then.
    pub next_at: Option<Time>,
    /// Since when it is being refused.
    pub since: Option<Time>,
    /// Those of one batch are told together, under this id.
    pub batch: Option<String>,
}

/// What became of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Delivered,
    /// Its sink does not want it.
    Muted,
    GivenUp,
}

impl Settled {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Muted => "muted",
            Self::GivenUp => "given_up",
        }
    }
}

/// Something to remember of notices or of a sink. `ids` are notices of that sink; one that is settled already
/// stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A delivery also ends whatever was wrong with the sink.
    Settle { sink: String, ids: Vec<String>, how: Settled, at: Time, problem: Option<String> },
    /// The sink is there, and will not have these.
    Refused { sink: String, ids: Vec<String>, at: Time, next_at: Time, problem: String },
    /// The sink cannot be told anything just now.
    Failed { sink: String, ids: Vec<String>, at: Time, next_at: Time, problem: String },
    /// Nothing is told to the sink until a person enables it.
    Disable { sink: String, at: Time, problem: String },
    /// Whatever was wrong with the sink is forgotten; what waits for it may go at once.
    Enable { sink: String },
    /// These are told together from here on.
    Batch { sink: String, ids: Vec<String>, batch: String },
    /// Whatever waits for the sink and is older than `before`, and all but the newest `keep`.
    GiveUp { sink: String, before: Time, keep: u64, at: Time, problem: String },
    /// Forgets what was settled before `before`, and all but the newest `keep`.
    Prune { before: Time, keep: u64 },
}

/// How telling a sink goes, if it does not go well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkHealth {
    pub failures: u32,
    pub since: Time,
    /// Not before then.
    pub next_at: Option<Time>,
    pub problem: Option<String>,
    pub disabled_at: Option<Time>,
}

/// All that is known of a sink here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkState {
    pub sink: String,
    pub pending: u64,
    pub delivered: u64,
    pub given_up: u64,
    /// When the last of these was given up.
    pub given_up_at: Option<Time>,
    /// How many of those that wait its sink has refused, since when, and with which words the last time.
    pub refused: u64,
    pub refused_since: Option<Time>,
    pub refusal: Option<String>,
    /// When the oldest that waits was written.
    pub oldest_at: Option<Time>,
    pub health: Option<SinkHealth>,
}

/// The notices of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoticeCounts {
    pub pending: u64,
    pub delivered: u64,
    pub muted: u64,
    pub given_up: u64,
    /// The last thing that went wrong with one that waits or was given up.
    pub problem: Option<String>,
}

/// What waits for a sink in all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: u64,
    /// The first moment at which some of what may not go yet may go.
    pub next_at: Option<Time>,
}

/// The outbox of a store. Every change is fenced, durable when it is answered, and safe to make twice.
pub trait Outbox {
    /// Queues the change; `done` is told once it is durable, or why it is not.
    fn change(&self, epoch: u64, change: Change, done: Done);

    /// Makes a change and waits for the answer.
    fn change_wait(&self, epoch: u64, change: Change) -> Result<(), Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.change(epoch, change, Box::new(move |result| drop(answer.send(result))));
        answered.recv().unwrap_or(Err(Error::Closed))
    }

    /// The sinks for which something waits.
    fn waiting_sinks(&self) -> Result<Vec<String>, Error>;

    /// What may be told this sink at `now`: of each run no notice before an earlier one, those that were
    /// refused least often first, then the oldest. Up to `most`.
    fn waiting(&self, sink: &str, now: Time, most: usize) -> Result<Vec<Waiting>, Error>;

    /// Those that are to be told together, the oldest first.
    fn batch(&self, sink: &str, batch: &str) -> Result<Vec<Waiting>, Error>;

    fn backlog(&self, sink: &str, now: Time) -> Result<Backlog, Error>;

    /// How many times the sink was told something after this.
    fn told_since(&self, sink: &str, after: Time) -> Result<u64, Error>;

    fn sink_health(&self, sink: &str) -> Result<Option<SinkHealth>, Error>;

    /// Every sink that something was ever told or is to be told, as far back as is remembered.
    fn sink_states(&self) -> Result<Vec<SinkState>, Error>;

    fn notice_counts(&self, run: &RunId) -> Result<NoticeCounts, Error>;
}
