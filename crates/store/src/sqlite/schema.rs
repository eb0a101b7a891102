//! Connections and the shape of what they connect to.
//!
//! The shape has a number, `user_version`, and one file in `migrations/` for each step to it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::{Batch, Connection, OpenFlags};

use super::{copies, file};
use crate::Error;

/// "Outl": stands in the header of every journal.
pub(super) const APPLICATION_ID: u32 = 0x4f75_746c;

/// The newest shape that this version knows.
pub(super) const KNOWN: u32 = 6;

/// The step to each shape from the one before.
const MIGRATIONS: [(u32, &str); KNOWN as usize] = [
    (1, include_str!("../../migrations/0001.sql")),
    (2, include_str!("../../migrations/0002.sql")),
    (3, include_str!("../../migrations/0003.sql")),
    (4, include_str!("../../migrations/0004.sql")),
    (5, include_str!("../../migrations/0005.sql")),
    (6, include_str!("../../migrations/0006.sql")),
];

/// Looking through a larger file at every start would take too long.
pub(super) const QUICK_CHECK_MOST_BYTES: u64 = 256 << 20;
/// Memory that a connection may keep pages in, in KiB. The writer comes back to its pages with every group.
const WRITER_CACHE_KIB: i32 = 2048;
const CACHE_KIB: i32 = 512;
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Gives a file that has just been made its schema, and leaves no log behind.
pub(super) fn fill_new(path: &Path) -> Result<(), Error> {
    let fill = || {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        migrate(&connection, 0, &mut |_| {})?;
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
        // All of it is in the file, which is then copied as it is.
        empty_log(&connection).map_err(error)?;
        copies::make_before(path, KNOWN)?;
        let migrated = migrate(&connection, found, &mut |_| {});
        migrated.and_then(|()| empty_log(&connection)).map_err(error)?;
    }
    connection.set_db_config(keep_log, false).map_err(error)?;
    Ok(connection)
}

/// A connection that only reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    leave_log(&connection)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

/// A connection for the one who moves the log into the database.
pub(super) fn open_checkpointer(path: &Path) -> Result<Connection, rusqlite::Error> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    leave_log(&connection)?;
    Ok(connection)
}

/// Closing the last connection removes the log by its name, which may be another file's by then.
pub(super) fn leave_log(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop)
}

pub(super) fn connect(path: &Path, access: OpenFlags) -> Result<Connection, rusqlite::Error> {
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

pub(super) fn quick_check(path: &Path, connection: &Connection) -> Result<(), Error> {
    let answer: Result<String, _> =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    match answer.map_err(|error| Error::from_sql(path, &error))?.as_str() {
        "ok" => Ok(()),
        // The first line of several only says which database is meant.
        what => Err(file::corrupt(path, what.lines().last().unwrap_or(what))),
    }
}

pub(super) fn user_version(connection: &Connection) -> Result<u32, rusqlite::Error> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Takes the schema from `found` to the newest, all of it in one transaction: a process that dies in it leaves the old one.
/// `between` is told how many statements have been executed.
fn migrate(
    connection: &Connection,
    found: u32,
    between: &mut dyn FnMut(usize),
) -> Result<(), rusqlite::Error> {
    let steps: String =
        MIGRATIONS.iter().filter(|(number, _)| *number > found).map(|(_, step)| *step).collect();
    let whole = format!("BEGIN IMMEDIATE; {steps} PRAGMA user_version = {KNOWN}; COMMIT");
    let mut statements = Batch::new(connection, &whole);
    let mut done = 0;
    between(done);
    while let Some(mut statement) = statements.next()? {
        statement.raw_execute()?;
        done += 1;
        between(done);
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

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::create;
    use super::*;
    use crate::{Journal, Sqlite};

    /// A journal as an earlier version left it, with something in it.
    fn of_schema(path: &Path, number: u32) {
        create::if_missing(path).unwrap();
        std::fs::remove_file(path).unwrap();
        let connection = Connection::open(path).unwrap();
        connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        for (_, step) in MIGRATIONS.iter().filter(|(step, _)| *step <= number) {
            connection.execute_batch(step).unwrap();
        }
        connection.pragma_update(None, "user_version", number).unwrap();
        connection.execute("UPDATE fence SET epoch = 41", []).unwrap();
        switch_to_wal(&connection).unwrap();
    }

    const PATH: &str = "OUTLAST_TEST_MIGRATE";
    const AFTER: &str = "OUTLAST_TEST_DIES_AFTER";

    /// Not a test by itself: what the next one starts, and what dies in the middle of a migration.
    #[test]
    fn a_process_that_dies_while_it_migrates() {
        let variable = |name| {
            #[expect(clippy::disallowed_methods, reason = "how a test speaks to its child")]
            std::env::var(name).ok()
        };
        let (Some(path), Some(after)) = (variable(PATH), variable(AFTER)) else { return };
        let after: usize = after.parse().unwrap();
        let connection = connect(Path::new(&path), OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        let found = user_version(&connection).unwrap();
        migrate(&connection, found, &mut |done| {
            if done == after {
                // Without a word to SQLite: no destructor runs.
                std::process::abort();
            }
        })
        .unwrap();
    }

    fn dies_after(path: &Path, statements: usize) -> bool {
        #[expect(clippy::disallowed_methods, reason = "this test has to see a process die")]
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "sqlite::schema::tests::a_process_that_dies_while_it_migrates"]);
        child.env(PATH, path).env(AFTER, statements.to_string());
        child.stdout(Stdio::null()).stderr(Stdio::null());
        !child.status().unwrap().success()
    }

    #[test]
    fn a_migration_that_dies_at_any_statement_leaves_the_old_journal_or_the_new() {
        let directory = tempfile::tempdir().unwrap();
        for found in 1..KNOWN {
            let mut statements = 0;
            loop {
                let path = directory.path().join(format!("{found}-{statements}.db"));
                of_schema(&path, found);
                if !dies_after(&path, statements) {
                    break;
                }
                let left =
                    user_version(&connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap());
                assert!([found, KNOWN].contains(&left.unwrap()), "neither after {statements}");
                let store = Sqlite::open(&path).unwrap();
                assert_eq!(store.epoch().unwrap(), 41, "after {statements}");
                assert_eq!(store.take_epoch().unwrap(), 42);
                assert_eq!(store.check().unwrap(), []);
                statements += 1;
            }
            assert!(statements > 4, "only {statements} statements were seen from {found}");
        }
    }

    #[test]
    fn the_journal_is_copied_before_its_shape_changes() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("outlast.db");
        of_schema(&path, 1);
        drop(Sqlite::open(&path).unwrap());
        let copy = directory.path().join(format!("outlast.db.before-{KNOWN}"));
        assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
        let copied = Connection::open(&copy).unwrap();
        assert_eq!(user_version(&copied).unwrap(), 1);
        let epoch: i64 = copied.query_row("SELECT epoch FROM fence", [], |row| row.get(0)).unwrap();
        assert_eq!(epoch, 41);
        let modified = std::fs::metadata(&copy).unwrap().modified().unwrap();
        drop(Sqlite::open(&path).unwrap());
        assert_eq!(std::fs::metadata(&copy).unwrap().modified().unwrap(), modified, "copied again");
    }

    #[test]
    fn without_a_copy_nothing_is_migrated() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("outlast.db");
        of_schema(&path, 1);
        // A directory in the way of the copy, as a disk without room would be.
        let in_the_way = directory.path().join(format!("outlast.db.before-{KNOWN}"));
        std::fs::create_dir_all(in_the_way.join("x")).unwrap();
        let error = Sqlite::open(&path).err().unwrap().to_string();
        assert!(error.contains("copied"), "{error}");
        let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        assert_eq!(user_version(&connection).unwrap(), 1);
    }

    #[test]
    fn only_the_newest_copies_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("outlast.db");
        of_schema(&path, 1);
        for number in [1, 2, 10, 11] {
            copies::make_before(&path, number).unwrap();
        }
        #[expect(clippy::disallowed_methods, reason = "a test that is interrupted is run again")]
        let mut left: Vec<String> = std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("before"))
            .collect();
        left.sort();
        assert_eq!(left, ["outlast.db.before-10", "outlast.db.before-11"]);
    }
}
