//! The store: the journal of every run, kept so that it survives.
//!
//! The store remembers events and finds them again. It decides nothing about runs: the engine decides what follows from
//! an event, and the daemon decides what to do about a failed append.
//!
//! Two stores keep the same promise, and one suite (`tests/conformance.rs`) holds both to it: [`Sqlite`]
//! on disk, [`Memory`] for the simulator.
//!
//! In reading order: `journal` is the promise, and the four after it are its parts; `error` and `rules` say what both
//! stores refuse, and `audit` what they check; `sqlite` keeps the promise on disk, `memory` without one. The README of
//! this crate has a drawing.

mod journal;

mod ledger;
mod notes;
mod outbox;
mod triggers;

mod audit;
mod error;
mod rules;

mod sqlite;

mod memory;

pub use error::Error;
pub use journal::{
    Append, Census, Counts, Cursor, Depth, Done, Filter, Journal, Outgoing, Problem, Remove,
    Resolved, Written, WrittenEvent,
};
pub use ledger::{Account, Amount, Entry, Ledger, Used, begin_of, slot};
pub use memory::{Fault, Memory};
pub use notes::Notes;
pub use outbox::{Backlog, Change, NoticeCounts, Outbox, Settled, SinkHealth, SinkState, Waiting};
pub use sqlite::Sqlite;
pub use triggers::{Changed, Delivery, Settlement, Tally, Trigger, TriggerChange, Triggers};
