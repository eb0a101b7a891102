//! The rules about runs, for every client: make, find, tell, order, look into, remove.
//!
//! The rules know no HTTP: `api` puts them on the wire, and triggers make runs through them.

pub(crate) mod again;
pub(crate) mod callers;
pub(crate) mod calls;
pub(crate) mod create;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod fork;
pub(crate) mod gc;
pub(crate) mod heard;
pub(crate) mod inside;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod orders;
mod overrides;
pub(crate) mod raise;
pub(crate) mod refs;
pub(crate) mod remove;
pub(crate) mod restore;
mod room;
pub(crate) mod spawn;
pub(crate) mod spec;
mod start;
pub(crate) mod subtree;
pub(crate) mod tell;
mod transcript;
pub(crate) mod trigger_orders;
pub(crate) mod turn_list;
pub(crate) mod turns;
pub(crate) mod waiting;
pub(crate) mod workspaces;
