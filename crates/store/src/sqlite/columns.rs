//! How a row and an event stand in columns, and back.
//!
//! Reading is the suspicious half: whatever does not parse becomes [`Error::UnreadableRun`] of that run,
//! and nothing is guessed.

use std::collections::BTreeMap;

use outlast_engine::{Event, Exit, Fact, Health, Known, Row, RunId, StateName, Time, Word};
use rusqlite::types::FromSql;

use crate::Error;

/// The columns that [`row`] reads.
pub(super) const ROW: &str =
    "id, name, key, state, reason_code, health, what, turn, attempt, created_at,
    started_at, ended_at, exit_code, exit_signal, labels, survivors, open, phase, tokens,
    cost_usd_micros, max_turns, trigger, parent, summary, task, known, reserved_tokens,
    reserved_cost_usd_micros, worked_ms, unreported";

/// How many those are: where a column stands that is read after them.
pub(super) const ROW_COUNT: usize = 30;

/// The columns that [`event`] reads.
pub(super) const EVENT: &str = "events.seq, at, body";

/// How many those are.
pub(super) const EVENT_COUNT: usize = 3;

pub(super) fn time(time: Time) -> i64 {
    time.0.cast_signed()
}

pub(super) fn exit(exit: Option<Exit>) -> (Option<i32>, Option<i32>) {
    match exit {
        Some(Exit::Code(code)) => (Some(code), None),
        Some(Exit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    }
}

/// The first two numbers are those of the time when a row knew only all or not all.
pub(super) fn known(known: Known) -> i64 {
    match known {
        Known { tokens: false, money: false } => 0,
        Known { tokens: true, money: true } => 1,
        Known { tokens: false, money: true } => 2,
        Known { tokens: true, money: false } => 3,
    }
}

pub(super) fn labels(row: &Row) -> String {
    let labels =
        row.labels.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
    serde_json::Value::Object(labels).to_string()
}

pub(super) fn body(fact: &Fact) -> Result<String, serde_json::Error> {
    serde_json::to_string(fact)
}

pub(super) fn event(run: &RunId, columns: &rusqlite::Row<'_>) -> Result<Event, Error> {
    let unreadable = |what: String| Error::UnreadableRun { run: run.clone(), what };
    let read = || Ok((columns.get::<_, i64>(0)?, columns.get::<_, i64>(1)?));
    let (seq, at) = read().map_err(|error: rusqlite::Error| unreadable(error.to_string()))?;
    let at_event = |error: String| unreadable(format!("event {seq}: {error}"));
    let body = columns.get_ref(2).map_err(|error| at_event(error.to_string()))?;
    let body = body.as_str().map_err(|error| at_event(error.to_string()))?;
    let fact = serde_json::from_str(body).map_err(|error| at_event(error.to_string()))?;
    Ok(Event { seq: seq.cast_unsigned(), at: Time(at.cast_unsigned()), fact })
}

pub(super) fn row(columns: &rusqlite::Row<'_>) -> Result<Row, Error> {
    let reader = Reader { columns };
    reader.row().map_err(|what| Error::UnreadableRun { run: reader.id(), what })
}

pub(super) fn state(columns: &rusqlite::Row<'_>, column: usize) -> Result<StateName, String> {
    Reader { columns }.state(column)
}

struct Reader<'a> {
    columns: &'a rusqlite::Row<'a>,
}

impl Reader<'_> {
    fn id(&self) -> RunId {
        RunId(self.get(0).unwrap_or_else(|_| "?".to_owned()))
    }

    fn row(&self) -> Result<Row, String> {
        Ok(Row {
            id: self.id(),
            name: self.get(1)?,
            key: self.get(2)?,
            state: self.state(3)?,
            reason_code: self.get::<Option<String>>(4)?.map(|code| Word::of(&code)),
            health: self.health(5)?,
            what: self.get(6)?,
            turn: self.get(7)?,
            attempt: self.get(8)?,
            created_at: from_time(self.get(9)?),
            started_at: self.get::<Option<i64>>(10)?.map(from_time),
            ended_at: self.get::<Option<i64>>(11)?.map(from_time),
            exit: self.exit(12, 13)?,
            labels: self.labels(14)?,
            survivors: usize::try_from(self.get::<i64>(15)?).map_err(|error| error.to_string())?,
            is_open: self.get(16)?,
            phase: self.get(17)?,
            tokens: self.get::<i64>(18)?.cast_unsigned(),
            cost_usd_micros: self.get::<i64>(19)?.cast_unsigned(),
            max_turns: self.get(20)?,
            trigger: self.get(21)?,
            parent: self.get::<Option<String>>(22)?.map(RunId),
            summary: self.get(23)?,
            task: self.get(24)?,
            known: self.known(25)?,
            reserved_tokens: self.get::<i64>(26)?.cast_unsigned(),
            reserved_cost_usd_micros: self.get::<i64>(27)?.cast_unsigned(),
            worked_ms: self.get::<Option<i64>>(28)?.map(i64::cast_unsigned),
            unreported: self.get::<Option<i64>>(29)?.map(i64::cast_unsigned),
        })
    }

    fn get<T: FromSql>(&self, column: usize) -> Result<T, String> {
        self.columns.get(column).map_err(|error| error.to_string())
    }

    fn text(&self, column: usize) -> Result<&str, String> {
        let value = self.columns.get_ref(column).map_err(|error| error.to_string())?;
        value.as_str().map_err(|error| error.to_string())
    }

    fn state(&self, column: usize) -> Result<StateName, String> {
        let word = self.text(column)?;
        StateName::of(word).ok_or_else(|| format!("there is no state {word:?}"))
    }

    fn health(&self, column: usize) -> Result<Health, String> {
        let word = self.text(column)?;
        Health::of(word).ok_or_else(|| format!("there is no health {word:?}"))
    }

    fn known(&self, column: usize) -> Result<Known, String> {
        match self.get::<i64>(column)? {
            0 => Ok(Known::NOTHING),
            1 => Ok(Known::ALL),
            2 => Ok(Known { tokens: false, money: true }),
            3 => Ok(Known { tokens: true, money: false }),
            other => Err(format!("there is no known {other}")),
        }
    }

    fn labels(&self, column: usize) -> Result<BTreeMap<String, String>, String> {
        match self.text(column)? {
            "{}" => Ok(BTreeMap::new()),
            text => serde_json::from_str(text).map_err(|error| format!("labels: {error}")),
        }
    }

    fn exit(&self, code: usize, signal: usize) -> Result<Option<Exit>, String> {
        let code = self.get::<Option<i32>>(code)?.map(Exit::Code);
        let signal = self.get::<Option<i32>>(signal)?.map(Exit::Signal);
        Ok(code.or(signal))
    }
}

fn from_time(ms: i64) -> Time {
    Time(ms.cast_unsigned())
}
