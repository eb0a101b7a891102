//! The rules about runs, for every client: make, find, tell, order, look into, remove.
//!
//! The rules know no HTTP: `api` puts them on the wire, and triggers make runs through them.

pub(crate) mod callers;
pub(crate) mod create;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod gc;
pub(crate) mod heard;
pub(crate) mod orders;
pub(crate) mod remove;
pub(crate) mod spec;
pub(crate) mod tell;
mod transcript;
pub(crate) mod trigger_orders;
pub(crate) mod turns;
pub(crate) mod workspaces;
