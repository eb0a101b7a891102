//! Outlast as its users meet it: the built program, real processes, real signals.
//!
//! One binary for all of it, so that it is linked once. Tests wait for what must happen and never for time
//! to pass.

#![expect(clippy::disallowed_methods, reason = "a test starts processes and looks at the clock")]

mod crash;
mod crash_matrix;
mod harness;
mod kills;
mod run;
mod stop;
