//! Outlast as its users meet it: the built program, real processes, real signals.
//!
//! One binary for all of it, so that it is linked once. Tests wait for what must happen and never for time
//! to pass.

#![expect(clippy::disallowed_methods, reason = "a test starts processes and looks at the clock")]

mod attach;
mod crash;
mod crash_matrix;
mod disk_full;
mod golden;
mod harness;
mod keys;
mod kills;
mod output;
mod privacy;
mod refusals;
mod run;
mod stop;
mod terminal;
mod tty;
