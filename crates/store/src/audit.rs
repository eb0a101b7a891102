//! Is what is stored of one run as it should be?
//!
//! Asks the engine about the journal, and holds the row against what replaying the journal gives.

use outlast_engine::{Event, Row, Run, RunId, check};

use crate::{Error, Problem};

/// What a store has of one run.
pub(crate) struct Stored {
    pub(crate) id: RunId,
    /// The number that the store holds for the last one.
    pub(crate) seq: u64,
    pub(crate) row: Result<Row, Error>,
    pub(crate) events: Result<Vec<Event>, Error>,
}

pub(crate) fn audit(stored: &Stored) -> Vec<Problem> {
    let messages = match &stored.events {
        Ok(events) => journal_problems(stored, events),
        Err(error) => vec![error.to_string()],
    };
    let unreadable_row = stored.row.as_ref().err().map(ToString::to_string);
    let problem = |message| Problem { run: Some(stored.id.clone()), message };
    messages.into_iter().chain(unreadable_row).map(problem).collect()
}

fn journal_problems(stored: &Stored, events: &[Event]) -> Vec<String> {
    let mut messages: Vec<String> =
        check(&stored.id, events).iter().map(ToString::to_string).collect();
    let last = events.last().map_or(0, |event| event.seq);
    if last != stored.seq {
        messages.push(format!("the last event is {last}, and the store expects {}", stored.seq));
    }
    if let (Ok(row), Ok(run)) = (&stored.row, Run::replay(&stored.id, events)) {
        messages.extend(difference(row, &run.row()));
    }
    messages
}

fn difference(stored: &Row, replayed: &Row) -> Option<String> {
    // A row from before does not say how long its run worked, nor how many attempts did not report.
    let worked_ms = stored.worked_ms.or(replayed.worked_ms);
    let unreported = stored.unreported.or(replayed.unreported);
    let stored = &Row { worked_ms, unreported, ..stored.clone() };
    // The row of a run that ended before rows had these may lack them.
    let kept = |stored: &Option<String>, replayed: &Option<String>| {
        replayed.clone().filter(|_| stored.is_some())
    };
    let (summary, task) =
        (kept(&stored.summary, &replayed.summary), kept(&stored.task, &replayed.task));
    let replayed = &Row { summary, task, ..replayed.clone() };
    (stored != replayed)
        .then(|| format!("the row says {stored:?}, and replaying gives {replayed:?}"))
}
