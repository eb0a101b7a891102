//! Outlast as its users meet it: the built program, real processes, real signals.
//!
//! One binary for all of it, so that it is linked once. Tests wait for what must happen and never for time
//! to pass.

#![expect(clippy::disallowed_methods, reason = "a test starts processes and looks at the clock")]

mod adversaries;
mod attach;
mod audit;
mod bad_config;
mod budgets;
mod children;
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
mod health;
mod hooks;
mod hosted;
mod keys;
mod kills;
mod loop_crash;
mod loop_file;
mod loop_points;
mod loop_stop;
mod loops;
mod metrics;
mod notices;
mod operator;
mod output;
mod polls;
mod privacy;
mod queue;
mod receiver;
mod refusals;
mod rests;
mod run;
mod scenarios;
mod schedules;
mod service;
mod sinks;
mod stage;
mod stalls;
mod standard_webhooks;
mod stop;
mod supervision;
mod terminal;
mod tmux;
mod tools;
mod top;
#[cfg(feature = "otlp")]
mod traces;
mod triggered;
mod tty;
mod watch;
mod watches;
mod watching;
mod webhooks;
mod workspaces;
