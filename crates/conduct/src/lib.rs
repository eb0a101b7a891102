//! What the daemon decides about its runs, without IO.
//!
//! Every function here is synchronous and gets the time, the config and the memory that is free as arguments. So the
//! daemon and the simulator run the same code: the daemon drives it with tokio, the simulator with a seed.
//!
//! In reading order: `conductor` is the state machine of one open run, and `fenced_run` the run with the right to
//! write to it; `steps` is the state machine of one step, and `records` says what its shim's records mean;
//! `reconcile` is one plan over all runs, and `restart_queue` keeps the books that it is asked with; `books` joins
//! `slots`, which say which run may do something now, and `budgets`, which say how much runs may use up together.
//! The README draws it.

pub mod conductor;
pub mod fenced_run;

pub mod records;
pub mod steps;

pub mod reconcile;
pub mod restart_queue;

pub mod books;
pub mod budgets;
pub mod slots;
