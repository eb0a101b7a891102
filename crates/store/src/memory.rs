//! The journal in memory: the twin of the one on disk, for the simulator and for tests.
//!
//! Starts no threads and does no IO; `done` is called before `append` returns. Clones share one store, as
//! two handles on one file do. Faults happen only when they are asked for.

mod outbox;
mod triggers;

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard};

use outlast_engine::{Event, Row, RunId, StateName};

use crate::audit::{Stored, audit};
use crate::journal::PageRoom;
use crate::{
    Account, Append, Counts, Cursor, Done, Entry, Error, Filter, Journal, Ledger, Notes, Problem,
    Remove, Resolved, Used, Written, WrittenEvent, rules,
};

#[derive(Debug, Clone, Default)]
pub struct Memory {
    shared: Arc<Mutex<Shelf>>,
}

/// What goes wrong with an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is written, and the writer is told that there is no room.
    RefuseFull,
    /// The process dies before the commit: nothing is written.
    LoseBeforeCommit,
    /// The process dies after the commit: it is written, and no caller is told.
    LoseAfterCommit,
}

#[derive(Debug, Default)]
struct Shelf {
    epoch: u64,
    /// In the order in which they were created.
    runs: BTreeMap<u64, Kept>,
    numbers: BTreeMap<RunId, u64>,
    last_number: u64,
    /// How many events were ever written.
    last_event: u64,
    faults: VecDeque<Fault>,
    /// How many questions for events fail.
    unreadable: u32,
    outbox: outbox::Rack,
    ledger: BTreeMap<(RunId, u64), Account>,
    notes: BTreeMap<String, String>,
    triggers: triggers::Table,
}

#[derive(Debug)]
struct Kept {
    row: Row,
    events: Vec<Event>,
    /// The number of each of them among the events of all runs.
    written: Vec<u64>,
}

impl Memory {
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next append meet this fault. Faults asked for in a row are met in a row.
    pub fn fail_next(&self, fault: Fault) {
        self.shelf().faults.push_back(fault);
    }

    /// Lets so many questions for events fail, as those of a file that cannot be read for a while.
    pub fn fail_reads(&self, times: u32) {
        self.shelf().unreadable = times;
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shared.lock().expect("nothing panics while it holds the shelf")
    }
}

impl Journal for Memory {
    fn take_epoch_above(&self, floor: u64) -> Result<u64, Error> {
        let mut shelf = self.shelf();
        shelf.epoch = rules::next_epoch(shelf.epoch, floor);
        Ok(shelf.epoch)
    }

    fn epoch(&self) -> Result<u64, Error> {
        Ok(self.shelf().epoch)
    }

    fn append(&self, append: Append, done: Done) {
        // The answer is given without the lock, because the caller may ask the store something.
        let answer = self.shelf().append_or_fail(append);
        done(answer);
    }

    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<Event>, Error> {
        let mut shelf = self.shelf();
        if let Some(left) = shelf.unreadable.checked_sub(1) {
            shelf.unreadable = left;
            return Err(Error::Io("asked to fail".to_owned()));
        }
        let kept = shelf.find(run).ok_or_else(|| Error::UnknownRun { run: run.clone() })?;
        Ok(kept.events.iter().filter(|event| event.seq > after).take(most).cloned().collect())
    }

    fn written(&self, after: u64, most: usize) -> Result<Written, Error> {
        let shelf = self.shelf();
        let mut events: Vec<WrittenEvent> =
            shelf.runs.values().flat_map(Kept::written).filter(|it| it.number > after).collect();
        events.sort_by_key(|it| it.number);
        events.truncate(most);
        let last = events.last().map_or(after, |it| it.number);
        Ok(Written { events, last })
    }

    fn written_before(&self, events: usize) -> Result<u64, Error> {
        let shelf = self.shelf();
        let mut numbers: Vec<u64> =
            shelf.runs.values().flat_map(|kept| kept.written.iter().copied()).collect();
        numbers.sort_unstable();
        Ok(numbers.into_iter().rev().nth(events).unwrap_or(0))
    }

    fn cursor(&self, run: &RunId) -> Result<Option<Cursor>, Error> {
        Ok(self.shelf().numbers.get(run).map(|number| Cursor(*number)))
    }

    fn row(&self, run: &RunId) -> Result<Option<Row>, Error> {
        Ok(self.shelf().find(run).map(|kept| kept.row.clone()))
    }

    fn visit_rows(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        // Copied first: the visitor may ask this store something else.
        let rows: Vec<Row> = {
            let shelf = self.shelf();
            let passing = shelf.rows().rev().filter(|row| filter.passes(row));
            passing.take(filter.limit()).cloned().collect()
        };
        let _seen_enough = rows.into_iter().try_for_each(visit);
        Ok(())
    }

    fn visit_page(
        &self,
        filter: &Filter,
        before: Option<Cursor>,
        most: usize,
        visit: &mut dyn FnMut(Row),
    ) -> Result<Option<Cursor>, Error> {
        let shelf = self.shelf();
        let numbered = shelf.numbered_rows().rev();
        let is_older = |no: u64| before.is_none_or(|Cursor(before)| no < before);
        let is_newer = |no: u64| filter.after.is_none_or(|Cursor(after)| no > after);
        let older = numbered.filter(|(no, _)| is_older(*no) && is_newer(*no));
        let mut room = PageRoom::new(most);
        if room.is_full() {
            return Ok(None);
        }
        for (no, row) in older {
            room.look();
            if filter.passes(row) {
                room.take(row);
                visit(row.clone());
            }
            if room.is_full() {
                return Ok(Some(Cursor(no)));
            }
        }
        Ok(None)
    }

    fn children(&self, parent: &RunId) -> Result<Vec<Row>, Error> {
        let shelf = self.shelf();
        Ok(shelf.rows().filter(|row| row.parent.as_ref() == Some(parent)).cloned().collect())
    }

    fn run_ids(&self) -> Result<Vec<RunId>, Error> {
        Ok(self.shelf().numbers.keys().cloned().collect())
    }

    fn open_runs(&self) -> Result<Vec<RunId>, Error> {
        let shelf = self.shelf();
        Ok(shelf.rows().filter(|row| row.is_open).map(|row| row.id.clone()).collect())
    }

    fn resolve(&self, text: &str) -> Result<Resolved, Error> {
        Ok(self.shelf().resolve(text))
    }

    fn counts(&self) -> Result<Counts, Error> {
        let mut counts = Counts::default();
        for row in self.shelf().rows() {
            match row.state {
                StateName::Blocked => counts.resting += 1,
                state if rules::has_ended(state) => counts.ended += 1,
                _ => counts.live += 1,
            }
        }
        Ok(counts)
    }

    fn remove(&self, run: &RunId, epoch: u64, how: Remove) -> Result<(), Error> {
        self.shelf().remove(run, epoch, how)
    }

    fn check(&self) -> Result<Vec<Problem>, Error> {
        Ok(self.shelf().runs.values().flat_map(Kept::check).collect())
    }
}

impl Ledger for Memory {
    fn accounts(&self, since_slot: u64) -> Result<Vec<Account>, Error> {
        let mut accounts: BTreeMap<BTreeMap<String, String>, Used> = BTreeMap::new();
        for ((_, slot), account) in &self.shelf().ledger {
            if *slot >= since_slot {
                let sum = accounts.entry(account.labels.clone()).or_default();
                *sum = sum.plus(account.used);
            }
        }
        Ok(accounts.into_iter().map(|(labels, used)| Account { labels, used }).collect())
    }

    fn accounts_by_slot(&self, since_slot: u64) -> Result<Vec<(u64, Account)>, Error> {
        let mut accounts: BTreeMap<(u64, BTreeMap<String, String>), Used> = BTreeMap::new();
        for ((_, slot), account) in &self.shelf().ledger {
            if *slot >= since_slot {
                let sum = accounts.entry((*slot, account.labels.clone())).or_default();
                *sum = sum.plus(account.used);
            }
        }
        let accounts = accounts.into_iter();
        Ok(accounts.map(|((slot, labels), used)| (slot, Account { labels, used })).collect())
    }

    fn used_by(&self, run: &RunId) -> Result<Used, Error> {
        let shelf = self.shelf();
        let of_run = shelf.ledger.iter().filter(|((of, _), _)| of == run);
        Ok(of_run.fold(Used::default(), |sum, (_, account)| sum.plus(account.used)))
    }
}

impl Notes for Memory {
    fn note(&self, name: &str) -> Result<Option<String>, Error> {
        Ok(self.shelf().notes.get(name).cloned())
    }

    fn set_notes(&self, notes: &[(&str, Option<&str>)], epoch: u64) -> Result<(), Error> {
        let mut shelf = self.shelf();
        rules::check_epoch(epoch, shelf.epoch)?;
        for (name, value) in notes {
            match value {
                Some(value) => drop(shelf.notes.insert((*name).to_owned(), (*value).to_owned())),
                None => drop(shelf.notes.remove(*name)),
            }
        }
        Ok(())
    }
}

impl Shelf {
    fn append_or_fail(&mut self, append: Append) -> Result<(), Error> {
        match self.faults.pop_front() {
            None => self.append(append),
            Some(Fault::RefuseFull) => Err(Error::Full("asked to be full".to_owned())),
            Some(Fault::LoseBeforeCommit) => Err(Error::Closed),
            Some(Fault::LoseAfterCommit) => self.append(append).and(Err(Error::Closed)),
        }
    }

    fn append(&mut self, mut append: Append) -> Result<(), Error> {
        rules::check_epoch(append.epoch, self.epoch)?;
        rules::check_numbers(&append)?;
        rules::check_seq(&append, self.find(&append.run).map(Kept::seq))?;
        let told = std::mem::take(&mut append.outbox);
        let (run, spent) = (append.run.clone(), append.spent);
        match self.numbers.get(&append.run) {
            Some(number) => self.extend(*number, append),
            None => self.create(append)?,
        }
        self.outbox.put(&run, told);
        self.charge(&run, spent);
        Ok(())
    }

    fn charge(&mut self, run: &RunId, Entry { slot, used }: Entry) {
        if used.is_nothing() {
            return;
        }
        let labels = self.find(run).map(|kept| kept.row.labels.clone()).unwrap_or_default();
        let account = self
            .ledger
            .entry((run.clone(), slot))
            .or_insert_with(|| Account { labels, used: Used::default() });
        account.used = account.used.plus(used);
    }

    fn create(&mut self, append: Append) -> Result<(), Error> {
        if let Some(key) = &append.row.key {
            rules::check_key(key, self.holder(|row| row.key.as_ref() == Some(key)))?;
        }
        if let Some(name) = &append.row.name {
            let is_in_use =
                |row: &Row| row.name.as_ref() == Some(name) && !rules::has_ended(row.state);
            rules::check_name(name, self.holder(is_in_use))?;
        }
        rules::check_id(&append.run, self.outbox.has(&append.run))?;
        self.last_number += 1;
        self.numbers.insert(append.run, self.last_number);
        let written = self.number(append.events.len());
        let kept = Kept { row: append.row, events: append.events, written };
        self.runs.insert(self.last_number, kept);
        Ok(())
    }

    /// Numbers for so many events that are written now.
    fn number(&mut self, events: usize) -> Vec<u64> {
        let first = self.last_event + 1;
        self.last_event += events as u64;
        (first..=self.last_event).collect()
    }

    fn extend(&mut self, number: u64, append: Append) {
        let written = self.number(append.events.len());
        let kept = self.runs.get_mut(&number).expect("a numbered run is kept");
        kept.events.extend(append.events);
        kept.written.extend(written);
        kept.row = append.row;
    }

    fn remove(&mut self, run: &RunId, epoch: u64, how: Remove) -> Result<(), Error> {
        rules::check_epoch(epoch, self.epoch)?;
        rules::check_removal(run, self.find(run).map(|kept| kept.row.is_open), how)?;
        if let Some(number) = self.numbers.remove(run) {
            self.runs.remove(&number);
            self.outbox.forget(run);
        }
        Ok(())
    }

    fn resolve(&self, text: &str) -> Resolved {
        if let Some(kept) = self.find(&RunId(text.to_owned())) {
            return Resolved::One(kept.row.id.clone());
        }
        let is_named = |row: &&Row| row.name.as_deref() == Some(text);
        let live = self.rows().rfind(|row| !rules::has_ended(row.state) && is_named(row));
        let is_its = |row: &&Row| is_named(row) || row.trigger.as_deref() == Some(text);
        if let Some(row) = live.or_else(|| self.rows().rfind(is_its)) {
            return Resolved::One(row.id.clone());
        }
        if text.len() < Resolved::SHORTEST_PREFIX {
            return Resolved::None;
        }
        Resolved::among(
            self.numbers.keys().filter(|id| id.as_str().starts_with(text)).cloned().collect(),
        )
    }

    fn find(&self, run: &RunId) -> Option<&Kept> {
        self.numbers.get(run).and_then(|number| self.runs.get(number))
    }

    fn rows(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.runs.values().map(|kept| &kept.row)
    }

    fn numbered_rows(&self) -> impl DoubleEndedIterator<Item = (u64, &Row)> {
        self.runs.iter().map(|(number, kept)| (*number, &kept.row))
    }

    fn holder(&self, is_held: impl Fn(&Row) -> bool) -> Option<RunId> {
        self.rows().find(|row| is_held(row)).map(|row| row.id.clone())
    }
}

impl Kept {
    fn seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq)
    }

    fn written(&self) -> impl Iterator<Item = WrittenEvent> {
        self.written.iter().zip(&self.events).map(|(number, event)| WrittenEvent {
            number: *number,
            run: self.row.id.clone(),
            name: self.row.name.clone(),
            event: event.clone(),
        })
    }

    fn check(&self) -> Vec<Problem> {
        let (row, events) = (Ok(self.row.clone()), Ok(self.events.clone()));
        audit(&Stored { id: self.row.id.clone(), seq: self.seq(), row, events })
    }
}
