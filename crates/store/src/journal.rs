//! What every store promises, and the plain data it is asked with and answers with.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc;

use outlast_engine::{Event, Fact, Row, RunId, StateName, Time};

use crate::{Entry, Error, Ledger, Notes, Outbox, Triggers};

/// The events that one input led to. All of them become durable, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    pub run: RunId,
    /// The number of the run's last event; 0 for a run that is to be created.
    pub expected_seq: u64,
    pub epoch: u64,
    /// Numbered from `expected_seq + 1` without a gap.
    pub events: Vec<Event>,
    /// The run's row as these events leave it.
    pub row: Row,
    /// What is to be told because of these events, to each sink on its own.
    pub outbox: Vec<Outgoing>,
    /// What the run has used up by these events.
    pub spent: Entry,
}

/// A notice on its way to one sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The notice's; with the sink it is unique.
    pub id: String,
    pub sink: String,
    /// The word that stands under `type`.
    pub kind: String,
    pub at: Time,
    /// What is told, as JSON.
    pub body: String,
}

/// Told what became of an append. It runs on the writer's thread: hand the answer on, and do not wait in it.
pub type Done = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Whether the files are at their paths, and as long as they were.
    Names,
    /// Also whether the database is sound, after another program has written to it.
    Pages,
}

/// A store of journals.
///
/// An append is refused without a trace by [`Error::is_refusal`]. After any other error it is not known
/// whether it was written: the last write before a failed sync may come back after a crash, so the run has
/// to be read again before it is written to.
pub trait Journal: Outbox + Ledger + Notes + Triggers + Send + Sync + 'static {
    /// Raises the fencing number and returns it once it is durable. A daemon that holds an older one can write
    /// nothing from here on.
    fn take_epoch(&self) -> Result<u64, Error> {
        self.take_epoch_above(0)
    }

    /// The same, with a number above `floor` too: one that was used although this store does not know of it.
    fn take_epoch_above(&self, floor: u64) -> Result<u64, Error>;

    /// The fencing number as it is.
    fn epoch(&self) -> Result<u64, Error>;

    /// Queues the append; `done` is told once it is durable, or why it is not.
    fn append(&self, append: Append, done: Done);

    /// Appends and waits for the answer.
    fn append_wait(&self, append: Append) -> Result<(), Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.append(append, Box::new(move |result| drop(answer.send(result))));
        answered.recv().unwrap_or(Err(Error::Closed))
    }

    /// Up to `most` events numbered above `after`, in order.
    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<Event>, Error>;

    /// Up to `most` events of all runs that were written after the one with this number, in the order of writing. An
    /// event that does not parse is left out, as a row is from a list. Holds a bounded number of bytes.
    fn written(&self, after: u64, most: usize) -> Result<Written, Error>;

    /// The number after which so many events were written.
    fn written_before(&self, events: usize) -> Result<u64, Error>;

    fn row(&self, run: &RunId) -> Result<Option<Row>, Error>;

    /// Where a list goes on behind this run; `None` if there is no such run.
    fn cursor(&self, run: &RunId) -> Result<Option<Cursor>, Error>;

    /// Shows `visit` each row that passes the filter, the newest run first, until it has seen enough. A row
    /// that does not parse is left out here; [`Journal::row`] says so when it is asked for, and
    /// [`Journal::check`] lists it.
    fn visit_rows(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), Error>;

    /// Shows `visit` up to `most` rows that pass the filter, from the newest run on or from behind `before`, and answers
    /// with where the list goes on; `None` after the last run. Looks at a bounded number of runs, so a page may have
    /// fewer rows than there are. `filter.most` does not count here. `visit` asks this store nothing.
    fn visit_page(
        &self,
        filter: &Filter,
        before: Option<Cursor>,
        most: usize,
        visit: &mut dyn FnMut(Row),
    ) -> Result<Option<Cursor>, Error>;

    /// The same, all at once.
    fn rows(&self, filter: &Filter) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        self.visit_rows(filter, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// The newest run of all, if there is one.
    fn newest(&self) -> Result<Option<RunId>, Error> {
        let filter = Filter { all: true, most: Some(1), ..Filter::default() };
        Ok(self.rows(&filter)?.into_iter().next().map(|row| row.id))
    }

    /// The runs that were made as this one's children, the oldest first. One that does not parse is left out,
    /// as in a list.
    fn children(&self, parent: &RunId) -> Result<Vec<Row>, Error>;

    /// Every run there is, in no order; also one whose row does not parse.
    fn run_ids(&self) -> Result<Vec<RunId>, Error>;

    /// The runs for which something still has to be done or watched, the oldest first.
    fn open_runs(&self) -> Result<Vec<RunId>, Error>;

    /// The run that a person means by `text`: the one with this id, else the newest one of this name, else
    /// the only one whose id starts like this (with three characters or more).
    fn resolve(&self, text: &str) -> Result<Resolved, Error>;

    fn counts(&self) -> Result<Counts, Error>;

    /// How many runs there are in each state, by the kind of their agent; in no order. A run whose first
    /// event does not parse is counted under no kind.
    fn census(&self) -> Result<Vec<Census>, Error> {
        let mut counted: BTreeMap<(StateName, Option<String>), u64> = BTreeMap::new();
        for row in self.rows(&Filter { all: true, ..Filter::default() })? {
            let first = self.events(&row.id, 0, 1)?;
            let agent = first.first().and_then(|event| match &event.fact {
                Fact::RunCreated { spec, .. } => Some(spec.agent.kind.clone()),
                _ => None,
            });
            *counted.entry((row.state, agent)).or_default() += 1;
        }
        let census = |((state, agent), runs)| Census { state, agent, runs };
        Ok(counted.into_iter().map(census).collect())
    }

    /// Forgets a run, its row and its events.
    fn remove(&self, run: &RunId, epoch: u64, how: Remove) -> Result<(), Error>;

    /// Everything that is wrong with the store; empty for a sound one. Reads all of it.
    fn check(&self) -> Result<Vec<Problem>, Error>;

    /// Sees to it that the journal's files are where they were opened, and puts them back if they are not. An error
    /// says that nothing is acknowledged any more.
    fn see_to_files(&self, _depth: Depth) -> Result<(), Error> {
        Ok(())
    }

    /// What was put back so since the journal was opened, in words.
    fn mended(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Events of all runs, as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    pub events: Vec<WrittenEvent>,
    /// The number of the last one that was looked at; the one that was asked with, if there is none after it.
    pub last: u64,
}

impl Written {
    /// After so many bytes of events no more are taken.
    pub(crate) const MOST_BYTES: i64 = 4 << 20;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenEvent {
    /// Higher than that of every event that was written before, of whatever run. There may be gaps.
    pub number: u64,
    pub run: RunId,
    /// The name of the run, if it has one.
    pub name: Option<String>,
    pub event: Event,
}

/// Where a list goes on: behind a run that was looked at, whether or not that is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(pub(crate) u64);

/// How much of a list one page may still take.
#[derive(Debug)]
pub(crate) struct PageRoom {
    rows: usize,
    looks: usize,
    label_bytes: usize,
}

impl PageRoom {
    /// As many runs are looked at for one page: few enough to be done within milliseconds.
    const MOST_LOOKED_AT: usize = 2000;
    /// A page ends with the row that brings its labels to this: they may be long.
    const MOST_LABEL_BYTES: usize = 256 << 10;

    pub(crate) fn new(most: usize) -> Self {
        Self { rows: most, looks: Self::MOST_LOOKED_AT, label_bytes: Self::MOST_LABEL_BYTES }
    }

    /// A run was looked at.
    pub(crate) fn look(&mut self) {
        self.looks = self.looks.saturating_sub(1);
    }

    /// A row is on the page.
    pub(crate) fn take(&mut self, row: &Row) {
        let labels: usize = row.labels.iter().map(|(k, v)| k.len() + v.len()).sum();
        self.rows = self.rows.saturating_sub(1);
        self.label_bytes = self.label_bytes.saturating_sub(labels);
    }

    /// True if the page takes no more rows.
    pub(crate) fn is_full(&self) -> bool {
        self.rows == 0 || self.looks == 0 || self.label_bytes == 0
    }
}

/// Which rows to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Also those for which there is nothing left to do.
    pub all: bool,
    pub state: Option<StateName>,
    /// All of these have to be there.
    pub labels: Vec<(String, String)>,
    /// Made by this trigger.
    pub trigger: Option<String>,
    /// Created after this run; counts for [`Journal::visit_page`] alone.
    pub after: Option<Cursor>,
    pub most: Option<usize>,
}

impl Filter {
    /// True if this row is to be listed.
    pub fn passes(&self, row: &Row) -> bool {
        let is_open_enough = self.all || row.is_open;
        let is_in_state = self.state.is_none_or(|state| state == row.state);
        let has_labels = self.labels.iter().all(|(key, value)| row.labels.get(key) == Some(value));
        let is_its = self.trigger.is_none() || self.trigger == row.trigger;
        is_open_enough && is_in_state && has_labels && is_its
    }

    pub(crate) fn limit(&self) -> usize {
        self.most.unwrap_or(usize::MAX)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    One(RunId),
    None,
    /// Some of the runs that are meant equally well, in the order of their ids.
    Many(Vec<RunId>),
}

impl Resolved {
    /// Stands for the newest run of all.
    pub const LAST: &str = "@last";
    /// So many characters of an id may stand for the whole.
    pub const SHORTEST_PREFIX: usize = 3;
    /// So many candidates are listed.
    pub(crate) const MOST: usize = 5;

    /// `candidates` are in order, and one more than [`Resolved::MOST`] of them is enough.
    pub(crate) fn among(mut candidates: Vec<RunId>) -> Self {
        candidates.truncate(Self::MOST);
        match candidates.len() {
            0 => Self::None,
            1 => Self::One(candidates.remove(0)),
            _ => Self::Many(candidates),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Going on, or about to.
    pub live: u64,
    /// Blocked: only a person sets them going again.
    pub resting: u64,
    pub ended: u64,
}

/// So many runs of one kind of agent are in one state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Census {
    pub state: StateName,
    pub agent: Option<String>,
    pub runs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remove {
    /// Only a run for which there is nothing left to do.
    Ended,
    /// Whatever is left of it.
    Any,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// `None` if it is not about a single run.
    pub run: Option<RunId>,
    pub message: String,
}
