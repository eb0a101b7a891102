//! What is staged in a worktree of a run's own: a commit beside the snapshot, so that it goes back with the files.
//!
//! A tree is kept, as `git stash` does. An index that is no tree, as in a merge with conflicts, is not kept; the snapshot
//! then names it among what it left out.

use std::fs;
use std::io;

use outlast_wire::snapshot::Place;

use crate::Failure;
use crate::area::Area;
use crate::git::Git;
use crate::list::Omitted;
use crate::place;

/// The last line of a snapshot's message, with the id of a parent of the snapshot.
const LINE: &str = "index ";
const MESSAGE: &str = "What was staged";

/// The tree of the index of a checkout, unless it is that of its HEAD.
pub(crate) fn tree(
    area: &Area,
    place: &Place,
    head: Option<&str>,
    left_out: &mut Omitted,
) -> Result<Option<String>, Failure> {
    let Some(repository) = place.repository.as_ref().filter(|it| it.admin != it.common) else {
        return Ok(None);
    };
    let Some(head) = head else { return Ok(None) };
    let copy = area.git_dir.join("staged");
    place::remove(&area.git_dir.join("staged.lock"))?;
    // A copy: git writes into the index that it makes a tree of.
    match fs::copy(repository.admin.join("index"), &copy) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io("copying the index of the worktree")(error)),
    }
    let made = area.git.clone().with("GIT_INDEX_FILE", &copy).line(&["write-tree"]);
    place::remove(&copy)?;
    let tree = match made {
        Ok(tree) => tree,
        Err(Failure::Git { said, .. }) => {
            left_out.told.names.push(format!("what is staged ({said})"));
            return Ok(None);
        }
        Err(failure) => return Err(failure),
    };
    let of_head = area.git.line(&["rev-parse", "--verify", &format!("{head}^{{tree}}")])?;
    Ok(Some(tree).filter(|tree| *tree != of_head))
}

/// The commit of such a tree, by the git that signs the snapshot.
pub(crate) fn commit(signing: &Git, tree: &str) -> Result<String, Failure> {
    signing.line(&["commit-tree", tree, "-m", MESSAGE])
}

/// The end of a snapshot's message.
pub(crate) fn line(commit: &str) -> String {
    format!("\n\n{LINE}{commit}")
}

/// The commit of what was staged when a snapshot was made.
pub(crate) fn of(git: &Git, snapshot: &str) -> Result<Option<String>, Failure> {
    let printed = git.run(&["cat-file", "commit", snapshot])?;
    let text = String::from_utf8_lossy(&printed).into_owned();
    let Some((head, message)) = text.split_once("\n\n") else { return Ok(None) };
    let named = message.trim_end().lines().next_back().and_then(|line| line.strip_prefix(LINE));
    let is_parent = |id: &&str| head.lines().any(|line| line.strip_prefix("parent ") == Some(id));
    Ok(named.filter(is_parent).map(str::to_owned))
}
