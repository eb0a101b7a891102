//! The rules that an append has to keep, for every store alike.
//!
//! Pure: a store looks up what is there, inside its transaction, and asks here.

use outlast_engine::{RunId, StateName};

use crate::{Append, Error, Remove, TriggerChange};

/// Only the holder of the newest epoch writes.
pub(crate) fn check_epoch(held: u64, current: u64) -> Result<(), Error> {
    if held == current { Ok(()) } else { Err(Error::StaleEpoch { held, current }) }
}

/// The fencing number of the next daemon.
pub(crate) fn next_epoch(current: u64, floor: u64) -> u64 {
    current.max(floor) + 1
}

/// Events continue the journal one by one, and there is at least one.
pub(crate) fn check_numbers(append: &Append) -> Result<(), Error> {
    let run = || append.run.clone();
    if append.events.is_empty() {
        return Err(Error::Conflict { run: run(), expected: append.expected_seq + 1, found: 0 });
    }
    let misplaced = (append.expected_seq + 1..)
        .zip(&append.events)
        .find(|(expected, event)| *expected != event.seq);
    match misplaced {
        Some((expected, event)) => Err(Error::Conflict { run: run(), expected, found: event.seq }),
        None => Ok(()),
    }
}

/// `found` is the number of the run's last event, if the run exists.
pub(crate) fn check_seq(append: &Append, found: Option<u64>) -> Result<(), Error> {
    let expected = append.expected_seq;
    match found {
        None if expected == 0 => Ok(()),
        None => Err(Error::UnknownRun { run: append.run.clone() }),
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(Error::Conflict { run: append.run.clone(), expected, found }),
    }
}

/// A key belongs to one run, for as long as that run is remembered.
pub(crate) fn check_key(key: &str, holder: Option<RunId>) -> Result<(), Error> {
    match holder {
        Some(by) => Err(Error::KeyTaken { key: key.to_owned(), by }),
        None => Ok(()),
    }
}

/// Notices are told apart by their run's id, so an id is used again only once none is remembered.
pub(crate) fn check_id(run: &RunId, has_notices: bool) -> Result<(), Error> {
    if has_notices { Err(Error::IdInUse { run: run.clone() }) } else { Ok(()) }
}

/// `holder` is the run of this name that has not ended.
pub(crate) fn check_name(name: &str, holder: Option<RunId>) -> Result<(), Error> {
    match holder {
        Some(by) => Err(Error::NameTaken { name: name.to_owned(), by }),
        None => Ok(()),
    }
}

/// `is_open` is `None` for a run that does not exist.
pub(crate) fn check_removal(run: &RunId, is_open: Option<bool>, how: Remove) -> Result<(), Error> {
    match (is_open, how) {
        (None, _) => Err(Error::UnknownRun { run: run.clone() }),
        (Some(true), Remove::Ended) => Err(Error::StillOpen { run: run.clone() }),
        (Some(_), Remove::Any) | (Some(false), Remove::Ended) => Ok(()),
    }
}

/// A trigger is added once, and only one that is there is changed.
pub(crate) fn check_trigger(change: &TriggerChange, is_known: bool) -> Result<(), Error> {
    let name = || change.trigger().to_owned();
    match (change, is_known) {
        (TriggerChange::Noted { change, .. }, _) => check_trigger(change, is_known),
        (TriggerChange::Add(_), true) => Err(Error::TriggerTaken { name: name() }),
        (TriggerChange::Add(_), false) => Ok(()),
        (_, true) => Ok(()),
        (_, false) => Err(Error::UnknownTrigger { name: name() }),
    }
}

pub(crate) fn has_ended(state: StateName) -> bool {
    state.verdict().is_some()
}
