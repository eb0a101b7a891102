//! Connections and the shape of what they connect to.
//!
//! The shape has a number, `user_version`, and one file in `migrations/` for each step to it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file;
use crate::Error;

/// The newest shape that this version knows.
pub(super) const KNOWN: u32 = 3;

/// The step to each shape from the one before.
const MIGRATIONS: [(u32, &str); KNOWN as usize] = [
    (1, include_str!("../../migrations/0001.sql")),
    (2, include_str!("../../migrations/0002.sql")),
    (3, include_str!("../../migrations/0003.sql")),
];

/// Looking through a larger file at every start would take too long.
const QUICK_CHECK_MOST_BYTES: u64 = 256 << 20;
/// Memory that a connection may keep pages in, in KiB. The writer comes back to its pages with every group.
const WRITER_CACHE_KIB: i32 = 2048;
const CACHE_KIB: i32 = 512;
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Gives a file that has just been made its schema, and leaves no log behind.
pub(super) fn fill_new(path: &Path) -> Result<(), Error> {
    let fill = || {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "application_id", file::APPLICATION_ID)?;
        migrate(&connection, 0)?;
        switch_to_wal(&connection)?;
        connection.close().map_err(|(_, error)| error)
    };
    fill().map_err(|error| Error::from_sql(path, &error))
}

/// The writer's connection to a file that has been looked at.
pub(super) fn open_checked(path: &Path) -> Result<Connection, Error> {
    let error = |error: rusqlite::Error| Error::from_sql(path, &error);
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(error)?;
    enlarge_cache(&connection).map_err(error)?;
    let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    // If the file is refused below, closing it must not write the log into it.
    connection.set_db_config(keep_log, file::has_log(path)?).map_err(error)?;
    if file::length(path)? <= QUICK_CHECK_MOST_BYTES {
        quick_check(path, &connection)?;
    }
    let found = user_version(&connection).map_err(error)?;
    if found > KNOWN {
        return Err(Error::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    switch_to_wal(&connection).map_err(error)?;
    if found < KNOWN {
        migrate(&connection, found).and_then(|()| empty_log(&connection)).map_err(error)?;
    }
    connection.set_db_config(keep_log, false).map_err(error)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection for the one who moves the log into the database.
pub(super) fn open_checkpointer(path: &Path) -> Result<Connection, rusqlite::Error> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
    Ok(connection)
}

/// A page that is spilled from a group too large for the cache would be written to the log twice.
fn enlarge_cache(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "cache_spill", false)
}

fn quick_check(path: &Path, connection: &Connection) -> Result<(), Error> {
    let answer: Result<String, _> =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    match answer.map_err(|error| Error::from_sql(path, &error))?.as_str() {
        "ok" => Ok(()),
        // The first line of several only says which database is meant.
        what => Err(file::corrupt(path, what.lines().last().unwrap_or(what))),
    }
}

fn user_version(connection: &Connection) -> Result<u32, rusqlite::Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Takes the schema from `found` to the newest, each step in one transaction.
fn migrate(connection: &Connection, found: u32) -> Result<(), rusqlite::Error> {
    for (number, step) in MIGRATIONS.into_iter().filter(|(number, _)| *number > found) {
        connection.execute_batch(&format!(
            "BEGIN IMMEDIATE; {step} PRAGMA user_version = {number}; COMMIT"
        ))?;
    }
    Ok(())
}

/// The number of the shape has to be in the file itself, where an older version looks for it.
fn empty_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn switch_to_wal(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)).map(drop)
}
