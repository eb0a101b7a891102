//! The outbox in tables: what waits for each sink, and how telling it goes.

use outlast_engine::{RunId, Time};
use rusqlite::Row;

use super::Sqlite;
use super::columns::time;
use super::job::{Work, WriteJob};
use super::read::Reader;
use super::transaction::Group;
use crate::{
    Backlog, Change, Done, Error, NoticeCounts, Outbox, Settled, SinkHealth, SinkState, Waiting,
};

const COLUMNS: &str = "id, run, kind, at, body, tries, next_at, since, batch";

// A notice waits at least as long as every earlier one of its run, and counts as refused as often. The index
// has all of this, so that a long backlog is looked through without its bodies.
const SELECT_WAITING: &str = "WITH queue AS (
        SELECT no, max(tries) OVER earlier AS tries, max(coalesce(next_at, 0)) OVER earlier AS next_at
        FROM outbox WHERE sink = ?1 AND state = 'pending'
        WINDOW earlier AS (PARTITION BY run ORDER BY no))
    SELECT id, run, kind, at, body, o.tries, o.next_at, since, batch FROM queue JOIN outbox o USING (no)
    WHERE queue.next_at <= ?2 ORDER BY queue.tries, no LIMIT ?3";

const SETTLE: &str =
    "UPDATE outbox SET state = ?3, settled_at = ?4, problem = coalesce(?5, problem), body = ''
    WHERE id = ?1 AND sink = ?2 AND state = 'pending'";
const REFUSE: &str =
    "UPDATE outbox SET tries = tries + 1, next_at = ?4, since = coalesce(since, ?3), problem = ?5
    WHERE id = ?1 AND sink = ?2 AND state = 'pending'";
const NOTE_FAILURE: &str =
    "UPDATE outbox SET problem = ?3 WHERE id = ?1 AND sink = ?2 AND state = 'pending'";
const FAIL: &str =
    "INSERT INTO sinks (sink, failures, since, next_at, problem) VALUES (?1, 1, ?2, ?3, ?4)
    ON CONFLICT (sink) DO UPDATE SET failures = failures + 1, next_at = ?3, problem = ?4";
const DISABLE: &str =
    "INSERT INTO sinks (sink, failures, since, problem, disabled_at) VALUES (?1, 1, ?2, ?3, ?2)
    ON CONFLICT (sink) DO UPDATE SET failures = failures + 1, problem = ?3, disabled_at = ?2";
const HEAL: &str = "DELETE FROM sinks WHERE sink = ?1";
const LET_GO: &str = "UPDATE outbox SET next_at = NULL, since = NULL WHERE sink = ?1 AND state = 'pending' AND since IS NOT NULL";
const BATCH: &str = "UPDATE outbox SET batch = ?3 WHERE id = ?1 AND sink = ?2 AND state = 'pending' AND batch IS NULL";
const GIVE_UP: &str =
    "UPDATE outbox SET state = 'given_up', settled_at = ?3, problem = ?4, body = ''
    WHERE sink = ?1 AND state = 'pending' AND (at < ?2 OR no <= coalesce(
        (SELECT no FROM outbox WHERE sink = ?1 AND state = 'pending' ORDER BY no DESC LIMIT 1 OFFSET ?5), 0))";
const PRUNE_OLD: &str = "DELETE FROM outbox WHERE state <> 'pending' AND settled_at < ?1";
const PRUNE_MANY: &str =
    "DELETE FROM outbox WHERE no IN (SELECT no FROM outbox WHERE state <> 'pending'
    ORDER BY settled_at DESC, no DESC LIMIT -1 OFFSET ?1)";

impl Outbox for Sqlite {
    fn change(&self, epoch: u64, change: Change, done: Done) {
        let reply = Box::new(|result: Result<u64, Error>| done(result.map(drop)));
        self.send(WriteJob { work: Work::Outbox { epoch, change: Box::new(change) }, reply });
    }

    fn waiting_sinks(&self) -> Result<Vec<String>, Error> {
        self.readers.with(|reader| {
            reader.texts("SELECT DISTINCT sink FROM outbox WHERE state = 'pending' ORDER BY sink")
        })
    }

    fn waiting(&self, sink: &str, now: Time, most: usize) -> Result<Vec<Waiting>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.readers.with(|reader| {
            let mut statement = reader.prepare(SELECT_WAITING)?;
            let found = reader.sql(statement.query_map((sink, time(now), most), waiting))?;
            reader.sql(found.collect())
        })
    }

    fn batch(&self, sink: &str, batch: &str) -> Result<Vec<Waiting>, Error> {
        let select = format!(
            "SELECT {COLUMNS} FROM outbox WHERE sink = ?1 AND state = 'pending' AND batch = ?2 ORDER BY no"
        );
        self.readers.with(|reader| {
            let mut statement = reader.prepare(&select)?;
            let found = reader.sql(statement.query_map((sink, batch), waiting))?;
            reader.sql(found.collect())
        })
    }

    fn backlog(&self, sink: &str, now: Time) -> Result<Backlog, Error> {
        let select = "SELECT count(*), min(CASE WHEN next_at > ?2 THEN next_at END) FROM outbox
            WHERE sink = ?1 AND state = 'pending'";
        let read =
            |row: &Row<'_>| Ok(Backlog { waiting: count(row, 0)?, next_at: moment(row, 1)? });
        self.readers
            .with(|reader| Ok(reader.first(select, (sink, time(now)), read)?.unwrap_or_default()))
    }

    fn told_since(&self, sink: &str, after: Time) -> Result<u64, Error> {
        let select = "SELECT count(DISTINCT coalesce(batch, id)) FROM outbox
            WHERE state <> 'pending' AND settled_at > ?2 AND state = 'delivered' AND sink = ?1";
        self.readers.with(|reader| {
            Ok(reader.first(select, (sink, time(after)), |row| count(row, 0))?.unwrap_or(0))
        })
    }

    fn sink_health(&self, sink: &str) -> Result<Option<SinkHealth>, Error> {
        let select =
            "SELECT failures, since, next_at, problem, disabled_at FROM sinks WHERE sink = ?1";
        self.readers.with(|reader| reader.first(select, [sink], |row| health(row, 0)))
    }

    fn sink_states(&self) -> Result<Vec<SinkState>, Error> {
        let select = "WITH known AS (
                SELECT sink, sum(state = 'pending') AS pending, sum(state = 'delivered') AS delivered,
                    sum(state = 'given_up') AS given_up, sum(state = 'pending' AND tries > 0) AS refused,
                    min(CASE WHEN state = 'pending' THEN at END) AS oldest,
                    min(CASE WHEN state = 'pending' THEN since END) AS refused_since,
                    max(CASE WHEN state = 'given_up' THEN settled_at END) AS given_up_at
                FROM outbox GROUP BY sink
                UNION ALL
                SELECT sink, 0, 0, 0, 0, NULL, NULL, NULL FROM sinks WHERE sink NOT IN (SELECT sink FROM outbox))
            SELECT known.sink, pending, delivered, given_up, refused, oldest, refused_since,
                (SELECT problem FROM outbox WHERE outbox.sink = known.sink AND state = 'pending' AND tries > 0
                 ORDER BY no DESC LIMIT 1),
                failures, since, next_at, problem, disabled_at, given_up_at
            FROM known LEFT JOIN sinks ON sinks.sink = known.sink ORDER BY known.sink";
        let read = |row: &Row<'_>| {
            let is_unwell = row.get::<_, Option<i64>>(8)?.is_some();
            Ok(SinkState {
                sink: row.get(0)?,
                pending: count(row, 1)?,
                delivered: count(row, 2)?,
                given_up: count(row, 3)?,
                given_up_at: moment(row, 13)?,
                refused: count(row, 4)?,
                oldest_at: moment(row, 5)?,
                refused_since: moment(row, 6)?,
                refusal: row.get(7)?,
                health: is_unwell.then(|| health(row, 8)).transpose()?,
            })
        };
        self.readers.with(|reader| {
            let mut statement = reader.prepare(select)?;
            let found = reader.sql(statement.query_map([], read))?;
            reader.sql(found.collect())
        })
    }

    fn notice_counts(&self, run: &RunId) -> Result<NoticeCounts, Error> {
        self.readers.with(|reader| counts(reader, run))
    }
}

fn counts(reader: &Reader, run: &RunId) -> Result<NoticeCounts, Error> {
    let select =
        "SELECT coalesce(sum(state = 'pending'), 0), coalesce(sum(state = 'delivered'), 0),
            coalesce(sum(state = 'muted'), 0), coalesce(sum(state = 'given_up'), 0),
            (SELECT problem FROM outbox WHERE run = ?1 AND problem IS NOT NULL
             AND state IN ('pending', 'given_up') ORDER BY no DESC LIMIT 1)
        FROM outbox WHERE run = ?1";
    let read = |row: &Row<'_>| {
        Ok(NoticeCounts {
            pending: count(row, 0)?,
            delivered: count(row, 1)?,
            muted: count(row, 2)?,
            given_up: count(row, 3)?,
            problem: row.get(4)?,
        })
    };
    Ok(reader.first(select, [run.as_str()], read)?.unwrap_or_default())
}

/// Writes one change into the transaction.
pub(super) fn change(group: &Group<'_>, change: &Change) -> Result<(), Error> {
    match change {
        Change::Settle { sink, ids, how, at, problem } => {
            for id in ids {
                group.execute(SETTLE, (id, sink, how.word(), time(*at), problem))?;
            }
            match how {
                Settled::Delivered => group.execute(HEAL, [sink]),
                Settled::Muted | Settled::GivenUp => Ok(()),
            }
        }
        Change::Refused { sink, ids, at, next_at, problem } => ids.iter().try_for_each(|id| {
            group.execute(REFUSE, (id, sink, time(*at), time(*next_at), problem))
        }),
        Change::Failed { sink, ids, at, next_at, problem } => {
            ids.iter().try_for_each(|id| group.execute(NOTE_FAILURE, (id, sink, problem)))?;
            group.execute(FAIL, (sink, time(*at), time(*next_at), problem))
        }
        Change::Disable { sink, at, problem } => group.execute(DISABLE, (sink, time(*at), problem)),
        Change::Enable { sink } => {
            group.execute(HEAL, [sink])?;
            group.execute(LET_GO, [sink])
        }
        Change::Batch { sink, ids, batch } => {
            ids.iter().try_for_each(|id| group.execute(BATCH, (id, sink, batch)))
        }
        Change::GiveUp { sink, before, keep, at, problem } => {
            let values = (sink, time(*before), time(*at), problem, keep.cast_signed());
            group.execute(GIVE_UP, values)
        }
        Change::Prune { before, keep } => {
            group.execute(PRUNE_OLD, [time(*before)])?;
            group.execute(PRUNE_MANY, [keep.cast_signed()])
        }
    }
}

fn waiting(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    Ok(Waiting {
        id: row.get(0)?,
        run: RunId(row.get(1)?),
        kind: row.get(2)?,
        at: Time(row.get::<_, i64>(3)?.cast_unsigned()),
        body: row.get(4)?,
        tries: row.get(5)?,
        next_at: moment(row, 6)?,
        since: moment(row, 7)?,
        batch: row.get(8)?,
    })
}

/// How a sink is, from the five columns that begin with this one.
fn health(row: &Row<'_>, first: usize) -> rusqlite::Result<SinkHealth> {
    Ok(SinkHealth {
        failures: row.get(first)?,
        since: moment(row, first + 1)?.unwrap_or(Time(0)),
        next_at: moment(row, first + 2)?,
        problem: row.get(first + 3)?,
        disabled_at: moment(row, first + 4)?,
    })
}

fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::cast_unsigned)
}

fn moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Time>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|ms| Time(ms.cast_unsigned())))
}
