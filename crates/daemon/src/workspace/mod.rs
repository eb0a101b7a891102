//! Workspaces: the directories that runs work in, from being made to being removed.
//!
//! In the order of a workspace's life: a `key` names it, `place` says where it may be, `make` has it ready,
//! `digest` tells whether a turn has changed it, and `remove` ends it. Everything here may be asked again
//! after having died at any point, and blocks, so it is called from a thread that may. Hooks and checkouts
//! are host commands, which others run. What was not made here is never removed, and work that would be
//! lost is kept.

mod digest;
mod failure;
mod fnv;
mod kept;
mod key;
mod make;
mod marks;
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
pub(crate) use make::{checkout, discard, prepare, settle};
pub(crate) use place::path;
pub(crate) use remove::{may_remove, remove};
