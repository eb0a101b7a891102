//! Workspaces: the directories that runs work in, from making to removing them.
//!
//! In the order of a workspace's life: a `key` names it, `place` says where it may be, `make` prepares it, `digest`
//! tells whether a turn has changed it, and `remove` ends it. Everything here is safe to repeat after a crash at any
//! point. It blocks, so it is called from a thread that may. Hooks and checkouts are commands of the host, which the
//! step monitor runs as errands. What was not made here is never removed, and work that would be lost is kept.

mod digest;
mod failure;
mod fnv;
mod kept;
mod key;
mod make;
mod marks;
mod noted;
mod place;
mod remove;
mod worktree;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod life;

pub(crate) use digest::digest;
pub(crate) use failure::Failure;
pub(crate) use fnv::Fnv;
pub(crate) use key::sanitised;
pub(crate) use make::{branch, checkout, discard, prepare, settle};
pub(crate) use noted::{note, stands};
pub(crate) use place::path;
pub(crate) use remove::{may_remove, remove};
