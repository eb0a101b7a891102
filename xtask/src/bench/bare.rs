//! SQLite alone: one thread writes the rows of appends in groups, without rules, replies or a second thread.

use std::collections::HashMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use outlast_engine::{Exit, Row, Time, Word};
use outlast_store::Append;
use rusqlite::{Connection, params};

/// Pages that the log may grow by before they are moved, as in the journal under load.
const LOG_PAGES: u32 = 6000;
/// As the journal's writer has it.
const CACHE_KIB: i32 = 2048;

const UPDATE: &str = "UPDATE runs SET seq = ?2, state = ?3, reason_code = ?4, health = ?5, turn = ?6,
    attempt = ?7, survivors = ?8, started_at = ?9, ended_at = ?10, exit_code = ?11, exit_signal = ?12,
    phase = ?13, tokens = ?14, cost_usd_micros = ?15 WHERE no = ?1";
const INSERT: &str =
    "INSERT INTO events (run, seq, at, kind, epoch, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// What one append writes, ready to be bound.
pub(super) struct Rows {
    row: Row,
    epoch: i64,
    events: Vec<Written>,
}

struct Written {
    seq: i64,
    at: i64,
    kind: &'static str,
    body: String,
}

impl Rows {
    pub(super) fn of(append: &Append) -> Result<Self> {
        let written = append.events.iter().map(|event| {
            Ok(Written {
                seq: event.seq.cast_signed(),
                at: ms(event.at),
                kind: event.fact.kind(),
                body: serde_json::to_string(&event.fact).context("a fact as JSON")?,
            })
        });
        let events = written.collect::<Result<Vec<_>>>()?;
        Ok(Self { row: append.row.clone(), epoch: append.epoch.cast_signed(), events })
    }
}

/// Appends in a second, into a journal that has their runs.
pub(super) fn rate(path: &Path, appends: &[Rows], group: usize) -> Result<f64> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "cache_spill", false)?;
    connection.execute_batch(&format!("PRAGMA wal_autocheckpoint = {LOG_PAGES}"))?;
    let numbers = numbers(&connection)?;
    let begin = Instant::now();
    for orders in appends.chunks(group) {
        connection.execute_batch("BEGIN IMMEDIATE")?;
        orders.iter().try_for_each(|rows| write(&connection, numbers[&rows.row.id.0], rows))?;
        connection.execute_batch("COMMIT")?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a few thousand appends")]
    Ok(appends.len() as f64 / begin.elapsed().as_secs_f64())
}

fn numbers(connection: &Connection) -> Result<HashMap<String, i64>> {
    let mut select = connection.prepare("SELECT id, no FROM runs")?;
    let pairs = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.collect::<rusqlite::Result<_>>()?)
}

fn write(connection: &Connection, no: i64, rows: &Rows) -> Result<()> {
    let Rows { row, epoch, events } = rows;
    let (exit_code, exit_signal) = match row.exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let seq = events.last().map(|event| event.seq);
    connection.prepare_cached(UPDATE)?.execute(params![
        no,
        seq,
        row.state.word(),
        row.reason_code.as_ref().map(Word::as_str),
        row.health.word(),
        row.turn,
        row.attempt,
        i64::try_from(row.survivors)?,
        row.started_at.map(ms),
        row.ended_at.map(ms),
        exit_code,
        exit_signal,
        row.phase,
        row.tokens.cast_signed(),
        row.cost_usd_micros.cast_signed(),
    ])?;
    for event in events {
        let Written { seq, at, kind, body } = event;
        connection.prepare_cached(INSERT)?.execute(params![no, seq, at, kind, epoch, body])?;
    }
    Ok(())
}

fn ms(time: Time) -> i64 {
    time.0.cast_signed()
}
