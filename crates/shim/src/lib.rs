//! The shim: one small process that owns one step's process tree, its output and its exit status.
//!
//! The shim decides nothing but ends what must end. It keeps no database, starts no thread and waits in one place, a
//! `poll(2)` loop. It writes each fact to `events.jsonl` before it acts on it, so a later daemon or shim reads the truth
//! from the step's directory.
//!
//! `waiter` and `guard` are other processes of this crate. The waiter starts a daemon again when no shim lives to do
//! that. A guard stays above every process that a command of a sink or a poll leaves behind.
//!
//! In reading order: `setup` makes the process fit to be a shim, `serve` waits, `attempt` decides and acts, with one
//! file for each thing that it does. The README of this crate has a drawing.

mod setup;

mod serve;
mod source;

mod attempt;
mod finish;
mod launch;
mod live;
mod orders;

mod answer;
mod output;
mod records;
mod sparse_file;
mod spool;
mod spool_index;

mod command;
mod spawn;

mod ending;
mod heartbeat;
mod limits;
mod reap;
mod signals;
mod tree;

mod connection;
mod control;
mod peer;

mod screen;
mod screen_backlog;
mod screen_input;
mod terminal;

mod clock;
mod disk;
mod guard;
mod revive;
mod waiter;

pub use guard::main as guard;
pub use outlast_home::trim::give_back;
pub use waiter::main as wait;

use std::path::Path;
use std::process::ExitCode;

use outlast_home::layout::AttemptDir;

use crate::attempt::Attempt;

/// Another shim holds this attempt's lock; nothing was done.
const EXIT_BUSY: u8 = 75;
/// The attempt's own files could not be read or made; nothing was started.
const EXIT_BAD_FILES: u8 = 65;

/// Owns the attempt in `dir` until its tree is empty and its last record is on disk.
///
/// Takes the whole process over: signals, session, umask, descriptors. The daemon that started it may
/// hold the other end of a socket on descriptor 0, which is then the first control connection.
pub fn main(dir: &Path) -> ExitCode {
    let inherited = setup::become_shim();
    let dir = AttemptDir(dir.to_owned());
    match Attempt::open(dir, inherited) {
        Ok(attempt) => serve::serve(attempt),
        Err(attempt::Unopened::Busy) => ExitCode::from(EXIT_BUSY),
        Err(attempt::Unopened::BadFiles) => ExitCode::from(EXIT_BAD_FILES),
    }
}

/// For a step whose failure changes nothing that we promise; the caller says why at the call.
fn tolerate<T, E>(_outcome: Result<T, E>) {}
