//! Removing a workspace, once no run needs it.
//!
//! Nothing is removed that was there before the run, that is not where it should be, or that holds work
//! which exists nowhere else. What cannot be told is kept. A branch always stays.

use std::fs;
use std::io;
use std::path::Path;

use outlast_engine::{RunSpec, Strategy};
use outlast_wire::again;

use super::failure::Failure;
use super::kept::WhyNot;
use super::make::{repository, root};
use super::marks::{Marks, remove_whole};
use super::place::{contained, look};
use super::worktree::{self, Linked};
use crate::world::files;
use crate::world::git::git;
use crate::world::git::plain::{self, Worktree};

pub(crate) fn may_remove(spec: &RunSpec) -> Result<(), WhyNot> {
    match spec.workspace.strategy {
        Strategy::Inplace => Err(WhyNot::WasThere),
        Strategy::Dir => is_contained(spec).map(|_| ()),
        Strategy::Worktree => match is_contained(spec)? {
            Found::Nothing => Ok(()),
            Found::Directory => may_remove_worktree(spec),
        },
    }
}

enum Found {
    Nothing,
    Directory,
}

fn is_contained(spec: &RunSpec) -> Result<Found, WhyNot> {
    let (root, dir) = (root(spec).map_err(unknown)?, Path::new(&spec.dir));
    if fs::metadata(root).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(Found::Nothing);
    }
    contained(root, dir)?;
    Ok(if look(dir)?.is_some() { Found::Directory } else { Found::Nothing })
}

fn may_remove_worktree(spec: &RunSpec) -> Result<(), WhyNot> {
    let (repository, dir) = (repository(spec).map_err(unknown)?, Path::new(&spec.dir));
    let common = worktree::common_dir(repository).map_err(unknown)?;
    let Some(linked) = worktree::find(&common, dir)? else {
        return Err(WhyNot::Unknown(format!("it is no worktree of {}", repository.display())));
    };
    is_not_locked(&linked)?;
    has_no_submodules(dir, &linked)?;
    is_clean(&Worktree { dir, admin: &linked.admin, common: &common })?;
    has_its_commits_on_a_branch(dir)
}

fn unknown(failure: Failure) -> WhyNot {
    WhyNot::Unknown(failure.to_string())
}

fn is_not_locked(linked: &Linked) -> Result<(), WhyNot> {
    match fs::read_to_string(linked.admin.join("locked")) {
        Ok(reason) => Err(WhyNot::Locked { reason: reason.trim().to_owned() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WhyNot::Unknown(error.to_string())),
    }
}

/// Their repositories are kept with the worktree's own files or within it, and would go with them.
fn has_no_submodules(dir: &Path, linked: &Linked) -> Result<(), WhyNot> {
    if plain::has_submodules(dir)? {
        return Err(WhyNot::Submodules);
    }
    match again::read_dir(linked.admin.join("modules")).map(|mut modules| modules.next()) {
        Ok(Some(_)) => Err(WhyNot::Submodules),
        Ok(None) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(WhyNot::Unknown(error.to_string())),
    }
}

fn is_clean(worktree: &Worktree<'_>) -> Result<(), WhyNot> {
    let status = plain::status(worktree)?.text();
    let untracked = status.lines().filter(|line| line.starts_with("??")).count();
    let changed = status.lines().count() - untracked;
    let counts = [(changed, "changed"), (untracked, "untracked")];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let summary: Vec<_> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    if summary.is_empty() { Ok(()) } else { Err(WhyNot::Dirty { summary: summary.join(", ") }) }
}

/// On a branch they are; without one, only if some branch or tag has them.
fn has_its_commits_on_a_branch(dir: &Path) -> Result<(), WhyNot> {
    if worktree::succeeds(dir, &["symbolic-ref", "--quiet", "HEAD"])? {
        return Ok(());
    }
    let asked =
        ["for-each-ref", "--count=1", "--contains=HEAD", "refs/heads", "refs/tags", "refs/remotes"];
    if git(dir, &asked)?.stdout.is_empty() { Err(WhyNot::Stranded) } else { Ok(()) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Of disk.
    pub(crate) bytes: u64,
}

/// Removes what may be removed. Safe to repeat: what is gone already is fine, and what was begun is ended.
pub(crate) fn remove(spec: &RunSpec) -> Result<Removed, Failure> {
    may_remove(spec)?;
    let dir = Path::new(&spec.dir);
    let marks = Marks::of(dir);
    let bytes = files::disk_usage(dir) + files::disk_usage(&marks.removing);
    remove_whole(&marks.removing)?;
    move_away(dir, &marks.removing)?;
    remove_whole(&marks.removing)?;
    if spec.workspace.strategy == Strategy::Worktree {
        forget(repository(spec)?, dir);
    }
    marks.clear()?;
    Ok(Removed { bytes })
}

/// In one step: half a workspace would look like one with changes, or be taken for a whole one.
fn move_away(dir: &Path, to: &Path) -> Result<(), Failure> {
    match fs::rename(dir, to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io("moving away", dir)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The directory is gone, which was what was asked; the next checkout tries this again.
fn forget(repository: &Path, dir: &Path) {
    if let Err(failure) = worktree::forget(repository, dir) {
        tracing::warn!(dir = %dir.display(), %failure, "git still lists a worktree that was removed");
    }
}
