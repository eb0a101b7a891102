//! The questions, and the few connections that they are asked over.
//!
//! Connections are made when they are needed and only read, so no question can hold up the writer.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use outlast_engine::{Event, Row, RunId, StateName};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};

use super::opened::OpenedFiles;
use super::{columns, file, schema};
use crate::audit::{Stored, audit};
use crate::journal::PageRoom;
use crate::{Account, Amount, Census, Counts, Cursor, Error, Filter, Problem, Resolved, Used};
use crate::{Written, WrittenEvent};

/// The sums of some rows of the ledger, as [`used`] reads them.
const USED: &str = "COALESCE(SUM(tokens), 0), COALESCE(SUM(cost_usd_micros), 0),
    COALESCE(SUM(reserved_tokens), 0), COALESCE(SUM(reserved_cost_usd_micros), 0),
    COALESCE(SUM(unreported), 0)";
/// Connections that are kept while no query runs.
const IDLE: usize = 2;
/// One more than are listed, which tells whether a prefix is unique.
const MOST_CANDIDATES: i64 = Resolved::MOST as i64 + 1;

/// How long questions that are being answered may keep the files from being put right.
const SHUT_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Readers {
    path: PathBuf,
    table: Mutex<Table>,
    changed: Condvar,
}

#[derive(Default)]
struct Table {
    idle: Vec<Reader>,
    lent: usize,
    is_shut: bool,
    /// The files that a connection must have open, once that is known.
    opened: Option<OpenedFiles>,
    /// Why no question is answered any more.
    gone: Option<Error>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Self {
        let (table, changed) = (Mutex::default(), Condvar::new());
        Self { path: path.to_owned(), table, changed }
    }

    pub(super) fn with<T>(
        &self,
        ask: impl FnOnce(&Reader) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.lend().and_then(|lent| ask(lent.reader()))
    }

    /// A connection for one question. [`Error::Unsaved`] if other files are at the paths of ours.
    pub(super) fn lend(&self) -> Result<Lent<'_>, Error> {
        let (taken, opened) = {
            let shut = |table: &mut Table| table.is_shut;
            let waited = self.changed.wait_while(self.table(), shut);
            let mut table = waited.expect(NO_PANIC);
            if let Some(error) = &table.gone {
                return Err(error.clone());
            }
            table.lent += 1;
            (table.idle.pop(), table.opened.clone())
        };
        // Given back also if none can be opened.
        let mut lent = Lent { readers: self, reader: taken };
        if lent.reader.is_none() {
            lent.reader = Some(Reader::open(&self.path, opened.as_ref())?);
        }
        Ok(lent)
    }

    /// Closes every connection, and lends none until `open_again`. Fails if a question takes too long.
    pub(super) fn shut(&self) -> Result<(), Error> {
        let mut table = self.table();
        table.is_shut = true;
        let waited = self.changed.wait_timeout_while(table, SHUT_WITHIN, |table| table.lent > 0);
        let (mut table, waited) = waited.expect(NO_PANIC);
        if waited.timed_out() {
            drop(table);
            self.open_again(None);
            return Err(Error::Locked(self.path.clone()));
        }
        table.idle.clear();
        Ok(())
    }

    /// Lends connections again, to the files at this place.
    pub(super) fn open_again(&self, opened: Option<OpenedFiles>) {
        let mut table = self.table();
        table.is_shut = false;
        table.opened = opened.or(table.opened.take());
        self.changed.notify_all();
    }

    /// Answers every question with this from here on.
    pub(super) fn refuse(&self, error: Error) {
        self.table().gone = Some(error);
        self.open_again(None);
    }

    pub(super) fn close(&self) {
        self.table().idle.clear();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect(NO_PANIC)
    }
}

const NO_PANIC: &str = "nothing panics while it holds the connections";

/// A connection while a question is asked over it.
pub(super) struct Lent<'a> {
    readers: &'a Readers,
    reader: Option<Reader>,
}

impl Lent<'_> {
    pub(super) fn reader(&self) -> &Reader {
        self.reader.as_ref().expect("a connection that is lent is open")
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut table = self.readers.table();
        table.lent -= 1;
        let is_kept = table.idle.len() < IDLE && !table.is_shut;
        table.idle.extend(self.reader.take().filter(|_| is_kept));
        self.readers.changed.notify_all();
    }
}

/// One connection, lent for one question at a time.
pub(super) struct Reader {
    connection: Connection,
    path: PathBuf,
}

impl Reader {
    pub(super) fn open(path: &Path, opened: Option<&OpenedFiles>) -> Result<Self, Error> {
        let check = || match opened {
            Some(opened) if !opened.is_there() => Err(Error::Unsaved {
                path: path.to_owned(),
                what: "is not the file that this daemon has open".to_owned(),
                why: "it is being looked at".to_owned(),
            }),
            Some(_) | None => Ok(()),
        };
        // Before, because SQLite removes the log beside an empty file. After, because what was opened under our name
        // may be another's.
        check()?;
        let opened = schema::open_reader(path).map_err(|error| Error::from_sql(path, &error));
        check()?;
        Ok(Self { connection: opened?, path: path.to_owned() })
    }

    /// Asks over a connection that is there already.
    pub(super) fn over(connection: Connection, path: &Path) -> Self {
        Self { connection, path: path.to_owned() }
    }

    pub(super) fn into_connection(self) -> Connection {
        self.connection
    }

    /// Looks through all pages, as they are on disk.
    pub(super) fn quick_check(&self) -> Result<(), Error> {
        schema::quick_check(&self.path, &self.connection)
    }

    /// Asks what every journal of our schema can answer. One of an earlier schema is brought up to date when it is
    /// opened, so there is nothing to ask of it yet.
    pub(super) fn look(&self) -> Result<(), Error> {
        let (found, known) = (self.sql(schema::user_version(&self.connection))?, schema::KNOWN);
        match found {
            found if found > known => Err(Error::Newer { path: self.path.clone(), found, known }),
            found if found == known => self.counts().map(drop),
            _ => Ok(()),
        }
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
            events.push(columns::event(run, row).map_err(|error| self.with_build(error))?);
        }
        if events.is_empty() {
            self.check_known(run)?;
        }
        Ok(events)
    }

    /// An event that this build does not know is refused with the build that conducted the run last.
    fn with_build(&self, error: Error) -> Error {
        let Error::UnreadableRun { run, what } = error else { return error };
        let select = "SELECT body FROM events WHERE run = (SELECT no FROM runs WHERE id = ?1)
             AND (seq = 1 OR body LIKE '{\"kind\":\"Segment\"%') ORDER BY seq DESC";
        let body = self.first(select, [run.as_str()], |row| row.get::<_, String>(0));
        let body = body.ok().flatten().and_then(|body| {
            let fact: serde_json::Value = serde_json::from_str(&body).ok()?;
            let build = fact.get("to").or_else(|| fact.pointer("/spec/build"))?;
            build.as_str().map(str::to_owned)
        });
        let what = match body {
            Some(build) => format!("{what} (outlast {build} conducted the run last)"),
            None => what,
        };
        Error::UnreadableRun { run, what }
    }

    pub(super) fn written(&self, after: u64, most: usize) -> Result<Written, Error> {
        let select = format!(
            "SELECT {}, length(CAST(body AS BLOB)), events.no, id, name FROM events JOIN runs ON runs.no = run
             WHERE events.no > ?1 ORDER BY events.no LIMIT ?2",
            columns::EVENT
        );
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let mut statement = self.prepare(&select)?;
        let mut found = self.sql(statement.query((after.cast_signed(), most)))?;
        let mut written = Written { events: Vec::new(), last: after };
        let mut bytes = 0;
        while let Some(row) = self.sql(found.next())? {
            bytes += self.sql(row.get::<_, i64>(columns::EVENT_COUNT))?;
            let number = self.sql(row.get::<_, i64>(columns::EVENT_COUNT + 1))?.cast_unsigned();
            let run = RunId(self.sql(row.get(columns::EVENT_COUNT + 2))?);
            let name = self.sql(row.get(columns::EVENT_COUNT + 3))?;
            written.last = number;
            // As in a list: `check` reports what does not parse.
            if let Ok(event) = columns::event(&run, row) {
                written.events.push(WrittenEvent { number, run, name, event });
            }
            if bytes >= Written::MOST_BYTES {
                break;
            }
        }
        Ok(written)
    }

    pub(super) fn written_before(&self, events: usize) -> Result<u64, Error> {
        let select = "SELECT no FROM events ORDER BY no DESC LIMIT 1 OFFSET ?1";
        let events = i64::try_from(events).unwrap_or(i64::MAX);
        let number = self.first(select, [events], |row| row.get::<_, i64>(0))?;
        Ok(number.unwrap_or(0).cast_unsigned())
    }

    pub(super) fn cursor(&self, run: &RunId) -> Result<Option<Cursor>, Error> {
        let select = "SELECT no FROM runs WHERE id = ?1";
        let no = self.first(select, [run.as_str()], |row| row.get::<_, i64>(0))?;
        Ok(no.map(|no| Cursor(no.cast_unsigned())))
    }

    fn check_known(&self, run: &RunId) -> Result<(), Error> {
        let known = self.first("SELECT 1 FROM runs WHERE id = ?1", [run.as_str()], |_| Ok(()))?;
        known.ok_or_else(|| Error::UnknownRun { run: run.clone() })
    }

    pub(super) fn accounts(&self, since_slot: u64) -> Result<Vec<Account>, Error> {
        let select = format!("SELECT labels, {USED} FROM ledger WHERE slot >= ?1 GROUP BY labels");
        let mut statement = self.prepare(&select)?;
        let mut found = self.sql(statement.query([since_slot.cast_signed()]))?;
        let mut accounts = Vec::new();
        while let Some(row) = self.sql(found.next())? {
            let labels = self.labels(self.sql(row.get(0))?)?;
            accounts.push(Account { labels, used: self.sql(used(row, 1))? });
        }
        accounts.sort_by(|one, other| one.labels.cmp(&other.labels));
        Ok(accounts)
    }

    pub(super) fn accounts_by_slot(&self, since_slot: u64) -> Result<Vec<(u64, Account)>, Error> {
        let select = format!(
            "SELECT slot, labels, {USED} FROM ledger WHERE slot >= ?1 GROUP BY slot, labels"
        );
        let mut statement = self.prepare(&select)?;
        let mut found = self.sql(statement.query([since_slot.cast_signed()]))?;
        let mut accounts = Vec::new();
        while let Some(row) = self.sql(found.next())? {
            let slot: i64 = self.sql(row.get(0))?;
            let labels = self.labels(self.sql(row.get(1))?)?;
            accounts
                .push((slot.cast_unsigned(), Account { labels, used: self.sql(used(row, 2))? }));
        }
        accounts.sort_by(|(at, one), (then, other)| (at, &one.labels).cmp(&(then, &other.labels)));
        Ok(accounts)
    }

    /// The labels of a row of the ledger.
    fn labels(&self, text: String) -> Result<BTreeMap<String, String>, Error> {
        serde_json::from_str(&text)
            .map_err(|error| file::corrupt(&self.path, &format!("ledger: labels: {error}")))
    }

    pub(super) fn used_by(&self, run: &RunId) -> Result<Used, Error> {
        let select = format!("SELECT {USED} FROM ledger WHERE run = ?1");
        let used = self.first(&select, [run.as_str()], |row| used(row, 0))?;
        Ok(used.unwrap_or_default())
    }

    pub(super) fn note(&self, name: &str) -> Result<Option<String>, Error> {
        self.first("SELECT value FROM settings WHERE name = ?1", [name], |row| row.get(0))
    }

    pub(super) fn epoch(&self) -> Result<u64, Error> {
        let epoch = self.first("SELECT epoch FROM fence", [], |row| row.get::<_, i64>(0))?;
        Ok(epoch.unwrap_or_default().cast_unsigned())
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

    pub(super) fn visit_page(
        &self,
        filter: &Filter,
        before: Option<Cursor>,
        most: usize,
        visit: &mut dyn FnMut(Row),
    ) -> Result<Option<Cursor>, Error> {
        let which = if filter.all { "1" } else { "open = 1" };
        let select = format!(
            "SELECT {}, no FROM runs WHERE {which} AND no < ?2 AND no > ?3 AND (?1 IS NULL OR state = ?1) ORDER BY no DESC",
            columns::ROW
        );
        let mut statement = self.prepare(&select)?;
        let before = before.map_or(i64::MAX, |Cursor(no)| no.cast_signed());
        let after = filter.after.map_or(0, |Cursor(no)| no.cast_signed());
        let state = filter.state.map(StateName::word);
        let mut found = self.sql(statement.query((state, before, after)))?;
        let mut room = PageRoom::new(most);
        if room.is_full() {
            return Ok(None);
        }
        while let Some(row) = self.sql(found.next())? {
            room.look();
            let no = self.sql(row.get::<_, i64>(columns::ROW_COUNT))?;
            // As in `visit_rows`: `check` reports what does not parse.
            if let Some(row) = columns::row(row).ok().filter(|row| filter.passes(row)) {
                room.take(&row);
                visit(row);
            }
            if room.is_full() {
                return Ok(Some(Cursor(no.cast_unsigned())));
            }
        }
        Ok(None)
    }

    pub(super) fn children(&self, parent: &RunId) -> Result<Vec<Row>, Error> {
        let select = format!("SELECT {} FROM runs WHERE parent = ?1 ORDER BY no", columns::ROW);
        let mut statement = self.prepare(&select)?;
        let mut found = self.sql(statement.query([parent.as_str()]))?;
        let mut children = Vec::new();
        while let Some(row) = self.sql(found.next())? {
            children.extend(columns::row(row));
        }
        Ok(children)
    }

    pub(super) fn run_ids(&self) -> Result<Vec<RunId>, Error> {
        self.ids("SELECT id FROM runs", [])
    }

    pub(super) fn open_runs(&self) -> Result<Vec<RunId>, Error> {
        self.ids("SELECT id FROM runs WHERE open = 1 ORDER BY no", [])
    }

    pub(super) fn resolve(&self, text: &str) -> Result<Resolved, Error> {
        let by_id = "SELECT id FROM runs WHERE id = ?1";
        let by_live_name = "SELECT id FROM runs WHERE name = ?1 AND open = 1
            AND state NOT IN ('completed', 'failed', 'stopped', 'exhausted') ORDER BY no DESC LIMIT 1";
        // The newest of a name, or of a trigger with that name.
        let by_name = "SELECT id FROM runs WHERE no = max(
            coalesce((SELECT max(no) FROM runs WHERE name = ?1), 0),
            coalesce((SELECT max(no) FROM runs WHERE trigger = ?1), 0))";
        for select in [by_id, by_live_name, by_name] {
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
        // A run that has not ended is open, and of those there are few.
        let select = "SELECT (SELECT count(*) FROM runs), count(*), coalesce(sum(state = 'blocked'), 0) FROM runs
            WHERE open = 1 AND state NOT IN ('completed', 'failed', 'stopped', 'exhausted')";
        let read = |row: &rusqlite::Row<'_>| Ok([row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?]);
        let [total, going, resting] =
            self.first(select, [], read)?.unwrap_or_default().map(i64::cast_unsigned);
        Ok(Counts { live: going - resting, resting, ended: total - going })
    }

    pub(super) fn census(&self) -> Result<Vec<Census>, Error> {
        // The kind never changes, so it stands in no column: this is asked a few times a minute at most.
        let select = "SELECT state, CASE WHEN json_valid(body) THEN json_extract(body, '$.spec.agent.kind') END, count(*)
            FROM runs LEFT JOIN events ON events.run = runs.no AND events.seq = 1 GROUP BY 1, 2";
        let mut statement = self.prepare(select)?;
        let mut found = self.sql(statement.query([]))?;
        let mut census = Vec::new();
        while let Some(row) = self.sql(found.next())? {
            // A state that does not parse is in no list either; `check` says so.
            let Ok(state) = columns::state(row, 0) else { continue };
            let agent = self.sql(row.get(1))?;
            let runs = self.sql(row.get::<_, i64>(2))?.cast_unsigned();
            census.push(Census { state, agent, runs });
        }
        Ok(census)
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
        let mute = "SELECT 'notices that wait and say nothing: ' || count(*) FROM outbox
            WHERE state = 'pending' AND body = '' HAVING count(*) > 0";
        found.extend(self.texts(mute)?);
        Ok(found.into_iter().map(|message| Problem { run: None, message }).collect())
    }

    pub(super) fn texts(&self, select: &str) -> Result<Vec<String>, Error> {
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

/// The columns of [`USED`], from this one on.
fn used(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Used> {
    let of = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    Ok(Used {
        amount: Amount { tokens: of(at)?, cost_usd_micros: of(at + 1)? },
        reserved: Amount { tokens: of(at + 2)?, cost_usd_micros: of(at + 3)? },
        unreported: of(at + 4)?,
    })
}
