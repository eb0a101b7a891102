//! The journal in a SQLite file.
//!
//! One thread writes, and commits together whatever has come in while the last commit was on its way to
//! the disk. Readers never wait for it. What cannot be read is refused before SQLite gets to touch it.

mod checkpoint;
mod columns;
mod file;
mod outbox;
mod read;
mod schema;
mod triggers;
mod write;
mod writer;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};

use outlast_engine::{Event, Row, RunId};
use rusqlite::Connection;

use self::checkpoint::Checkpointer;
use self::read::{Reader, Readers};
use self::writer::{Order, Work, Writer};
use crate::{
    Account, Amount, Append, Census, Counts, Done, Error, Filter, Journal, Ledger, Notes, Problem,
    Remove, Resolved,
};
use crate::{Changed, Delivery, Tally, Trigger, TriggerChange, Triggers};

/// Orders that may wait for the writer before whoever gives another has to wait as well.
const ORDERS: usize = 4096;

pub struct Sqlite {
    orders: Option<SyncSender<Order>>,
    writer: Option<JoinHandle<()>>,
    readers: Readers,
    commits: Arc<AtomicU64>,
}

impl Sqlite {
    /// Opens the journal at `path`, or makes an empty one if there is none.
    pub fn open(path: &Path) -> Result<Self, Error> {
        file::make_if_missing(path)?;
        file::look(path)?;
        Self::start(path, schema::open_checked(path)?)
    }

    fn start(path: &Path, connection: Connection) -> Result<Self, Error> {
        let commits = Arc::new(AtomicU64::new(0));
        let (orders, inbox) = mpsc::sync_channel(ORDERS);
        let writer =
            Writer::new(path, connection, Checkpointer::start(path)?, Arc::clone(&commits))?;
        let writer = spawn("store-writer", move || writer.run(&inbox))?;
        Ok(Self {
            orders: Some(orders),
            writer: Some(writer),
            readers: Readers::new(path),
            commits,
        })
    }

    /// How often this handle has committed since it was opened.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn order(&self, order: Order) {
        let orders = self.orders.as_ref().expect("orders are taken until drop");
        if let Err(mpsc::SendError(order)) = orders.send(order) {
            (order.reply)(Err(Error::Closed));
        }
    }

    /// Has the work done and waits for the epoch under which it was.
    fn ask(&self, work: Work) -> Result<u64, Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.order(Order { work, reply: Box::new(move |result| drop(answer.send(result))) });
        answered.recv().unwrap_or(Err(Error::Closed))
    }
}

impl Journal for Sqlite {
    fn take_epoch(&self) -> Result<u64, Error> {
        self.ask(Work::TakeEpoch)
    }

    fn append(&self, append: Append, done: Done) {
        let reply = Box::new(|result: Result<u64, Error>| done(result.map(drop)));
        self.order(Order { work: Work::Append(Box::new(append)), reply });
    }

    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<Event>, Error> {
        self.readers.with(|reader| reader.events(run, after, most))
    }

    fn row(&self, run: &RunId) -> Result<Option<Row>, Error> {
        self.readers.with(|reader| reader.row(run))
    }

    fn visit_rows(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.readers.with(|reader| reader.visit_rows(filter, visit))
    }

    fn children(&self, parent: &RunId) -> Result<Vec<Row>, Error> {
        self.readers.with(|reader| reader.children(parent))
    }

    fn open_runs(&self) -> Result<Vec<RunId>, Error> {
        self.readers.with(Reader::open_runs)
    }

    fn resolve(&self, text: &str) -> Result<Resolved, Error> {
        self.readers.with(|reader| reader.resolve(text))
    }

    fn counts(&self) -> Result<Counts, Error> {
        self.readers.with(Reader::counts)
    }

    fn census(&self) -> Result<Vec<Census>, Error> {
        self.readers.with(Reader::census)
    }

    fn remove(&self, run: &RunId, epoch: u64, how: Remove) -> Result<(), Error> {
        self.ask(Work::Remove { run: run.clone(), epoch, how }).map(drop)
    }

    fn check(&self) -> Result<Vec<Problem>, Error> {
        self.readers.with(Reader::check)
    }
}

impl Ledger for Sqlite {
    fn accounts(&self, since_day: u64) -> Result<Vec<Account>, Error> {
        self.readers.with(|reader| reader.accounts(since_day))
    }

    fn used_by(&self, run: &RunId) -> Result<Amount, Error> {
        self.readers.with(|reader| reader.used_by(run))
    }
}

impl Notes for Sqlite {
    fn note(&self, name: &str) -> Result<Option<String>, Error> {
        self.readers.with(|reader| reader.note(name))
    }

    fn set_note(&self, name: &str, value: Option<&str>, epoch: u64) -> Result<(), Error> {
        let (name, value) = (name.to_owned(), value.map(str::to_owned));
        self.ask(Work::Note { name, value, epoch }).map(drop)
    }
}

impl Triggers for Sqlite {
    fn change_trigger(&self, change: TriggerChange, epoch: u64, done: Changed) {
        self.order(Order { work: Work::Trigger { change: Box::new(change), epoch }, reply: done });
    }

    fn triggers(&self) -> Result<Vec<Trigger>, Error> {
        self.readers.with(Reader::triggers)
    }

    fn deliveries(&self, trigger: &str, most: usize) -> Result<Vec<Delivery>, Error> {
        self.readers.with(|reader| reader.deliveries(trigger, most))
    }

    fn is_known(&self, trigger: &str, id: &str) -> Result<bool, Error> {
        self.readers.with(|reader| reader.is_known(trigger, id))
    }

    fn tally(&self, trigger: &str) -> Result<Tally, Error> {
        self.readers.with(|reader| reader.tally(trigger))
    }

    fn run_of_key(&self, key: &str) -> Result<Option<RunId>, Error> {
        self.readers.with(|reader| reader.run_of_key(key))
    }

    fn open_runs_of(&self, trigger: &str) -> Result<u64, Error> {
        self.readers.with(|reader| reader.open_runs_of(trigger))
    }
}

impl Drop for Sqlite {
    /// Waits until everything that was ordered is written.
    fn drop(&mut self) {
        self.readers.close();
        drop(self.orders.take());
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
mod tests {
    use outlast_engine::{BootId, Moment, Run, RunSpec, Time, create};
    use serde_json::{from_value, json};

    use super::*;
    use crate::Entry;

    fn creation(n: usize, task: &str) -> Append {
        let spec: RunSpec = from_value(json!({
            "task": task, "agent": { "kind": "exec", "command": ["true"] }, "dir": "/", "labels": {}, "limits": {},
            "retry": { "max_attempts": 1, "initial_backoff_ms": 0, "max_backoff_ms": 0 },
        }))
        .unwrap();
        let run = RunId(format!("aaaa{n:08}"));
        let events = create(&run, spec, &Moment::new(Time(1), BootId("boot".to_owned())));
        let row = Run::replay(&run, &events).unwrap().row();
        Append {
            run,
            expected_seq: 0,
            epoch: 0,
            events,
            row,
            outbox: Vec::new(),
            spent: Entry::default(),
        }
    }

    #[test]
    fn a_full_disk_refuses_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("outlast.db");
        drop(Sqlite::open(&path).unwrap());
        let connection = schema::open_checked(&path).unwrap();
        connection.query_row("PRAGMA max_page_count = 40", [], |_| Ok(())).unwrap();
        let store = Sqlite::start(&path, connection).unwrap();
        let task = "x".repeat(2000);
        let answers: Vec<_> = (0..100).map(|n| store.append_wait(creation(n, &task))).collect();
        let fitted = answers.iter().take_while(|answer| answer.is_ok()).count();
        assert!((1..100).contains(&fitted), "{fitted} fitted");
        assert!(
            answers[fitted..].iter().any(|answer| matches!(answer, Err(Error::Full(_)))),
            "{answers:?}"
        );
        assert_eq!(
            store.open_runs().unwrap().len(),
            answers.iter().filter(|answer| answer.is_ok()).count()
        );
        assert_eq!(store.check().unwrap(), []);
        store.remove(&RunId("aaaa00000000".to_owned()), 0, Remove::Any).unwrap();
        store.append_wait(creation(200, "small")).unwrap();
    }

    #[test]
    fn what_goes_wrong_with_a_group_is_told_to_all_of_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("outlast.db");
        let store = Sqlite::open(&path).unwrap();
        let outsider = Connection::open(&path).unwrap();
        outsider
            .execute_batch(
                "CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'no'); END",
            )
            .unwrap();
        let (answers, answered) = mpsc::channel();
        for n in 0..10 {
            let answers = answers.clone();
            store.append(creation(n, "x"), Box::new(move |answer| answers.send(answer).unwrap()));
        }
        drop(answers);
        assert!(answered.iter().all(|answer| matches!(answer, Err(Error::Io(_)))));
        assert_eq!(store.open_runs().unwrap(), []);
        outsider.execute_batch("DROP TRIGGER no").unwrap();
        store.append_wait(creation(1, "x")).unwrap();
        assert_eq!(store.check().unwrap(), []);
    }
}
