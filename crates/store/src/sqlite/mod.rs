//! The journal in a SQLite file.
//!
//! One thread writes, and commits together whatever has come in while the last commit was on its way to
//! the disk. Readers never wait for it. What cannot be read is refused before SQLite gets to touch it.
//!
//! In reading order: a `job` goes to the `writer`, which opens a `transaction` for a group of them and has `write`,
//! `outbox` and `triggers` write each one; `read` answers questions; `columns` says how data stands in tables. Then the
//! files: `create` and `inspect` come before SQLite, `schema` opens and migrates, `checkpoint` empties the log, and
//! `place`, `mend` and `rescue` see to files that were taken away.

mod job;

mod writer;

mod transaction;
mod write;

mod outbox;
mod triggers;

mod read;

mod columns;

mod create;
mod inspect;
mod schema;

mod copies;
mod file;

mod checkpoint;
mod mend;
mod opened;
mod rescue;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use outlast_engine::{Event, Row, RunId};
use rusqlite::Connection;

use self::job::{Work, WriteJob};
use self::read::{Reader, Readers};
use self::writer::{Mended, Writer};
use crate::{
    Account, Append, Census, Counts, Cursor, Depth, Done, Error, Filter, Journal, Ledger, Notes,
    Problem, Remove, Resolved, Used, Written,
};
use crate::{Changed, Delivery, Tally, Trigger, TriggerChange, Triggers};

/// Jobs that may wait for the writer before the next caller has to wait as well.
const JOBS: usize = 4096;

pub struct Sqlite {
    jobs: Option<SyncSender<WriteJob>>,
    writer: Option<JoinHandle<()>>,
    readers: Arc<Readers>,
    commits: Arc<AtomicU64>,
    mended: Mended,
}

impl Sqlite {
    /// Opens the journal at `path`, or makes an empty one if there is none.
    pub fn open(path: &Path) -> Result<Self, Error> {
        create::if_missing(path)?;
        inspect::look(path)?;
        Self::start(path, schema::open_checked(path)?)
    }

    /// Says whether this build can read the journal at `path`, which another process may be writing. Changes nothing.
    /// One that is not there is made when it is opened.
    pub fn look(path: &Path) -> Result<(), Error> {
        if !path.try_exists().map_err(|error| Error::from_io(path, &error))? {
            return Ok(());
        }
        inspect::look_beside_its_writer(path)?;
        Readers::new(path).with(Reader::look)
    }

    fn start(path: &Path, connection: Connection) -> Result<Self, Error> {
        let commits = Arc::new(AtomicU64::new(0));
        let (jobs, inbox) = mpsc::sync_channel(JOBS);
        let readers = Arc::new(Readers::new(path));
        let mended = Mended::default();
        let writer = Writer::new(
            path,
            connection,
            Arc::clone(&readers),
            Arc::clone(&commits),
            Arc::clone(&mended),
        )?;
        let writer = spawn("store-writer", move || writer.run(&inbox))?;
        Ok(Self { jobs: Some(jobs), writer: Some(writer), readers, commits, mended })
    }

    /// How often this handle has committed since it was opened.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn send(&self, job: WriteJob) {
        let jobs = self.jobs.as_ref().expect("jobs are taken until drop");
        if let Err(mpsc::SendError(job)) = jobs.send(job) {
            (job.reply)(Err(Error::Closed));
        }
    }

    /// Asks a question of files that are ours: if they are not at their paths, the writer puts them back first.
    fn read<T>(&self, ask: impl FnOnce(&Reader) -> Result<T, Error>) -> Result<T, Error> {
        let lent = match self.readers.lend() {
            Err(Error::Unsaved { .. }) => {
                self.ask(Work::Look(Depth::Names))?;
                self.readers.lend()
            }
            lent => lent,
        }?;
        ask(lent.reader())
    }

    /// Has the work done and waits for the epoch under which it was.
    fn ask(&self, work: Work) -> Result<u64, Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.send(WriteJob { work, reply: Box::new(move |result| drop(answer.send(result))) });
        answered.recv().unwrap_or(Err(Error::Closed))
    }
}

impl Journal for Sqlite {
    fn take_epoch_above(&self, floor: u64) -> Result<u64, Error> {
        self.ask(Work::TakeEpoch { floor })
    }

    fn epoch(&self) -> Result<u64, Error> {
        self.read(Reader::epoch)
    }

    fn append(&self, append: Append, done: Done) {
        let reply = Box::new(|result: Result<u64, Error>| done(result.map(drop)));
        self.send(WriteJob { work: Work::Append(Box::new(append)), reply });
    }

    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<Event>, Error> {
        self.read(|reader| reader.events(run, after, most))
    }

    fn written(&self, after: u64, most: usize) -> Result<Written, Error> {
        self.read(|reader| reader.written(after, most))
    }

    fn written_before(&self, events: usize) -> Result<u64, Error> {
        self.read(|reader| reader.written_before(events))
    }

    fn cursor(&self, run: &RunId) -> Result<Option<Cursor>, Error> {
        self.read(|reader| reader.cursor(run))
    }

    fn row(&self, run: &RunId) -> Result<Option<Row>, Error> {
        self.read(|reader| reader.row(run))
    }

    fn visit_rows(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.read(|reader| reader.visit_rows(filter, visit))
    }

    fn visit_page(
        &self,
        filter: &Filter,
        before: Option<Cursor>,
        most: usize,
        visit: &mut dyn FnMut(Row),
    ) -> Result<Option<Cursor>, Error> {
        self.read(|reader| reader.visit_page(filter, before, most, visit))
    }

    fn children(&self, parent: &RunId) -> Result<Vec<Row>, Error> {
        self.read(|reader| reader.children(parent))
    }

    fn run_ids(&self) -> Result<Vec<RunId>, Error> {
        self.read(Reader::run_ids)
    }

    fn open_runs(&self) -> Result<Vec<RunId>, Error> {
        self.read(Reader::open_runs)
    }

    fn resolve(&self, text: &str) -> Result<Resolved, Error> {
        self.read(|reader| reader.resolve(text))
    }

    fn counts(&self) -> Result<Counts, Error> {
        self.read(Reader::counts)
    }

    fn census(&self) -> Result<Vec<Census>, Error> {
        self.read(Reader::census)
    }

    fn remove(&self, run: &RunId, epoch: u64, how: Remove) -> Result<(), Error> {
        self.ask(Work::Remove { run: run.clone(), epoch, how }).map(drop)
    }

    fn check(&self) -> Result<Vec<Problem>, Error> {
        self.read(Reader::check)
    }

    fn see_to_files(&self, depth: Depth) -> Result<(), Error> {
        self.ask(Work::Look(depth)).map(drop)
    }

    fn mended(&self) -> Vec<String> {
        self.mended.lock().expect("nothing panics while it holds this").clone()
    }
}

impl Ledger for Sqlite {
    fn accounts(&self, since_slot: u64) -> Result<Vec<Account>, Error> {
        self.read(|reader| reader.accounts(since_slot))
    }

    fn accounts_by_slot(&self, since_slot: u64) -> Result<Vec<(u64, Account)>, Error> {
        self.read(|reader| reader.accounts_by_slot(since_slot))
    }

    fn used_by(&self, run: &RunId) -> Result<Used, Error> {
        self.read(|reader| reader.used_by(run))
    }
}

impl Notes for Sqlite {
    fn note(&self, name: &str) -> Result<Option<String>, Error> {
        self.read(|reader| reader.note(name))
    }

    fn set_notes(&self, notes: &[(&str, Option<&str>)], epoch: u64) -> Result<(), Error> {
        let owned =
            |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.map(str::to_owned));
        self.ask(Work::Notes { notes: notes.iter().map(owned).collect(), epoch }).map(drop)
    }
}

impl Triggers for Sqlite {
    fn change_trigger(&self, change: TriggerChange, epoch: u64, done: Changed) {
        self.send(WriteJob {
            work: Work::Trigger { change: Box::new(change), epoch },
            reply: done,
        });
    }

    fn triggers_page(&self, after: &str, most: usize) -> Result<Vec<(Trigger, u64)>, Error> {
        self.read(|reader| reader.triggers_page(after, most))
    }

    fn trigger(&self, name: &str) -> Result<Option<Trigger>, Error> {
        self.read(|reader| reader.trigger(name))
    }

    fn deliveries(&self, trigger: &str, most: usize) -> Result<Vec<Delivery>, Error> {
        self.read(|reader| reader.deliveries(trigger, most))
    }

    fn is_known(&self, trigger: &str, id: &str) -> Result<bool, Error> {
        self.read(|reader| reader.is_known(trigger, id))
    }

    fn made_of(&self, trigger: &str, id: &str) -> Result<Option<RunId>, Error> {
        self.read(|reader| reader.made_of(trigger, id))
    }

    fn tallies(&self, first: &str, last: &str) -> Result<BTreeMap<String, Tally>, Error> {
        self.read(|reader| reader.tallies(first, last))
    }

    fn run_of_key(&self, key: &str) -> Result<Option<RunId>, Error> {
        self.read(|reader| reader.run_of_key(key))
    }

    fn newest_run_of(&self, trigger: &str) -> Result<Option<(RunId, Option<String>)>, Error> {
        self.read(|reader| reader.newest_run_of(trigger))
    }

    fn open_runs_of(&self, trigger: &str) -> Result<u64, Error> {
        self.read(|reader| reader.open_runs_of(trigger))
    }
}

impl Drop for Sqlite {
    /// Waits until everything that was sent is written.
    fn drop(&mut self) {
        self.readers.close();
        drop(self.jobs.take());
        let Some(writer) = self.writer.take() else { return };
        // The last handle may go in a `done`, on the writer's own thread, which cannot wait for itself.
        if writer.thread().id() != thread::current().id() {
            drop(writer.join());
        }
    }
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(body);
    spawned.map_err(|error| Error::Io(format!("no thread for {name}: {error}")))
}

#[cfg(test)]
mod tests;
