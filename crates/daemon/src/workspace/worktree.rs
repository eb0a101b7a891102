//! What git knows about worktrees.
//!
//! Asks git, and makes it forget a worktree that is gone. Never removes a file of a worktree or a branch.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use crate::world::git::{GitError, git};

/// A worktree that is not the repository's own.
#[derive(Debug)]
pub(super) struct Linked {
    /// Where git keeps what belongs to this worktree alone.
    pub(super) admin: PathBuf,
}

/// What all worktrees of a repository share, and are told by.
pub(super) fn common_dir(repository: &Path) -> Result<PathBuf, Failure> {
    match git(repository, &["rev-parse", "--git-common-dir"]) {
        Ok(output) => canonical(repository, first_line(&output.stdout)).map_err(Failure::Git),
        Err(GitError::Refused { said, .. }) => {
            Err(Failure::NotARepository { repository: repository.to_owned(), said })
        }
        Err(error) => Err(error.into()),
    }
}

/// The worktree that `dir` is the top of, if it is one and shares `common`.
pub(super) fn find(common: &Path, dir: &Path) -> Result<Option<Linked>, GitError> {
    let asked = ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"];
    let output = match git(dir, &asked) {
        Ok(output) => output,
        Err(GitError::Refused { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let lines: Vec<_> = output.stdout.split(|byte| *byte == b'\n').collect();
    let [top, admin, theirs, ..] = lines[..] else { return Ok(None) };
    let admin = canonical(dir, admin)?;
    // Without a `.git` of its own, a directory is answered for by the repository around it.
    let is_top = canonical(dir, top)? == canonical(dir, b".")?;
    let is_linked = canonical(dir, theirs)? == common && admin != common;
    Ok((is_top && is_linked).then_some(Linked { admin }))
}

pub(super) fn has_commit(repository: &Path) -> Result<bool, GitError> {
    succeeds(repository, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
}

/// Makes git forget a worktree whose directory is gone. It keeps what it has locked, and the branch.
pub(super) fn forget(repository: &Path, dir: &Path) -> Result<(), GitError> {
    let dir = dir.to_string_lossy();
    if !succeeds(repository, &["worktree", "remove", "--", &dir])? {
        tracing::debug!(%dir, "git had no worktree there to forget");
    }
    Ok(())
}

/// A checkout that was killed has left its lock.
pub(super) fn unlock(repository: &Path, dir: &Path) -> Result<(), GitError> {
    succeeds(repository, &["worktree", "unlock", "--", &dir.to_string_lossy()]).map(|_| ())
}

pub(super) fn succeeds(dir: &Path, args: &[&str]) -> Result<bool, GitError> {
    match git(dir, args) {
        Ok(_) => Ok(true),
        Err(GitError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn canonical(dir: &Path, printed: &[u8]) -> Result<PathBuf, GitError> {
    Ok(std::fs::canonicalize(dir.join(OsStr::from_bytes(printed)))?)
}

fn first_line(printed: &[u8]) -> &[u8] {
    printed.split(|byte| *byte == b'\n').next().unwrap_or_default()
}
