//! What the daemon decides about its runs, without IO.
//!
//! Every function here is synchronous and gets the time, the config and the memory that is free as arguments. So the
//! daemon and the simulator run the same code: the daemon drives it with tokio, the simulator with a seed.
//!
//! In reading order: `fenced_run` is one run and the right to write to it, and turns news into an append;
//! `reconcile` is one plan over all runs, and `restart_queue` keeps the books that it is asked with; `slots` says
//! which run may do something now, and `budgets` how much runs may use up together.

pub mod conductor;
pub mod fenced_run;

pub mod records;
pub mod steps;

pub mod reconcile;
pub mod restart_queue;

pub mod books;
pub mod budgets;
pub mod slots;
