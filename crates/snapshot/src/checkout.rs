//! HEAD, branch and index of a worktree of our own go back with its files.
//!
//! A branch may be worked on from another checkout too. It is moved only if nothing that is on it now is lost by that.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use outlast_wire::again;
use outlast_wire::snapshot::{Head, Place, Repository};

use crate::Failure;
use crate::git::Git;
use crate::place::{self, Around};
use crate::take::users_git;

/// What an operation of git that was cut short leaves in the directory of a checkout.
const UNFINISHED: [&str; 9] = [
    "index.lock",
    "HEAD.lock",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "ORIG_HEAD.lock",
];
const LOCKS: [&str; 3] = ["index.lock", "HEAD.lock", "ORIG_HEAD.lock"];

pub(crate) struct Checkout<'a> {
    repository: &'a Repository,
    top: &'a Path,
    git: Git,
    head: &'a Head,
    wreck: Option<&'a str>,
    /// What the index goes back to, if that is not HEAD.
    staged: Option<String>,
}

impl<'a> Checkout<'a> {
    /// `None` for a user's own.
    pub(crate) fn of(
        place: &'a Place,
        around: &Around,
        head: &'a Head,
        wreck: Option<&'a str>,
        staged: Option<String>,
    ) -> Option<Self> {
        let repository = place.repository.as_ref().filter(|it| it.admin != it.common)?;
        let git = users_git(repository, around);
        Some(Self { repository, top: &place.top, git, head, wreck, staged })
    }

    /// The last attempt is gone; a lock that is there may be of a person who works here too.
    pub(crate) fn refuse_if_busy(&self) -> Result<(), Failure> {
        let admin = &self.repository.admin;
        let locks = LOCKS.map(|name| admin.join(name));
        let locks: Vec<&PathBuf> = locks.iter().filter(|lock| lock.exists()).collect();
        let Some(first) = locks.first() else { return Ok(()) };
        let processes = match again::read_dir("/proc") {
            Ok(processes) => processes,
            // A system that does not say.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Failure::io("looking for who holds a lock")(error)),
        };
        let pid = processes.flatten().find_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let proc = entry.path();
            let is_holder = has_open(&proc, &locks) || is_git_within(&proc, self.top, admin);
            is_holder.then_some(pid)
        });
        pid.map_or(Ok(()), |pid| Err(Failure::Busy { pid, path: first.to_path_buf() }))
    }

    /// Before any file is changed: a branch that git does not move is found out then. Returns what was left alone.
    pub(crate) fn move_branch_back(&self) -> Result<Option<String>, Failure> {
        self.head.branch.as_ref().map_or(Ok(None), |branch| self.move_branch(branch))
    }

    /// After the files; `stays` is the branch that was left alone.
    pub(crate) fn turn_back(&self, stays: Option<&str>) -> Result<(), Failure> {
        self.refuse_if_busy()?;
        let admin = &self.repository.admin;
        for name in UNFINISHED {
            place::remove(&admin.join(name))?;
        }
        for name in ["rebase-merge", "rebase-apply"] {
            place::clear(&admin.join(name))?;
        }
        match self.head.branch.as_ref().filter(|_| stays.is_none()) {
            Some(branch) => self.git.run(&["symbolic-ref", "HEAD", branch]).map(drop)?,
            // A branch that has to stay where it is leaves HEAD without one.
            None => self.detach()?,
        }
        let index = admin.join("index");
        // Git would write through a link, into an index that is not ours.
        if fs::symlink_metadata(&index).is_ok_and(|found| found.is_symlink()) {
            place::remove(&index)?;
        }
        let git = self.git.clone().with("GIT_INDEX_FILE", index);
        git.run(&["read-tree", self.staged.as_ref().unwrap_or(&self.head.commit)]).map(drop)
    }

    fn detach(&self) -> Result<(), Failure> {
        self.git.run(&["update-ref", "--no-deref", "HEAD", &self.head.commit]).map(drop)
    }

    fn move_branch(&self, branch: &str) -> Result<Option<String>, Failure> {
        let commit = &self.head.commit;
        let tip = self.git.maybe(&["rev-parse", "--verify", "--quiet", branch])?;
        let tip = tip.map(|tip| String::from_utf8_lossy(&tip).trim_end().to_owned());
        let why = if self.git.maybe(&["symbolic-ref", "--quiet", branch])?.is_some() {
            "stands for another branch"
        } else if self.is_elsewhere(branch)? {
            "is checked out in another worktree"
        } else if self.is_being_changed(branch)? {
            "is being rebased or bisected in another worktree"
        } else if !self.may_leave(tip.as_deref())? {
            "has commits that the attempt did not leave"
        } else {
            // Only from what was looked at: a commit that is made meanwhile stays.
            let from = tip.unwrap_or_else(|| "0".repeat(commit.len()));
            self.git.run(&["update-ref", "--no-deref", branch, commit, &from])?;
            return Ok(None);
        };
        Ok(Some(format!("{branch} (it {why})")))
    }

    /// True if what a branch is at now is kept by the branch itself or by the snapshots.
    fn may_leave(&self, tip: Option<&str>) -> Result<bool, Failure> {
        let Some(tip) = tip else { return Ok(true) };
        for keeper in [Some(self.head.commit.as_str()), self.wreck].into_iter().flatten() {
            let asked = ["merge-base", "--is-ancestor", tip, keeper];
            if self.git.maybe(&asked)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True if another checkout is in the middle of a rebase or a bisection of this branch, during which its HEAD has none.
    fn is_being_changed(&self, branch: &str) -> Result<bool, Failure> {
        let common = &self.repository.common;
        let mut checkouts = vec![common.clone()];
        match again::read_dir(common.join("worktrees")) {
            Ok(found) => checkouts.extend(found.flatten().map(|entry| entry.path())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::io("listing the worktrees")(error)),
        }
        let short = branch.strip_prefix("refs/heads/").unwrap_or(branch);
        let files = [
            "rebase-merge/head-name",
            "rebase-apply/head-name",
            "rebase-merge/update-refs",
            "BISECT_START",
        ];
        for file in checkouts
            .iter()
            .filter(|it| **it != self.repository.admin)
            .flat_map(|it| files.map(|name| it.join(name)))
        {
            match fs::read_to_string(&file) {
                Ok(text) if text.lines().any(|line| line == branch || line == short) => {
                    return Ok(true);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::io("looking for a rebase")(error)),
            }
        }
        Ok(false)
    }

    fn is_elsewhere(&self, branch: &str) -> Result<bool, Failure> {
        let listed = self.git.run(&["worktree", "list", "--porcelain", "-z"])?;
        let mut is_ours = false;
        for line in listed.split(|byte| *byte == 0) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                is_ours = path == self.top.as_os_str().as_bytes();
            }
            let of = line.strip_prefix(b"branch ");
            if !is_ours && of == Some(branch.as_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What cannot be looked at belongs to another user, or is gone.
fn has_open(proc: &Path, paths: &[&PathBuf]) -> bool {
    let open = again::read_dir(proc.join("fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|path| paths.iter().any(|known| **known == path))
}

/// A git that asks a person for a message holds its lock without having it open.
fn is_git_within(proc: &Path, top: &Path, admin: &Path) -> bool {
    let name = fs::read(proc.join("comm")).unwrap_or_default();
    let is_git = name == b"git\n" || name.starts_with(b"git-");
    let cwd = || fs::read_link(proc.join("cwd"));
    is_git && cwd().is_ok_and(|cwd| cwd.starts_with(top) || cwd.starts_with(admin))
}
