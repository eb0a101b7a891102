//! Outlast as its users meet it: the built program, real processes, real signals.
//!
//! One binary for all of it, so that it is linked once. Tests wait for what must happen and never for time
//! to pass.

#![expect(clippy::disallowed_methods, reason = "a test starts processes and looks at the clock")]

mod adversaries;
mod attach;
mod audit;
mod bad_config;
mod clocks;
mod conformance;
mod control;
mod crash;
mod crash_matrix;
mod disk_full;
mod ends;
mod folders;
mod golden;
mod harness;
mod hooks;
mod hosted;
mod keys;
mod kills;
mod loop_crash;
mod loop_file;
mod loop_points;
mod loop_stop;
mod loops;
mod output;
mod polls;
mod privacy;
mod queue;
mod refusals;
mod rests;
mod run;
mod schedules;
mod stage;
mod stalls;
mod stop;
mod terminal;
mod tools;
mod triggered;
mod tty;
mod watching;
mod webhooks;
mod workspaces;
