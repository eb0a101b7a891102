//! The work of each job, written into the transaction of its group.
//!
//! Every rule is checked before the first statement that writes, so a refused job leaves no trace in the
//! transaction it was part of.

use outlast_engine::{Row, RunId, Word};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::job::Work;
use super::transaction::Group;
use super::{columns, outbox};
use crate::{Append, Entry, Error, Remove, Used, rules};

const SELECT_RUN: &str = "SELECT no, seq, open FROM runs WHERE id = ?1";
const SELECT_KEY: &str = "SELECT id FROM runs WHERE key = ?1";
// A run that has not ended is open, and the index has the open runs of a name together.
const SELECT_NAME: &str = "SELECT id FROM runs WHERE name = ?1 AND open = 1
    AND state NOT IN ('completed', 'failed', 'stopped', 'exhausted') ORDER BY no LIMIT 1";
const INSERT_RUN: &str = "INSERT INTO runs
    (id, seq, open, state, reason_code, health, turn, attempt, survivors, created_at, started_at, ended_at,
     exit_code, exit_signal, name, key, labels, what, phase, tokens, cost_usd_micros, max_turns,
     trigger, parent, summary, task, known, reserved_tokens, reserved_cost_usd_micros, worked_ms,
     unreported)
    VALUES (:id, :seq, :open, :state, :reason_code, :health, :turn, :attempt, :survivors, :created_at,
     :started_at, :ended_at, :exit_code, :exit_signal, :name, :key, :labels, :what, :phase, :tokens,
     :cost_usd_micros, :max_turns, :trigger, :parent, :summary, :task, :known, :reserved_tokens,
     :reserved_cost_usd_micros, :worked_ms, :unreported)";
// Leaves out every column that stands in an index, so that no page of an index is touched.
const UPDATE_RUN: &str = "UPDATE runs SET seq = ?2, state = ?3, reason_code = ?4, health = ?5, turn = ?6,
    attempt = ?7, survivors = ?8, started_at = ?9, ended_at = ?10, exit_code = ?11, exit_signal = ?12,
    phase = ?13, tokens = ?14, cost_usd_micros = ?15, summary = ?16, task = ?17, max_turns = ?18,
    known = ?19, reserved_tokens = ?20, reserved_cost_usd_micros = ?21, worked_ms = ?22,
    unreported = ?23 WHERE no = ?1";
const UPDATE_OPEN: &str = "UPDATE runs SET open = ?2 WHERE no = ?1";
// Without a number it gets the next one.
const INSERT_EVENT: &str =
    "INSERT INTO events (no, run, seq, at, kind, epoch, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const INSERT_NOTICE: &str =
    "INSERT INTO outbox (id, run, sink, kind, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (id, sink) DO NOTHING";
const SELECT_NOTICE: &str = "SELECT 1 FROM outbox WHERE run = ?1 LIMIT 1";
const UPSERT_LEDGER: &str = "INSERT INTO ledger
    (run, slot, labels, tokens, cost_usd_micros, reserved_tokens, reserved_cost_usd_micros, unreported)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (run, slot) DO UPDATE
    SET tokens = tokens + excluded.tokens, cost_usd_micros = cost_usd_micros + excluded.cost_usd_micros,
    reserved_tokens = reserved_tokens + excluded.reserved_tokens,
    reserved_cost_usd_micros = reserved_cost_usd_micros + excluded.reserved_cost_usd_micros,
    unreported = unreported + excluded.unreported";
const DELETE_EVENTS: &str = "DELETE FROM events WHERE run = ?1";
const DELETE_RUN: &str = "DELETE FROM runs WHERE no = ?1";
// A notice that is still to be delivered outlives its run.
const DELETE_TOLD: &str = "DELETE FROM outbox WHERE run = ?1 AND state <> 'pending'";

/// What the table says of a run before it is written to.
struct Found {
    no: i64,
    seq: u64,
    is_open: bool,
}

impl Group<'_> {
    /// Does the work and returns what its reply is called with.
    pub(super) fn write(&mut self, work: &Work) -> Result<u64, Error> {
        match work {
            Work::TakeEpoch { floor } => self.take_epoch(*floor)?,
            Work::Append(append) => self.append(append)?,
            Work::Remove { run, epoch, how } => self.remove(run, *epoch, *how)?,
            Work::Outbox { epoch, change } => {
                rules::check_epoch(*epoch, self.epoch())?;
                outbox::change(self, change)?;
            }
            Work::Notes { notes, epoch } => {
                rules::check_epoch(*epoch, self.epoch())?;
                for (name, value) in notes {
                    self.note(name, value.as_deref())?;
                }
            }
            Work::Trigger { change, epoch } => return self.change_trigger(change, *epoch),
            // The writer has looked before the transaction.
            Work::Look(_) => {}
        }
        Ok(self.epoch())
    }

    fn append(&self, append: &Append) -> Result<(), Error> {
        rules::check_epoch(append.epoch, self.epoch())?;
        rules::check_numbers(append)?;
        let found = self.find(&append.run)?;
        rules::check_seq(append, found.as_ref().map(|found| found.seq))?;
        let no = match found {
            Some(found) => self.update(append, &found)?,
            None => self.create(append)?,
        };
        self.insert_events(no, append)?;
        self.insert_outbox(append)?;
        self.charge(append)
    }

    fn create(&self, append: &Append) -> Result<i64, Error> {
        let row = &append.row;
        if let Some(key) = &row.key {
            rules::check_key(key, self.holder(SELECT_KEY, key)?)?;
        }
        if let Some(name) = &row.name {
            rules::check_name(name, self.holder(SELECT_NAME, name)?)?;
        }
        rules::check_id(&append.run, self.has_notices(&append.run)?)?;
        let (exit_code, exit_signal) = columns::exit(row.exit);
        self.execute(
            INSERT_RUN,
            named_params! {
                ":id": append.run.as_str(), ":seq": last_seq(append), ":open": row.is_open,
                ":state": row.state.word(), ":reason_code": row.reason_code.as_ref().map(Word::as_str), ":health": row.health.word(),
                ":turn": row.turn, ":attempt": row.attempt, ":survivors": survivors(row),
                ":created_at": columns::time(row.created_at), ":started_at": row.started_at.map(columns::time),
                ":ended_at": row.ended_at.map(columns::time), ":exit_code": exit_code, ":exit_signal": exit_signal,
                ":name": row.name, ":key": row.key, ":labels": columns::labels(row), ":what": row.what,
                ":phase": row.phase, ":tokens": row.tokens.cast_signed(),
                ":cost_usd_micros": row.cost_usd_micros.cast_signed(), ":max_turns": row.max_turns,
                ":trigger": row.trigger, ":parent": row.parent.as_ref().map(RunId::as_str), ":summary": row.summary,
                ":task": row.task,
                ":known": columns::known(row.known), ":reserved_tokens": row.reserved_tokens.cast_signed(),
                ":reserved_cost_usd_micros": row.reserved_cost_usd_micros.cast_signed(),
                ":worked_ms": row.worked_ms.map(u64::cast_signed),
                ":unreported": row.unreported.map(u64::cast_signed),
            },
        )?;
        self.sql(|db| Ok(db.last_insert_rowid()))
    }

    fn update(&self, append: &Append, found: &Found) -> Result<i64, Error> {
        let row = &append.row;
        let (exit_code, exit_signal) = columns::exit(row.exit);
        self.frequent(UPDATE_RUN, |update| {
            update.execute(params![
                found.no,
                last_seq(append),
                row.state.word(),
                row.reason_code.as_ref().map(Word::as_str),
                row.health.word(),
                row.turn,
                row.attempt,
                survivors(row),
                row.started_at.map(columns::time),
                row.ended_at.map(columns::time),
                exit_code,
                exit_signal,
                row.phase,
                row.tokens.cast_signed(),
                row.cost_usd_micros.cast_signed(),
                row.summary,
                row.task,
                row.max_turns,
                columns::known(row.known),
                row.reserved_tokens.cast_signed(),
                row.reserved_cost_usd_micros.cast_signed(),
                row.worked_ms.map(u64::cast_signed),
                row.unreported.map(u64::cast_signed),
            ])
        })?;
        if row.is_open != found.is_open {
            self.execute(UPDATE_OPEN, (found.no, row.is_open))?;
        }
        Ok(found.no)
    }

    fn insert_events(&self, no: i64, append: &Append) -> Result<(), Error> {
        for event in &append.events {
            let body = columns::body(&event.fact).map_err(|error| Error::Io(error.to_string()))?;
            let (seq, at, epoch) =
                (event.seq.cast_signed(), columns::time(event.at), append.epoch.cast_signed());
            let number = self.take_event_number();
            let values = params![number, no, seq, at, event.fact.kind(), epoch, body];
            self.frequent(INSERT_EVENT, |insert| insert.execute(values))?;
        }
        Ok(())
    }

    fn insert_outbox(&self, append: &Append) -> Result<(), Error> {
        for notice in &append.outbox {
            let at = columns::time(notice.at);
            let run = append.run.as_str();
            let values = (&notice.id, run, &notice.sink, &notice.kind, at, &notice.body);
            self.execute(INSERT_NOTICE, values)?;
        }
        Ok(())
    }

    fn charge(&self, append: &Append) -> Result<(), Error> {
        let Entry { slot, used } = append.spent;
        if used.is_nothing() {
            return Ok(());
        }
        let Used { amount, reserved, unreported } = used;
        let labels = columns::labels(&append.row);
        let values = (
            append.run.as_str(),
            slot.cast_signed(),
            labels,
            amount.tokens.cast_signed(),
            amount.cost_usd_micros.cast_signed(),
            reserved.tokens.cast_signed(),
            reserved.cost_usd_micros.cast_signed(),
            unreported.cast_signed(),
        );
        self.execute(UPSERT_LEDGER, values)
    }

    fn remove(&self, run: &RunId, epoch: u64, how: Remove) -> Result<(), Error> {
        rules::check_epoch(epoch, self.epoch())?;
        let found = self.find(run)?;
        rules::check_removal(run, found.as_ref().map(|found| found.is_open), how)?;
        if let Some(Found { no, .. }) = found {
            self.keep_last_event()?;
            self.execute(DELETE_EVENTS, [no])?;
            self.execute(DELETE_RUN, [no])?;
            self.execute(DELETE_TOLD, [run.as_str()])?;
        }
        Ok(())
    }

    fn find(&self, run: &RunId) -> Result<Option<Found>, Error> {
        let found = |row: &rusqlite::Row<'_>| {
            Ok(Found {
                no: row.get(0)?,
                seq: row.get::<_, i64>(1)?.cast_unsigned(),
                is_open: row.get(2)?,
            })
        };
        self.frequent(SELECT_RUN, |select| select.query_row([run.as_str()], found).optional())
    }

    fn has_notices(&self, run: &RunId) -> Result<bool, Error> {
        let found = |db: &Connection| {
            db.prepare_cached(SELECT_NOTICE)?.query_row([run.as_str()], |_| Ok(())).optional()
        };
        Ok(self.sql(found)?.is_some())
    }

    fn holder(&self, select: &str, text: &str) -> Result<Option<RunId>, Error> {
        self.sql(|db| {
            db.prepare_cached(select)?.query_row([text], |row| row.get(0).map(RunId)).optional()
        })
    }
}

fn last_seq(append: &Append) -> i64 {
    append.events.last().map_or(append.expected_seq, |event| event.seq).cast_signed()
}

fn survivors(row: &Row) -> i64 {
    i64::try_from(row.survivors).unwrap_or(i64::MAX)
}
