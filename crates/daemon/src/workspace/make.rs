//! Having a workspace ready: made if it is not there, left as it is if it is.
//!
//! `prepare`, then the command that `checkout` gives, then the hook on creation, then `settle`; or `discard`
//! if the hook failed. Until it is settled a workspace counts as created, so that a death in between does
//! not leave one that was never finished. What is in the way is refused, never replaced.

use std::fs;
use std::io;
use std::path::Path;

use outlast_engine::{RunSpec, Strategy};
use outlast_wire::again;

use super::failure::Failure;
use super::key;
use super::marks::{Marks, remove_whole};
use super::place::{Escape, contained, look};
use super::worktree;
use crate::world::files;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prepared {
    /// It was made by this run, or is to be by `checkout`, and is not settled.
    pub(crate) created: bool,
}

pub(crate) fn prepare(spec: &RunSpec) -> Result<Prepared, Failure> {
    let dir = Path::new(&spec.dir);
    let created = match spec.workspace.strategy {
        Strategy::Inplace => inplace(dir)?,
        Strategy::Dir => own_dir(root(spec)?, dir)?,
        Strategy::Worktree => own_worktree(repository(spec)?, root(spec)?, dir)?,
    };
    Ok(Prepared { created })
}

fn inplace(dir: &Path) -> Result<bool, Failure> {
    match fs::metadata(dir) {
        Ok(found) if found.is_dir() => Ok(false),
        Ok(_) => Err(Escape::NotADirectory { path: dir.to_owned() }.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::Gone { dir: dir.to_owned() })
        }
        Err(error) => Err(Failure::io("looking at", dir)(error)),
    }
}

fn own_dir(root: &Path, dir: &Path) -> Result<bool, Failure> {
    make_root(root, dir)?;
    let marks = Marks::of(dir);
    if look(dir)?.is_some() {
        return Ok(marks.is_new());
    }
    marks.set_new()?;
    fs::create_dir(dir).map_err(Failure::io("making", dir))?;
    contained(root, dir)?;
    Ok(true)
}

fn own_worktree(repository: &Path, root: &Path, dir: &Path) -> Result<bool, Failure> {
    let common = worktree::common_dir(repository)?;
    make_root(root, dir)?;
    let marks = Marks::of(dir);
    if marks.is_half_checked_out() || is_free(dir)? {
        if !worktree::has_commit(repository)? {
            return Err(Failure::NoCommit { repository: repository.to_owned() });
        }
        marks.set_new()?;
        return Ok(true);
    }
    match worktree::find(&common, dir)? {
        Some(_) => Ok(marks.is_new()),
        None => Err(Failure::Occupied { dir: dir.to_owned(), repository: repository.to_owned() }),
    }
}

/// Made 0700 if it does not exist; left as it is if it does.
fn make_root(root: &Path, dir: &Path) -> Result<(), Failure> {
    files::private_dir(root).map_err(Failure::io("making", root))?;
    Ok(contained(root, dir)?)
}

fn is_free(dir: &Path) -> Result<bool, Failure> {
    if look(dir)?.is_none() {
        return Ok(true);
    }
    let mut entries = again::read_dir(dir).map_err(Failure::io("reading", dir))?;
    Ok(entries.next().is_none())
}

/// The branch that a worktree is made on.
pub(crate) fn branch(spec: &RunSpec) -> Option<String> {
    let is_worktree = spec.workspace.strategy == Strategy::Worktree;
    let name = Path::new(&spec.dir).file_name().filter(|_| is_worktree)?;
    Some(key::branch(&name.to_string_lossy()))
}

/// The host command that makes a worktree, for a workspace that was created. Safe to repeat.
pub(crate) fn checkout(spec: &RunSpec) -> Option<Vec<String>> {
    if spec.workspace.strategy != Strategy::Worktree {
        return None;
    }
    let repository = spec.workspace.repository.clone()?;
    let dir = Path::new(&spec.dir);
    let branch = branch(spec)?;
    let mark = Marks::of(dir).checkout.to_string_lossy().into_owned();
    let script = include_str!("checkout.sh").to_owned();
    let shell = ["sh".to_owned(), "-c".to_owned(), script, "checkout".to_owned()];
    let base = spec.workspace.base.clone();
    let args = [repository, spec.dir.clone(), branch, mark].into_iter().chain(base);
    Some(shell.into_iter().chain(args).collect())
}

/// What follows on creation has been done: from now on the workspace is one that is there.
pub(crate) fn settle(spec: &RunSpec) -> Result<(), Failure> {
    if spec.workspace.strategy == Strategy::Inplace {
        return Ok(());
    }
    let dir = Path::new(&spec.dir);
    contained(root(spec)?, dir)?;
    let marks = Marks::of(dir);
    if marks.is_half_checked_out() {
        return Err(Failure::HalfMade { dir: dir.to_owned() });
    }
    marks.clear()
}

/// Removes a workspace that was created and could not be settled. One that is settled is left alone.
pub(crate) fn discard(spec: &RunSpec) -> Result<(), Failure> {
    let dir = Path::new(&spec.dir);
    let marks = Marks::of(dir);
    if spec.workspace.strategy == Strategy::Inplace || !marks.is_new() {
        return Ok(());
    }
    contained(root(spec)?, dir)?;
    remove_whole(dir)?;
    if spec.workspace.strategy == Strategy::Worktree {
        worktree::unlock(repository(spec)?, dir)?;
        worktree::forget(repository(spec)?, dir)?;
    }
    // Last, so that all of this is done again if we die on the way.
    marks.clear()
}

pub(super) fn root(spec: &RunSpec) -> Result<&Path, Failure> {
    spec.workspace.root.as_deref().map(Path::new).ok_or(Failure::Undescribed("root"))
}

pub(super) fn repository(spec: &RunSpec) -> Result<&Path, Failure> {
    spec.workspace.repository.as_deref().map(Path::new).ok_or(Failure::Undescribed("repository"))
}
