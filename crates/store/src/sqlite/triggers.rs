//! Triggers and deliveries in their tables: the statements of the writer, and the questions.

use std::collections::BTreeMap;

use outlast_engine::{RunId, Time};
use rusqlite::OptionalExtension;

use super::columns;
use super::read::Reader;
use super::transaction::Group;
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
const SELECT_MARK: &str =
    "SELECT at FROM deliveries WHERE trigger = ?1 AND id = ?2 AND state = 'mark'";
// Anew, so that it is as old as what it is the mark of when the oldest are forgotten.
const INSERT_MARK: &str = "INSERT OR REPLACE INTO deliveries (trigger, id, at, state)
    VALUES (?1, ?2, ?3, 'mark')";
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
            TriggerChange::Noted { change, note, value } => {
                let new = self.change_trigger(change, epoch)?;
                self.note(note, Some(value))?;
                return Ok(new);
            }
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
            TriggerChange::KeepUnlessMarked { trigger, delivery, mark, within_ms } => {
                if self.is_marked(trigger, mark, delivery.at, *within_ms)? {
                    return Ok(0);
                }
                let new = self.keep(trigger, std::slice::from_ref(delivery))?;
                if new > 0 {
                    self.execute(INSERT_MARK, (trigger, mark, columns::time(delivery.at)))?;
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

    fn is_marked(
        &self,
        trigger: &str,
        mark: &str,
        now: Time,
        within_ms: u64,
    ) -> Result<bool, Error> {
        let at = self.sql(|db| {
            let mut select = db.prepare_cached(SELECT_MARK)?;
            select.query_row((trigger, mark), |row| row.get(0)).optional()
        })?;
        Ok(at.is_some_and(|at| now.ms_since(time(at)) < within_ms))
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
    pub(super) fn triggers_page(
        &self,
        after: &str,
        most: usize,
    ) -> Result<Vec<(Trigger, u64)>, Error> {
        let select = "SELECT name, kind, spec, state, paused, created_at,
            (SELECT count(*) FROM deliveries WHERE trigger = name AND deliveries.state = 'waiting')
            FROM triggers WHERE name > ?1 ORDER BY name LIMIT ?2";
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut statement = self.prepare(select)?;
        let found = self.sql(statement.query_map((after, most), |row| {
            Ok((trigger(row)?, row.get::<_, i64>(6)?.cast_unsigned()))
        }))?;
        self.sql(found.collect())
    }

    pub(super) fn trigger(&self, name: &str) -> Result<Option<Trigger>, Error> {
        let select =
            "SELECT name, kind, spec, state, paused, created_at FROM triggers WHERE name = ?1";
        self.first(select, [name], trigger)
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

    pub(super) fn made_of(&self, trigger: &str, id: &str) -> Result<Option<RunId>, Error> {
        let select =
            "SELECT run FROM deliveries WHERE trigger = ?1 AND id = ?2 AND run IS NOT NULL";
        self.first(select, [trigger, id], |row| row.get(0).map(RunId))
    }

    pub(super) fn tallies(
        &self,
        first: &str,
        last: &str,
    ) -> Result<BTreeMap<String, Tally>, Error> {
        // Beside a max, SQLite takes the other columns from the row that has it: here the newest of its state.
        let states = "SELECT trigger, state, count(*), max(no), at, run, problem FROM deliveries
            WHERE trigger BETWEEN ?1 AND ?2 GROUP BY trigger, state";
        let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
        let mut statement = self.prepare(states)?;
        let mut rows = self.sql(statement.query([first, last]))?;
        let mut newest: BTreeMap<String, [i64; 2]> = BTreeMap::new();
        while let Some(row) = self.sql(rows.next())? {
            let name: String = self.sql(row.get(0))?;
            let of_states = newest.entry(name.clone()).or_default();
            self.sql(count(row, tallies.entry(name).or_default(), of_states))?;
        }
        for (name, [made, refused]) in newest {
            tallies.entry(name).or_default().is_refusing = refused > made;
        }
        let open = "SELECT trigger, count(*) FROM runs WHERE trigger BETWEEN ?1 AND ?2 AND open = 1
            GROUP BY trigger";
        let mut statement = self.prepare(open)?;
        let mut rows = self.sql(statement.query([first, last]))?;
        while let Some(row) = self.sql(rows.next())? {
            let name: String = self.sql(row.get(0))?;
            let open = self.sql(row.get::<_, i64>(1))?.cast_unsigned();
            tallies.entry(name).or_default().open = open;
        }
        Ok(tallies)
    }

    pub(super) fn run_of_key(&self, key: &str) -> Result<Option<RunId>, Error> {
        self.first("SELECT id FROM runs WHERE key = ?1", [key], |row| row.get(0).map(RunId))
    }

    pub(super) fn newest_run_of(
        &self,
        trigger: &str,
    ) -> Result<Option<(RunId, Option<String>)>, Error> {
        let select = "SELECT id, name FROM runs
            WHERE no = (SELECT max(no) FROM runs WHERE trigger = ?1)";
        self.first(select, [trigger], |row| Ok((RunId(row.get(0)?), row.get(1)?)))
    }

    pub(super) fn open_runs_of(&self, trigger: &str) -> Result<u64, Error> {
        let select = "SELECT count(*) FROM runs WHERE trigger = ?1 AND open = 1";
        let count = self.first(select, [trigger], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or(0).cast_unsigned())
    }
}

fn trigger(row: &rusqlite::Row<'_>) -> rusqlite::Result<Trigger> {
    Ok(Trigger {
        name: row.get(0)?,
        kind: row.get(1)?,
        spec: row.get(2)?,
        state: row.get(3)?,
        paused: row.get(4)?,
        created_at: time(row.get(5)?),
    })
}

/// Takes over what one state of a trigger's deliveries comes to; `newest` are the numbers of the newest that was made
/// and the newest that was refused.
fn count(
    row: &rusqlite::Row<'_>,
    tally: &mut Tally,
    newest: &mut [i64; 2],
) -> rusqlite::Result<()> {
    let state: String = row.get(1)?;
    let many = row.get::<_, i64>(2)?.cast_unsigned();
    match state.as_str() {
        "waiting" => tally.waiting = many,
        "made" => {
            tally.made = many;
            newest[0] = row.get(3)?;
            let run: Option<String> = row.get(5)?;
            tally.last_made = run.zip(row.get(4)?).map(|(run, at)| (time(at), RunId(run)));
        }
        "skipped" => tally.skipped = many,
        "refused" => {
            tally.refused = many;
            newest[1] = row.get(3)?;
            let why = row.get::<_, Option<String>>(6)?.unwrap_or_default();
            tally.last_refused = Some((time(row.get(4)?), why));
        }
        // A mark is no delivery.
        _ => {}
    }
    Ok(())
}

fn time(ms: i64) -> Time {
    Time(ms.cast_unsigned())
}
