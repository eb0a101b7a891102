//! The writer's transaction for one group of orders, and the statements that several kinds of work need.
//!
//! What each order writes is in `write`, `outbox` and `triggers`.

use std::path::Path;

use rusqlite::{Connection, Params};

use crate::{Error, rules};

const SELECT_EPOCH: &str = "SELECT epoch FROM fence";
const UPDATE_EPOCH: &str = "UPDATE fence SET epoch = ?1";
const UPSERT_NOTE: &str = "INSERT INTO settings (name, value) VALUES (?1, ?2)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";
const DELETE_NOTE: &str = "DELETE FROM settings WHERE name = ?1";

/// A transaction that has begun.
pub(super) struct Group<'a> {
    connection: &'a Connection,
    path: &'a Path,
    epoch: u64,
}

impl<'a> Group<'a> {
    pub(super) fn new(connection: &'a Connection, path: &'a Path) -> Result<Self, Error> {
        let mut group = Self { connection, path, epoch: 0 };
        let epoch = group
            .sql(|db| db.prepare_cached(SELECT_EPOCH)?.query_row([], |row| row.get::<_, i64>(0)))?;
        group.epoch = epoch.cast_unsigned();
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

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(super) fn execute(&self, statement: &str, params: impl Params) -> Result<(), Error> {
        self.sql(|db| db.prepare_cached(statement)?.execute(params).map(drop))
    }

    pub(super) fn sql<T>(
        &self,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        ask(self.connection).map_err(|error| Error::from_sql(self.path, &error))
    }
}
