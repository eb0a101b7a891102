//! The writer's transaction for one group of jobs, and the statements that several kinds of work need.
//!
//! What each job writes is in `write`, `outbox` and `triggers`.

use std::cell::{Cell, RefCell};
use std::path::Path;

use rusqlite::{CachedStatement, Connection, Params};

use crate::{Error, rules};

// The second: the number of the next event, if the last ones were removed and their numbers would be given again.
const SELECT_FENCE: &str = "SELECT epoch,
    CASE WHEN last_event > (SELECT coalesce(max(no), 0) FROM events) THEN last_event + 1 END FROM fence";
const UPDATE_LAST_EVENT: &str =
    "UPDATE fence SET last_event = max(last_event, (SELECT coalesce(max(no), 0) FROM events))";
const SELECT_LAST_EVENT: &str = "SELECT last_event FROM fence";
const UPDATE_EPOCH: &str = "UPDATE fence SET epoch = ?1";
const UPSERT_NOTE: &str = "INSERT INTO settings (name, value) VALUES (?1, ?2)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const DELETE_NOTE: &str = "DELETE FROM settings WHERE name = ?1";

/// A transaction that has begun.
pub(super) struct Group<'a> {
    connection: &'a Connection,
    path: &'a Path,
    epoch: u64,
    /// The number of the next event, where it is not one more than that of the last one there is.
    event_number: Cell<Option<i64>>,
    /// The statements of every append, which is most of what a group does: looked up once for the group.
    frequent: RefCell<Vec<(&'static str, CachedStatement<'a>)>>,
}

impl<'a> Group<'a> {
    pub(super) fn new(connection: &'a Connection, path: &'a Path) -> Result<Self, Error> {
        let (event_number, frequent) = (Cell::default(), RefCell::default());
        let mut group = Self { connection, path, epoch: 0, event_number, frequent };
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get(1)?));
        let (epoch, event_number) =
            group.sql(|db| db.prepare_cached(SELECT_FENCE)?.query_row([], read))?;
        group.epoch = epoch.cast_unsigned();
        group.event_number.set(event_number);
        Ok(group)
    }

    pub(super) fn take_epoch(&mut self, floor: u64) -> Result<(), Error> {
        let taken = rules::next_epoch(self.epoch, floor);
        self.execute(UPDATE_EPOCH, [taken.cast_signed()])?;
        self.epoch = taken;
        Ok(())
    }

    pub(super) fn note(&self, name: &str, value: Option<&str>) -> Result<(), Error> {
        match value {
            Some(value) => self.execute(UPSERT_NOTE, (name, value)),
            None => self.execute(DELETE_NOTE, [name]),
        }
    }

    /// The number that the next event needs to be given; later ones follow by themselves.
    pub(super) fn take_event_number(&self) -> Option<i64> {
        self.event_number.take()
    }

    /// Before events are removed: sees to it that no number of theirs is given again.
    pub(super) fn keep_last_event(&self) -> Result<(), Error> {
        self.execute(UPDATE_LAST_EVENT, [])?;
        let last = self.sql(|db| {
            db.prepare_cached(SELECT_LAST_EVENT)?.query_row([], |row| row.get::<_, i64>(0))
        })?;
        self.event_number.set(Some(last + 1));
        Ok(())
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn execute(&self, statement: &str, params: impl Params) -> Result<(), Error> {
        self.sql(|db| db.prepare_cached(statement)?.execute(params).map(drop))
    }

    /// Runs a statement that most jobs of a group need.
    pub(super) fn frequent<T>(
        &self,
        statement: &'static str,
        run: impl FnOnce(&mut CachedStatement<'a>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        self.sql(|db| {
            let mut known = self.frequent.borrow_mut();
            let found = known.iter().position(|(text, _)| *text == statement);
            let at = found.unwrap_or(known.len());
            if found.is_none() {
                known.push((statement, db.prepare_cached(statement)?));
            }
            run(&mut known[at].1)
        })
    }

    pub(super) fn sql<T>(
        &self,
        ask: impl FnOnce(&'a Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        ask(self.connection).map_err(|error| Error::from_sql(self.path, &error))
    }
}
