//! The open journal, and how it gets back to its place when its files were taken away.
//!
//! What is open holds everything that was acknowledged. It is let go only after all of it is durable under a name
//! again. What another program has put at the path is neither overwritten nor deleted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::checkpoint::Checkpointer;
use super::opened::{Found, OpenedFiles, Remedy, Standing};
use super::read::Reader;
use super::rescue::{self, Audit};
use super::{file, schema};
use crate::Error;

/// The writer's connection, and what goes with it.
pub(super) struct Open {
    pub(super) path: PathBuf,
    pub(super) connection: Connection,
    pub(super) checkpointer: Checkpointer,
    /// How long the log is, in pages.
    pub(super) log_pages: Arc<AtomicU32>,
    pub(super) opened: OpenedFiles,
}

impl Open {
    pub(super) fn new(path: &Path, mut connection: Connection) -> Result<Self, Error> {
        let log_pages = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&log_pages);
        let hook = move |_: &mut Wal, pages: i32| {
            counted.store(pages.unsigned_abs(), Ordering::Relaxed);
            Ok(())
        };
        connection.wal_hook(Some(hook)).map_err(|error| Error::from_sql(path, &error))?;
        connection.set_prepared_statement_cache_capacity(32);
        let checkpointer = Checkpointer::start(path)?;
        // The first question has SQLite open the log.
        schema::user_version(&connection).map_err(|error| Error::from_sql(path, &error))?;
        let opened = OpenedFiles::of(path)?;
        Ok(Self { path: path.to_owned(), connection, checkpointer, log_pages, opened })
    }

    /// The files are sound as they are now.
    pub(super) fn accept(&mut self, path: &Path) -> Result<(), Error> {
        self.opened = OpenedFiles::of(path)?;
        Ok(())
    }

    /// Closes the files and touches no name.
    pub(super) fn close(self) {
        let Self { connection, checkpointer, .. } = self;
        checkpointer.stop();
        drop(schema::leave_log(&connection));
    }

    /// Moves all of the log into the database, as they are open.
    fn empty_log(&self) -> Result<(), Error> {
        let busy = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let moved = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], busy);
        match moved.map_err(|error| Error::from_sql(&self.path, &error))? {
            0 => Ok(()),
            _ => Err(Error::Locked(self.path.clone())),
        }
    }
}

/// Why the files are not back.
pub(super) enum Unmended {
    /// What is open is still open, and this may be tried again.
    ForNow(Box<Open>, Error),
    ForGood(Error),
}

/// True if to look through it takes too long when nothing is known to be wrong.
pub(super) fn is_large(path: &Path) -> Result<bool, Error> {
    Ok(file::length(path)? > schema::QUICK_CHECK_MOST_BYTES)
}

/// Reads the database from disk, with a connection that knows nothing of it yet.
pub(super) fn is_sound(path: &Path) -> Result<bool, Error> {
    // SQLite takes an empty file for an empty database, and removes the log beside it.
    if file::length(path)? == 0 {
        return Ok(false);
    }
    match Reader::open(path, None)
        .and_then(|reader| reader.quick_check().and_then(|()| reader.look()))
    {
        Ok(()) => Ok(true),
        Err(Error::Corrupt { .. } | Error::Io(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Puts the files back; says what was done. No other connection is open meanwhile.
pub(super) fn mend(
    path: &Path,
    open: Box<Open>,
    found: Found,
    remedy: Remedy,
) -> Result<(Box<Open>, String), Unmended> {
    let says = found.says();
    if remedy == Remedy::MoveLog {
        if let Err(error) = open.empty_log() {
            return Err(Unmended::ForNow(open, error));
        }
        open.close();
        let words = "what was in it was put back into the database";
        return reopen(path, &format!("{says}; {words}"));
    }
    if !file::directory(path).exists() {
        // A directory that was moved has its files with it: they are left whole.
        drop(open.empty_log());
        open.close();
        return Err(gone(path, format!("{says}, with its directory")));
    }
    let audit = if remedy == Remedy::Replace { Audit::Runs } else { Audit::Pages };
    let rescue::Copy { path: copy, is_whole } = match rescue::copy(&open.connection, path, audit) {
        Ok(copy) => copy,
        Err(Error::Corrupt { what, .. }) => {
            open.close();
            return Err(gone(path, format!("{says}, and what is left cannot be read: {what}")));
        }
        Err(error) => return Err(Unmended::ForNow(open, error)),
    };
    let saved = format!("what this daemon had open is saved as {}", copy.display());
    // The log of the old database must not be taken for the new one's.
    let is_log_clear = found.log != Standing::Ours || open.empty_log().is_ok();
    let log = open.opened.log().to_owned();
    open.close();
    let put_back = match remedy {
        Remedy::PutBack if is_log_clear => rescue::move_to(&copy, path).map(|()| String::new()),
        Remedy::Replace if is_whole => replace(&copy, path, &log),
        Remedy::Nothing | Remedy::MoveLog | Remedy::PutBack | Remedy::Replace | Remedy::Part => {
            return Err(gone(path, format!("{says}; {saved}")));
        }
    };
    match put_back {
        Ok(aside) => reopen(path, &format!("{says} and was put back{aside}")),
        Err(error) => Err(gone(path, format!("{says} and was not put back: {error}; {saved}"))),
    }
}

/// Sets a damaged database and its log aside, as a pair, and puts the copy in their place.
fn replace(copy: &Path, path: &Path, log: &Path) -> std::io::Result<String> {
    let aside = rescue::name_aside(path, path, ".damaged-").map_err(std::io::Error::other)?;
    match rescue::move_to(log, &file::beside(&aside, "-wal")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    rescue::move_to(copy, path)?;
    Ok(format!("; the damaged file is {}", aside.display()))
}

fn reopen(path: &Path, words: &str) -> Result<(Box<Open>, String), Unmended> {
    let opened = schema::open_checked(path).and_then(|connection| Open::new(path, connection));
    match opened {
        Ok(open) => Ok((Box::new(open), format!("{} {words}", path.display()))),
        Err(error) => Err(gone(path, format!("{words}, and cannot be opened again: {error}"))),
    }
}

fn gone(path: &Path, what: String) -> Unmended {
    Unmended::ForGood(Error::Gone { path: path.to_owned(), what })
}
