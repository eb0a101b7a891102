//! The one thread that writes.
//!
//! Takes whatever is waiting, writes it in one transaction and answers everybody once that is durable.
//! While the disk is busy with one group the next one gathers, so nobody ever waits for a group to fill.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;

use outlast_engine::RunId;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::checkpoint::Checkpointer;
use super::write::Group;
use crate::{Append, Change, Error, Remove, TriggerChange};

/// Orders that one transaction takes at most.
const GROUP: usize = 1024;

pub(super) struct Order {
    pub(super) work: Work,
    pub(super) reply: Reply,
}

/// Told the epoch under which the work was done, or of a trigger how many deliveries were new.
pub(super) type Reply = Box<dyn FnOnce(Result<u64, Error>) + Send>;

pub(super) enum Work {
    TakeEpoch,
    Append(Box<Append>),
    Remove { run: RunId, epoch: u64, how: Remove },
    Outbox { epoch: u64, change: Box<Change> },
    Note { name: String, value: Option<String>, epoch: u64 },
    Trigger { change: Box<TriggerChange>, epoch: u64 },
}

pub(super) struct Writer {
    path: PathBuf,
    connection: Connection,
    checkpointer: Checkpointer,
    commits: Arc<AtomicU64>,
    log_pages: Arc<AtomicU32>,
}

impl Writer {
    pub(super) fn new(
        path: &Path,
        mut connection: Connection,
        checkpointer: Checkpointer,
        commits: Arc<AtomicU64>,
    ) -> Result<Self, Error> {
        let log_pages = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&log_pages);
        let hook = move |_: &mut Wal, pages: i32| {
            counted.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(|error| Error::from_sql(path, &error))?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(Self { path: path.to_owned(), connection, checkpointer, commits, log_pages })
    }

    /// Writes until nobody can give orders any more and everything that was ordered is done.
    pub(super) fn run(mut self, inbox: &Receiver<Order>) {
        while let Ok(first) = inbox.recv() {
            let group = std::iter::once(first).chain(inbox.try_iter().take(GROUP - 1)).collect();
            self.carry_out(group);
        }
        self.checkpointer.finish(&self.connection);
    }

    fn carry_out(&mut self, group: Vec<Order>) {
        match self.commit(&group) {
            Ok(answers) => {
                self.commits.fetch_add(1, Ordering::Relaxed);
                let orders = group.len();
                group.into_iter().zip(answers).for_each(|(order, answer)| (order.reply)(answer));
                let pages = self.log_pages.load(Ordering::Relaxed);
                self.checkpointer.log_has(pages, orders, &self.connection);
            }
            Err(error) => group.into_iter().for_each(|order| (order.reply)(Err(error.clone()))),
        }
    }

    /// One answer for each order if they are durable. A refused order has written nothing, so it stands in
    /// nobody's way; anything else that goes wrong undoes the whole group.
    fn commit(&self, orders: &[Order]) -> Result<Vec<Result<u64, Error>>, Error> {
        let committed =
            self.write(orders).and_then(|answers| self.batch("COMMIT").map(|()| answers));
        if committed.is_err() && !self.connection.is_autocommit() {
            // If even this fails, the next BEGIN does too, and says so to whoever waits for it.
            drop(self.batch("ROLLBACK"));
        }
        committed
    }

    fn write(&self, orders: &[Order]) -> Result<Vec<Result<u64, Error>>, Error> {
        self.batch("BEGIN IMMEDIATE")?;
        let mut group = Group::new(&self.connection, &self.path)?;
        let mut answers = Vec::with_capacity(orders.len());
        for order in orders {
            answers.push(match group.write(&order.work) {
                Err(error) if !error.is_refusal() => return Err(error),
                answer => answer,
            });
        }
        Ok(answers)
    }

    fn batch(&self, statement: &'static str) -> Result<(), Error> {
        let run = || self.connection.prepare_cached(statement)?.execute([]).map(drop);
        run().map_err(|error| Error::from_sql(&self.path, &error))
    }
}
