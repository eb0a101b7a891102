//! The questions, and the few connections that they are asked over.
//!
//! Connections are made when they are needed and only read, so no question can hold up the writer.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use outlast_engine::{Event, Row, RunId, StateName};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};

use super::{columns, schema};
use crate::audit::{Stored, audit};
use crate::{Counts, Error, Filter, Problem, Resolved};

/// Connections that are kept while nobody asks anything.
const IDLE: usize = 2;
/// One more than are listed, which tells whether a prefix is unique.
const MOST_CANDIDATES: i64 = Resolved::MOST as i64 + 1;

pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Reader>>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), idle: Mutex::new(Vec::new()) }
    }

    pub(super) fn with<T>(
        &self,
        ask: impl FnOnce(&Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let taken = self.idle().pop();
        let reader = match taken {
            Some(reader) => reader,
            None => Reader::open(&self.path)?,
        };
        let answer = ask(&reader);
        let mut idle = self.idle();
        if idle.len() < IDLE {
            idle.push(reader);
        }
        answer
    }

    pub(super) fn close(&self) {
        self.idle().clear();
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Reader>> {
        self.idle.lock().expect("nothing panics while it holds the idle connections")
    }
}

/// One connection, lent for one question at a time.
pub(super) struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    fn open(path: &Path) -> Result<Self, Error> {
        let connection =
            schema::open_reader(path).map_err(|error| Error::from_sql(path, &error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    pub(super) fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<Event>, Error> {
        // One statement, so that a number cannot pass from a removed run to a new one in between.
        let select = format!(
            "SELECT {} FROM events WHERE run = (SELECT no FROM runs WHERE id = ?1) AND seq > ?2 ORDER BY seq LIMIT ?3",
            columns::EVENT
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut statement = self.prepare(&select)?;
        let mut found = self.sql(statement.query((run.as_str(), after.cast_signed(), most)))?;
        let mut events = Vec::new();
        while let Some(row) = self.sql(found.next())? {
            events.push(columns::event(run, row)?);
        }
        if events.is_empty() {
            self.check_known(run)?;
        }
        Ok(events)
    }

    fn check_known(&self, run: &RunId) -> Result<(), Error> {
        let known = self.first("SELECT 1 FROM runs WHERE id = ?1", [run.as_str()], |_| Ok(()))?;
        known.ok_or_else(|| Error::UnknownRun { run: run.clone() })
    }

    pub(super) fn row(&self, run: &RunId) -> Result<Option<Row>, Error> {
        let select = format!("SELECT {} FROM runs WHERE id = ?1", columns::ROW);
        self.first(&select, [run.as_str()], |row| Ok(columns::row(row)))?.transpose()
    }

    pub(super) fn visit_rows(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let which = if filter.all { "1" } else { "open = 1" };
        let select = format!(
            "SELECT {} FROM runs WHERE {which} AND (?1 IS NULL OR state = ?1) ORDER BY no DESC",
            columns::ROW
        );
        let mut statement = self.prepare(&select)?;
        let mut found = self.sql(statement.query([filter.state.map(StateName::word)]))?;
        let mut left = filter.limit();
        while left > 0 {
            let Some(row) = self.sql(found.next())? else { break };
            // `check` reports what does not parse; one damaged run must not hide all the others.
            let Some(row) = columns::row(row).ok().filter(|row| filter.passes(row)) else {
                continue;
            };
            left -= 1;
            if visit(row).is_break() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn open_runs(&self) -> Result<Vec<RunId>, Error> {
        self.ids("SELECT id FROM runs WHERE open = 1 ORDER BY no", [])
    }

    pub(super) fn resolve(&self, text: &str) -> Result<Resolved, Error> {
        let by_id = "SELECT id FROM runs WHERE id = ?1";
        let by_name = "SELECT id FROM runs WHERE no = (SELECT max(no) FROM runs WHERE name = ?1)";
        for select in [by_id, by_name] {
            if let Some(id) = self.first(select, [text], |row| row.get(0).map(RunId))? {
                return Ok(Resolved::One(id));
            }
        }
        if text.len() < Resolved::SHORTEST_PREFIX {
            return Ok(Resolved::None);
        }
        // No id goes on with the last of all characters, so this is where the prefix ends.
        let end = format!("{text}{}", char::MAX);
        let select = "SELECT id FROM runs WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3";
        Ok(Resolved::among(self.ids(select, (text, end, MOST_CANDIDATES))?))
    }

    pub(super) fn counts(&self) -> Result<Counts, Error> {
        // Whoever has not ended is open, and of those there are few.
        let select = "SELECT (SELECT count(*) FROM runs), count(*), coalesce(sum(state = 'blocked'), 0) FROM runs
            WHERE open = 1 AND state NOT IN ('completed', 'failed', 'stopped', 'exhausted')";
        let read = |row: &rusqlite::Row<'_>| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]);
        let [total, going, resting] =
            self.first(select, [], read)?.unwrap_or_default().map(i64::cast_unsigned);
        Ok(Counts { live: going - resting, resting, ended: total - going })
    }

    pub(super) fn check(&self) -> Result<Vec<Problem>, Error> {
        let mut problems = self.file_problems()?;
        for run in self.ids("SELECT id FROM runs ORDER BY no", [])? {
            problems.extend(self.stored(&run)?.iter().flat_map(audit));
        }
        Ok(problems)
    }

    /// What is stored of a run at one moment; `None` if it has just been removed.
    fn stored(&self, run: &RunId) -> Result<Option<Stored>, Error> {
        let moment = self.sql(self.connection.unchecked_transaction())?;
        let select = "SELECT seq FROM runs WHERE id = ?1";
        let Some(seq) = self.first(select, [run.as_str()], |row| row.get::<_, i64>(0))? else {
            return Ok(None);
        };
        let unknown = || Error::UnknownRun { run: run.clone() };
        let row = self.row(run).and_then(|row| row.ok_or_else(unknown));
        let events = self.events(run, 0, usize::MAX);
        self.sql(moment.finish())?;
        Ok(Some(Stored { id: run.clone(), seq: seq.cast_unsigned(), row, events }))
    }

    fn file_problems(&self) -> Result<Vec<Problem>, Error> {
        let mut found = self.texts("PRAGMA integrity_check(100)")?;
        found.retain(|line| line != "ok");
        let strays = "SELECT 'events of a run that does not exist: ' || count(*) FROM events
            WHERE run NOT IN (SELECT no FROM runs) HAVING count(*) > 0";
        found.extend(self.texts(strays)?);
        Ok(found.into_iter().map(|message| Problem { run: None, message }).collect())
    }

    fn texts(&self, select: &str) -> Result<Vec<String>, Error> {
        let mut statement = self.prepare(select)?;
        let found = self.sql(statement.query_map([], |row| row.get(0)))?;
        self.sql(found.collect())
    }

    fn ids(&self, select: &str, params: impl Params) -> Result<Vec<RunId>, Error> {
        let mut statement = self.prepare(select)?;
        let found = self.sql(statement.query_map(params, |row| row.get(0).map(RunId)))?;
        self.sql(found.collect())
    }

    pub(super) fn first<T>(
        &self,
        select: &str,
        params: impl Params,
        read: impl FnOnce(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        let mut statement = self.prepare(select)?;
        self.sql(statement.query_row(params, read).optional())
    }

    pub(super) fn prepare(&self, select: &str) -> Result<CachedStatement<'_>, Error> {
        self.sql(self.connection.prepare_cached(select))
    }

    pub(super) fn sql<T>(&self, result: rusqlite::Result<T>) -> Result<T, Error> {
        result.map_err(|error| Error::from_sql(&self.path, &error))
    }
}
