//! Snapshots and restores against real git and real files.

#![expect(
    clippy::disallowed_methods,
    reason = "a test makes files and starts processes of its own"
)]

mod deaths;
mod hostile;
mod kinds;
mod model;
mod scene;
mod users;
