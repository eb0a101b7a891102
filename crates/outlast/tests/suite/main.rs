//! Outlast as its users meet it: the built program, real processes, real signals.
//!
//! One binary for all of it, so that it is linked once. Tests wait for what must happen and never for time
//! to pass.

#![expect(clippy::disallowed_methods, reason = "a test starts processes and looks at the clock")]

mod adversaries;
mod attach;
mod audit;
mod bad_config;
mod bad_line;
mod budgets;
mod budgets_of_text;
mod calls;
mod children;
mod clocks;
mod conformance;
mod control;
mod crash;
mod crash_matrix;
mod crowd;
mod daemon_orders;
mod disk_full;
mod ends;
mod folders;
mod forgotten;
mod frozen;
mod fuzz_slice;
mod golden;
mod guards;
mod harness;
mod health;
mod hooks;
mod hosted;
mod insiders;
mod journal_gone;
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
mod orders;
mod output;
mod polls;
mod privacy;
mod queue;
mod reach;
mod receiver;
mod recovers;
mod refusals;
mod restored;
mod rests;
mod run;
mod scale;
mod scenarios;
mod schedules;
mod service;
mod shortage;
mod side_files;
mod sinks;
mod stage;
mod stalls;
mod standard_webhooks;
mod stop;
mod supervision;
mod tame_git;
mod terminal;
mod tmux;
mod tools;
mod top;
#[cfg(feature = "otlp")]
mod traces;
mod triggered;
mod tty;
mod upgrade;
mod vanished;
mod waiter;
mod watch;
mod watches;
mod watching;
mod webhooks;
mod workspaces;
