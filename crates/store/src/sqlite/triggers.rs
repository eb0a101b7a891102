//! Triggers and deliveries in their tables: the statements of the writer, and the questions.

use outlast_engine::{RunId, Time};
use rusqlite::OptionalExtension;

use super::columns;
use super::read::Reader;
use super::write::Group;
use crate::triggers::{Delivery, Settlement, Tally, Trigger, TriggerChange};
use crate::{Error, rules};

const SELECT_TRIGGER: &str = "SELECT 1 FROM triggers WHERE name = ?1";
const INSERT_TRIGGER: &str = "INSERT INTO triggers (name, kind, spec, state, paused, created_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const UPDATE_TRIGGER: &str = "UPDATE triggers SET spec = coalesce(?2, spec),
    state = coalesce(?3, state), paused = coalesce(?4, paused) WHERE name = ?1";
const DELETE_TRIGGER: &str = "DELETE FROM triggers WHERE name = ?1";
const DELETE_DELIVERIES: &str = "DELETE FROM deliveries WHERE trigger = ?1";
const INSERT_DELIVERY: &str = "INSERT OR IGNORE INTO deliveries (trigger, id, at, state, body)
    VALUES (?1, ?2, ?3, 'waiting', ?4)";
const SETTLE_DELIVERY: &str =
    "UPDATE deliveries SET state = ?3, run = ?4, problem = ?5, body = NULL
    WHERE trigger = ?1 AND id = ?2 AND state = 'waiting'";
const FORGET_DELIVERIES: &str = "DELETE FROM deliveries WHERE trigger = ?1 AND state <> 'waiting'
    AND no <= (SELECT no FROM deliveries WHERE trigger = ?1 AND state <> 'waiting'
        ORDER BY no DESC LIMIT 1 OFFSET ?2)";

impl Group<'_> {
    /// How many deliveries were new.
    pub(super) fn change_trigger(&self, change: &TriggerChange, epoch: u64) -> Result<u64, Error> {
        rules::check_epoch(epoch, self.epoch())?;
        self.check_trigger(change)?;
        match change {
            TriggerChange::Add(Trigger { name, kind, spec, state, paused, created_at }) => {
                let at = columns::time(*created_at);
                self.execute(INSERT_TRIGGER, (name, kind, spec, state, paused, at))?;
            }
            TriggerChange::Update { trigger, spec, state, paused } => {
                self.execute(UPDATE_TRIGGER, (trigger, spec, state, paused))?;
            }
            TriggerChange::Remove { trigger } => {
                self.execute(DELETE_DELIVERIES, [trigger])?;
                self.execute(DELETE_TRIGGER, [trigger])?;
            }
            TriggerChange::Keep { trigger, deliveries, state } => {
                let new = self.keep(trigger, deliveries)?;
                if state.is_some() {
                    let none = (None::<&str>, None::<bool>);
                    self.execute(UPDATE_TRIGGER, (trigger, none.0, state, none.1))?;
                }
                return Ok(new);
            }
            TriggerChange::Settle { trigger, id, settled } => self.settle(trigger, id, settled)?,
            TriggerChange::Forget { trigger, but } => {
                self.execute(FORGET_DELIVERIES, (trigger, but.cast_signed()))?;
            }
        }
        Ok(0)
    }

    fn check_trigger(&self, change: &TriggerChange) -> Result<(), Error> {
        let name = change.trigger();
        let known = self.sql(|db| {
            db.prepare_cached(SELECT_TRIGGER)?.query_row([name], |_| Ok(())).optional()
        })?;
        rules::check_trigger(change, known.is_some())
    }

    fn keep(&self, trigger: &str, deliveries: &[Delivery]) -> Result<u64, Error> {
        let mut new = 0;
        for Delivery { id, at, body } in deliveries {
            let values = (trigger, id, columns::time(*at), body);
            let added = self.sql(|db| db.prepare_cached(INSERT_DELIVERY)?.execute(values))?;
            new += u64::try_from(added).unwrap_or(0);
        }
        Ok(new)
    }

    fn settle(&self, trigger: &str, id: &str, settled: &Settlement) -> Result<(), Error> {
        let run = settled.run().map(RunId::as_str);
        self.execute(SETTLE_DELIVERY, (trigger, id, settled.word(), run, settled.why()))
    }
}

impl Reader {
    pub(super) fn triggers(&self) -> Result<Vec<Trigger>, Error> {
        let select =
            "SELECT name, kind, spec, state, paused, created_at FROM triggers ORDER BY name";
        let mut statement = self.prepare(select)?;
        let found = self.sql(statement.query_map([], |row| {
            Ok(Trigger {
                name: row.get(0)?,
                kind: row.get(1)?,
                spec: row.get(2)?,
                state: row.get(3)?,
                paused: row.get(4)?,
                created_at: time(row.get(5)?),
            })
        }))?;
        self.sql(found.collect())
    }

    pub(super) fn deliveries(&self, trigger: &str, most: usize) -> Result<Vec<Delivery>, Error> {
        let select = "SELECT id, at, coalesce(body, 'null') FROM deliveries
            WHERE trigger = ?1 AND state = 'waiting' ORDER BY no LIMIT ?2";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut statement = self.prepare(select)?;
        let found = self.sql(statement.query_map((trigger, most), |row| {
            Ok(Delivery { id: row.get(0)?, at: time(row.get(1)?), body: row.get(2)? })
        }))?;
        self.sql(found.collect())
    }

    pub(super) fn is_known(&self, trigger: &str, id: &str) -> Result<bool, Error> {
        let select = "SELECT 1 FROM deliveries WHERE trigger = ?1 AND id = ?2";
        Ok(self.first(select, [trigger, id], |_| Ok(()))?.is_some())
    }

    pub(super) fn tally(&self, trigger: &str) -> Result<Tally, Error> {
        let counts = "SELECT coalesce(sum(state = 'waiting'), 0), coalesce(sum(state = 'made'), 0),
            coalesce(sum(state = 'skipped'), 0), coalesce(sum(state = 'refused'), 0)
            FROM deliveries WHERE trigger = ?1";
        let read = |row: &rusqlite::Row<'_>| {
            Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?])
        };
        let [waiting, made, skipped, refused] =
            self.first(counts, [trigger], read)?.unwrap_or_default().map(i64::cast_unsigned);
        let made_last = "SELECT at, run FROM deliveries WHERE trigger = ?1 AND state = 'made'
            AND run IS NOT NULL ORDER BY no DESC LIMIT 1";
        let last_made =
            self.first(made_last, [trigger], |row| Ok((time(row.get(0)?), RunId(row.get(1)?))))?;
        let refused_last = "SELECT coalesce(problem, '') FROM deliveries
            WHERE trigger = ?1 AND state = 'refused' ORDER BY no DESC LIMIT 1";
        let last_refused = self.first(refused_last, [trigger], |row| row.get(0))?;
        Ok(Tally { waiting, made, skipped, refused, last_made, last_refused })
    }

    pub(super) fn run_of_key(&self, key: &str) -> Result<Option<RunId>, Error> {
        self.first("SELECT id FROM runs WHERE key = ?1", [key], |row| row.get(0).map(RunId))
    }

    pub(super) fn open_runs_of(&self, trigger: &str) -> Result<u64, Error> {
        let select = "SELECT count(*) FROM runs WHERE trigger = ?1 AND open = 1";
        let count = self.first(select, [trigger], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or(0).cast_unsigned())
    }
}

fn time(ms: i64) -> Time {
    Time(ms.cast_unsigned())
}
