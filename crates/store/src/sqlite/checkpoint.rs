//! Moving the write-ahead log into the database, beside the commits and not between them.
//!
//! Has a thread and a connection of its own. It sleeps until the writer says that there is enough to move.
//! The writer then moves the little that came in meanwhile, so that the log begins anew: a commit into a log
//! that has been this long before costs half of one that makes it longer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;

use super::{schema, spawn};
use crate::Error;

/// Pages that the log may grow by before they are moved.
const PAGES: u32 = 1000;
/// The same under load, when moving them takes the disk from those who wait for a commit.
const LOADED_PAGES: u32 = 6000;
/// A group as small as this is no load.
const FEW_JOBS: usize = 8;
/// About 64 MiB of log. Only a log that never comes to rest gets there, and then the writer itself waits
/// until it can start from the beginning.
const TOO_MANY_PAGES: u32 = 16_000;
const RESTART_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) struct Checkpointer {
    wakes: SyncSender<()>,
    thread: JoinHandle<()>,
    /// Set when the log was moved, all but what came in meanwhile.
    is_moved: Arc<AtomicBool>,
    pages_at_last_wake: u32,
}

impl Checkpointer {
    pub(super) fn start(path: &Path) -> Result<Self, Error> {
        let connection =
            schema::open_checkpointer(path).map_err(|error| Error::from_sql(path, &error))?;
        // One wake in waiting is as good as many.
        let (wakes, inbox) = mpsc::sync_channel(1);
        let is_moved = Arc::new(AtomicBool::new(false));
        let moved = Arc::clone(&is_moved);
        let thread = spawn("store-checkpoint", move || run(&connection, &inbox, &moved))?;
        Ok(Self { wakes, thread, is_moved, pages_at_last_wake: 0 })
    }

    /// The writer says how long the log is after a commit of so many `jobs`.
    pub(super) fn log_has(&mut self, pages: u32, jobs: usize, writer: &Connection) {
        if pages < self.pages_at_last_wake {
            self.pages_at_last_wake = 0;
        }
        // Under load the log is left to grow: a long wait for one costs more than many short ones.
        if jobs <= FEW_JOBS && self.is_moved.swap(false, Ordering::AcqRel) {
            restart(writer, Duration::ZERO);
            return;
        }
        let enough = if jobs <= FEW_JOBS { PAGES } else { LOADED_PAGES };
        if pages - self.pages_at_last_wake <= enough {
            return;
        }
        self.pages_at_last_wake = pages;
        if pages >= TOO_MANY_PAGES {
            restart(writer, RESTART_TIMEOUT);
        } else {
            self.wake();
        }
    }

    fn wake(&self) {
        match self.wakes.try_send(()) {
            // Full means that it has been woken and has not looked yet.
            Ok(()) | Err(TrySendError::Full(())) => {}
            Err(TrySendError::Disconnected(())) => {
                unreachable!("it listens until the writer finishes")
            }
        }
    }

    /// Moves what is left and empties the log.
    pub(super) fn finish(self, writer: &Connection) {
        self.stop();
        checkpoint(writer, "TRUNCATE");
    }

    /// Leaves the log as it is.
    pub(super) fn stop(self) {
        drop(self.wakes);
        drop(self.thread.join());
    }
}

fn run(connection: &Connection, inbox: &Receiver<()>, is_moved: &AtomicBool) {
    while inbox.recv().is_ok() {
        checkpoint(connection, "PASSIVE");
        is_moved.store(true, Ordering::Release);
    }
}

/// Has the log begin anew, if the readers let it within `patience`; otherwise it is tried again later.
fn restart(writer: &Connection, patience: Duration) {
    if writer.busy_timeout(patience).is_ok() {
        checkpoint(writer, "RESTART");
    }
    drop(writer.busy_timeout(schema::BUSY_TIMEOUT));
}

/// A checkpoint that does not succeed loses nothing: the log is kept, and the next one moves it. If the
/// disk is at fault, the next commit meets the same fault and says so.
fn checkpoint(connection: &Connection, mode: &str) {
    drop(connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())));
}
