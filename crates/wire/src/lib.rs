//! What crosses a process boundary, as plain data.
//!
//! There are three boundaries. `shim` is what a daemon and a shim say to each other and leave on disk for each other;
//! `guard` is what a daemon and the guard of a command say; `api` is what a client and the daemon say. The
//! words in all of these are those of the crate `words`. Nothing here decides anything. In a release build `again` alone makes system calls, for its callers, and repeats those that a signal
//! interrupted. `plain` removes terminal sequences from output; daemon and client both use it, so both read output alike.

pub mod again;
pub mod api;
pub mod environment;
pub mod guard;
pub mod hook;
pub mod output;
pub mod plain;
pub mod pretended;
pub mod shim;
pub mod snapshot;
pub mod text;
pub mod version;

/// `outlast __drive DIR` is the driver of the agent of one attempt.
pub const DRIVE_VERB: &str = "__drive";

pub use outlast_words as words;
pub use outlast_words::codes;
pub use text::OsText;
