//! Handing over what a run has done: `merge` into a branch, and what `pr` is made of.
//!
//! Without a checkout: trees are merged by `git merge-tree`, with no setting or driver of the repository. A branch that
//! is checked out anywhere is never moved, and every other one by compare-and-swap. The journal has nothing of it: asked
//! again, a merge finds what the branch has already.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outlast_engine::{Run, RunId, Strategy};
use outlast_snapshot::{Git, place_of, ref_of};
use outlast_wire::api::{MergeRun, MergedView, PullRequestView};
use outlast_wire::codes::Code;
use outlast_wire::hook;
use outlast_wire::snapshot::Place;

use super::diff::Known;
use crate::refusal::{Answer, Refusal, bad_request};
use crate::supervisor::Supervisor;
use crate::world::git::{answered, bounded, git};
use crate::{snapshots, workspace};

const MOST: usize = 8 << 20;
const MOST_CONFLICTS: usize = 50;
/// In characters, of a title.
const LONGEST_TITLE: usize = 72;

/// Blocks: runs git.
pub(crate) fn merge(supervisor: &Supervisor, id: &RunId, asked: &MergeRun) -> Answer<MergedView> {
    let work = Work::of(supervisor, id)?;
    let into = match &asked.into {
        Some(branch) => work.branch_named(branch)?,
        None => work.default_branch()?.ok_or_else(|| {
            bad_request(format!("{} has no branch checked out", work.repository.display()))
                .hint(format!("outlast merge {id} --into BRANCH"))
        })?,
    };
    let target = work.resolve(&into)?.ok_or_else(|| {
        let name = short(&into);
        let message = format!("there is no branch {name} in {}", work.repository.display());
        Refusal::new(Code::NotMergeable, message)
            .hint(format!("git -C {} branch {name}", quoted(&work.repository)))
    })?;
    let files = work.uncommitted()?;
    if !files.is_empty() && !asked.with_uncommitted {
        let message = format!(
            "{} of run {id} {} not committed: {}",
            counted(files.len()),
            if files.len() == 1 { "is" } else { "are" },
            listed(&files)
        );
        return Err(Refusal::new(Code::Uncommitted, message).hint(format!(
            "merge them as one commit of the last snapshot:\noutlast merge {id} --with-uncommitted"
        )));
    }
    let commit = if files.is_empty() { work.head.clone() } else { work.commit_rest()? };
    let view = |outcome: &str, result: Option<String>, command: Option<String>| MergedView {
        run: id.0.clone(),
        branch: short(&work.branch).to_owned(),
        into: short(&into).to_owned(),
        outcome: outcome.to_owned(),
        commit: commit.clone(),
        result,
        command,
    };
    if work.is_ancestor(&commit, &target)? {
        return Ok(view("already_merged", Some(target), None));
    }
    let is_ahead = work.is_ancestor(&target, &commit)?;
    let result = if is_ahead { commit.clone() } else { work.merged(id, &into, &target, &commit)? };
    if let Some(place) = work.checked_out_at(&into)? {
        let what = if files.is_empty() { short(&work.branch) } else { &commit };
        let command = format!("git -C {} merge {what}", quoted(&place));
        return Ok(view("checked_out", None, Some(command)));
    }
    if asked.dry_run {
        return Ok(view("would_merge", Some(result), None));
    }
    hook!("daemon.merge-made");
    work.swap(id, &into, &result, &target)?;
    hook!("daemon.merge-moved");
    let outcome = if is_ahead { "fast_forward" } else { "merged" };
    Ok(view(outcome, Some(result), None))
}

/// Blocks: runs git.
pub(crate) fn pull_request(supervisor: &Supervisor, id: &RunId) -> Answer<PullRequestView> {
    let work = Work::of(supervisor, id)?;
    let uncommitted = u64::try_from(work.uncommitted()?.len()).unwrap_or(u64::MAX);
    let base = work.default_branch()?.filter(|base| *base != work.branch);
    let summary = work.run.previous.as_ref().map(|it| it.summary.clone()).unwrap_or_default();
    let what = work.run.spec.what();
    let line = summary.lines().find(|line| !line.trim().is_empty()).unwrap_or(&what).trim();
    Ok(PullRequestView {
        run: id.0.clone(),
        repository: work.repository.display().to_string(),
        branch: short(&work.branch).to_owned(),
        commit: work.head.clone(),
        base: base.map(|base| short(&base).to_owned()),
        remote: work.place.remote.clone(),
        title: line.chars().take(LONGEST_TITLE).collect(),
        body: format!(
            "{}\n\nBy Outlast run {id}, {} turns.\n",
            summary.trim(),
            work.run.turns_committed
        ),
        uncommitted,
        git_dir: work.git_dir.display().to_string(),
        objects: work.objects().display().to_string(),
    })
}

/// What a run with a branch of its own has done.
struct Work {
    run: Run,
    repository: PathBuf,
    /// `refs/heads/…`
    branch: String,
    /// What that is at.
    head: String,
    /// The first snapshot and the last.
    first: String,
    last: String,
    place: Place,
    git_dir: PathBuf,
    /// With nothing of the repository's settings.
    plain: Git,
    /// In the repository's own directory: only to read and to set refs.
    users: Git,
}

impl Work {
    fn of(supervisor: &Supervisor, id: &RunId) -> Answer<Self> {
        let run = supervisor.ground.replay(id).map_err(|why| {
            Refusal::new(Code::UnreadableRun, format!("run {id} cannot be read: {why}"))
        })?;
        let branch = workspace::branch(&run.spec).ok_or_else(|| no_branch(&run))?;
        let repository = run.spec.workspace.repository.clone().ok_or_else(|| no_branch(&run))?;
        let known = Known::read(supervisor, id)?;
        let (_, last) = known.end(id, u32::MAX)?;
        let first = known.first().map_or_else(|| last.clone(), |point| point.commit.clone());
        let git_dir = supervisor.ground.layout.run(id.as_str()).snapshots();
        let around = snapshots::around();
        let lost = |failure: outlast_snapshot::Failure| {
            Refusal::new(Code::NoSnapshot, failure.to_string())
        };
        let gone = || Refusal::new(Code::NoSnapshot, format!("the snapshots of run {id} are gone"));
        let place = place_of(&git_dir).map_err(lost)?.ok_or_else(gone)?;
        let common = match &place.repository {
            Some(repository) => repository.common.clone(),
            None => {
                let message = format!("the snapshots of run {id} are not in its repository");
                return Err(Refusal::new(Code::NotMergeable, message).hint(format!(
                    "merge its branch yourself:\ngit -C {} merge {branch}",
                    quoted(Path::new(&repository))
                )));
            }
        };
        let plain = Git::new(&around.path, &git_dir)
            .with("GIT_OBJECT_DIRECTORY", common.join("objects"))
            .with("GIT_INDEX_FILE", git_dir.join("handover.index"));
        let users = Git::new(&around.path, &common);
        let mut work = Self {
            run,
            repository: repository.into(),
            branch: format!("refs/heads/{branch}"),
            head: String::new(),
            first,
            last,
            place,
            git_dir,
            plain,
            users,
        };
        let head = work.resolve(&work.branch)?;
        work.head = head.ok_or_else(|| {
            let message = format!("run {id} has no branch {branch} any more");
            Refusal::new(Code::NotMergeable, message)
                .hint(format!("git -C {} branch --list", quoted(&work.repository)))
        })?;
        Ok(work)
    }

    fn objects(&self) -> PathBuf {
        let common = self.place.repository.as_ref().map(|it| it.common.clone());
        common.unwrap_or_else(|| self.git_dir.clone()).join("objects")
    }

    fn said(&self, git: &Git, args: &[&str]) -> Answer<String> {
        let (printed, _) = bounded(git.command(args), MOST).map_err(|error| failed(&error))?;
        Ok(String::from_utf8_lossy(&printed).trim_end().to_owned())
    }

    /// The commit that a ref is at, if there is such a ref.
    fn resolve(&self, name: &str) -> Answer<Option<String>> {
        let found = self.said(
            &self.users,
            &["for-each-ref", "--format=%(objectname)%09%(refname)", "--", name],
        )?;
        let line = found.lines().find(|line| line.split('\t').nth(1) == Some(name));
        Ok(line.and_then(|line| line.split('\t').next()).map(str::to_owned))
    }

    fn branch_named(&self, name: &str) -> Answer<String> {
        let full = format!("refs/heads/{}", name.strip_prefix("refs/heads/").unwrap_or(name));
        bounded(self.users.command(&["check-ref-format", &full]), MOST)
            .map_err(|_| bad_request(format!("{name:?} is no name of a branch")))?;
        if full == self.branch {
            return Err(bad_request(format!("{name} is the branch of the run itself")));
        }
        Ok(full)
    }

    /// The branch that the repository itself has checked out.
    fn default_branch(&self) -> Answer<Option<String>> {
        let places = self.worktrees()?;
        Ok(places.into_iter().next().and_then(|(_, branch)| branch))
    }

    /// Each checkout of the repository, with its branch; the first is the repository's own.
    fn worktrees(&self) -> Answer<Vec<(PathBuf, Option<String>)>> {
        let output = git(&self.repository, &["worktree", "list", "--porcelain"])
            .map_err(|error| Refusal::new(Code::NotMergeable, error.to_string()))?;
        let mut places: Vec<(PathBuf, Option<String>)> = Vec::new();
        for line in output.text().lines() {
            if let Some(path) = line.strip_prefix("worktree ") {
                places.push((path.into(), None));
            } else if let (Some(branch), Some(place)) =
                (line.strip_prefix("branch "), places.last_mut())
            {
                place.1 = Some(branch.to_owned());
            }
        }
        Ok(places)
    }

    fn checked_out_at(&self, branch: &str) -> Answer<Option<PathBuf>> {
        let places = self.worktrees()?;
        Ok(places.into_iter().find(|(_, of)| of.as_deref() == Some(branch)).map(|(path, _)| path))
    }

    fn is_ancestor(&self, older: &str, newer: &str) -> Answer<bool> {
        let found =
            self.said(&self.plain, &["rev-list", "--max-count=1", older, &format!("^{newer}")])?;
        Ok(found.is_empty())
    }

    /// What differs between the last snapshot and the branch, as entries for an index. A path that is missing from the
    /// snapshot was removed only if the first one had it: others are left out of snapshots.
    fn changes(&self) -> Answer<Vec<(String, Vec<u8>)>> {
        let raw = |from: &str, to: &str| -> Answer<Vec<u8>> {
            let args = ["diff-tree", "-r", "--no-renames", "--raw", "-z", "--abbrev=64", from, to];
            Ok(bounded(self.plain.command(&args), MOST).map_err(|error| failed(&error))?.0)
        };
        let listed = bounded(
            self.plain.command(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &self.first]),
            MOST,
        );
        let listed = listed.map_err(|error| failed(&error))?.0;
        let first: BTreeSet<&[u8]> = listed.split(|byte| *byte == 0).collect();
        let printed = raw(&self.head, &self.last)?;
        let mut fields = printed.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let mut changes = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let head = String::from_utf8_lossy(head).into_owned();
            let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
            let [_, mode, _, id, letter] = words[..] else { continue };
            match letter {
                "D" if !first.contains(path) => {}
                "D" => changes.push((format!("0 {}", "0".repeat(id.len())), path.to_vec())),
                _ => changes.push((format!("{mode} {id}"), path.to_vec())),
            }
        }
        Ok(changes)
    }

    fn uncommitted(&self) -> Answer<Vec<String>> {
        let changes = self.changes()?;
        Ok(changes.iter().map(|(_, path)| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// One commit of what is not committed, on top of the branch; a ref of ours keeps it alive.
    fn commit_rest(&self) -> Answer<String> {
        self.said(&self.plain, &["read-tree", &self.head])?;
        let entries: Vec<u8> = self
            .changes()?
            .iter()
            .flat_map(|(entry, path)| [entry.as_bytes(), b"\t", path, b"\0"].concat())
            .collect();
        self.plain
            .fed(&["update-index", "-z", "--index-info"], &entries)
            .map_err(|error| failed(&error))?;
        let tree = self.said(&self.plain, &["write-tree"])?;
        let message = format!("{}\n\nOutlast run {}", self.run.spec.what(), self.run.id);
        let commit = self.commit(&tree, &[&self.head], &message)?;
        let name = format!("{}-rest", ref_of(self.run.id.as_str()));
        self.said(&self.users, &["update-ref", "--no-deref", &name, &commit])?;
        Ok(commit)
    }

    /// The commit that merges both, if they can be merged.
    fn merged(&self, id: &RunId, into: &str, target: &str, commit: &str) -> Answer<String> {
        let args =
            ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", target, commit];
        let (is_clean, printed) =
            answered(self.plain.command(&args), MOST).map_err(|error| failed(&error))?;
        let mut fields = printed.split(|byte| *byte == 0).filter(|field| !field.is_empty());
        let tree = fields.next().map(|id| String::from_utf8_lossy(id).trim_end().to_owned());
        if !is_clean {
            let names: Vec<String> =
                fields.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
            let (into, branch) = (short(into), short(&self.branch));
            let message = format!(
                "merging {branch} into {into} has conflicts in {}: {}; nothing was changed",
                counted(names.len()),
                listed(&names)
            );
            return Err(Refusal::new(Code::MergeConflict, message).hint(format!(
                "resolve them in the workspace, then merge again:\noutlast exec {id} -- git merge {into}"
            )));
        }
        let message = format!("Merge {} (Outlast run {id})", short(&self.branch));
        self.commit(&tree.unwrap_or_default(), &[target, commit], &message)
    }

    /// The same trees, parents and words at the same point of the run are the same commit.
    fn commit(&self, tree: &str, parents: &[&str], message: &str) -> Answer<String> {
        let date = format!("{} +0000", self.run.seen_at.0 / 1000);
        let (name, mail) = self.author();
        let mut git = self.plain.clone();
        for (variable, value) in [
            ("GIT_AUTHOR_NAME", &name),
            ("GIT_AUTHOR_EMAIL", &mail),
            ("GIT_AUTHOR_DATE", &date),
            ("GIT_COMMITTER_NAME", &name),
            ("GIT_COMMITTER_EMAIL", &mail),
            ("GIT_COMMITTER_DATE", &date),
        ] {
            git = git.with(variable, value);
        }
        let mut args = vec!["commit-tree", tree];
        parents.iter().for_each(|parent| args.extend(["-p", parent]));
        args.extend(["-m", message]);
        self.said(&git, &args)
    }

    /// The author of the branch's last commit: whose work it is.
    fn author(&self) -> (String, String) {
        let said = self.said(&self.plain, &["log", "-1", "--format=%an%x09%ae", &self.head]);
        let said = said.unwrap_or_default();
        let (name, mail) = said.split_once('\t').unwrap_or_default();
        let or = |text: &str, other: &str| {
            if text.is_empty() { other.to_owned() } else { text.to_owned() }
        };
        (or(name, "Outlast"), or(mail, "outlast@localhost"))
    }

    fn swap(&self, id: &RunId, into: &str, new: &str, old: &str) -> Answer<()> {
        let reason = format!("outlast merge {id}");
        let args = ["update-ref", "-m", &reason, into, new, old];
        bounded(self.users.command(&args), MOST).map(drop).map_err(|error| {
            let message = format!("the branch {} was not moved: {error}", short(into));
            Refusal::new(Code::Busy, message).hint("another process moved it; ask again")
        })
    }
}

fn no_branch(run: &Run) -> Refusal {
    let id = &run.id;
    match run.spec.workspace.strategy {
        Strategy::Inplace => {
            let message = format!("run {id} works in place: what it did is in {}", run.spec.dir);
            Refusal::new(Code::NotMergeable, message).hint(format!("outlast diff {id}"))
        }
        Strategy::Dir | Strategy::Worktree => {
            let message = format!("run {id} has a directory of its own, and no branch");
            Refusal::new(Code::NotMergeable, message)
                .hint(format!("look at what it did:\noutlast diff {id}\noutlast path {id}"))
        }
    }
}

fn failed(error: &impl std::fmt::Display) -> Refusal {
    Refusal::new(Code::NotMergeable, format!("git: {error}"))
}

fn short(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

fn counted(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(MOST_CONFLICTS);
    let shown = names.iter().take(MOST_CONFLICTS).cloned().collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn quoted(path: &Path) -> String {
    super::remove::quoted(&path.to_string_lossy())
}
