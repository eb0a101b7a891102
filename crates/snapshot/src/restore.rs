//! The workspace goes back to a snapshot. Only paths that are in a snapshot are ever changed or removed.
//!
//! What is there now is in a snapshot before this begins. What the rules of either tree ignore is left alone, and so is
//! what no snapshot has: a file that was too large, or is named like a secret. Killed in the middle and done again it
//! comes to the same, because it begins with what is on disk then.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::iter;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use outlast_wire::again;
use outlast_wire::snapshot::{Head, Orders, Restored};

use crate::Failure;
use crate::area::{Area, Nested, Rules, joined, take_out};
use crate::checkout::Checkout;
use crate::git::Git;
use crate::list::is_absence;
use crate::omitted;
use crate::place::{self, Around, path_in};
use crate::staged;

const MOST_KEPT: usize = 20;
/// How many files are looked at below one directory that is in the way.
const MOST_IN_THE_WAY: usize = 10_000;
/// So many directories are asked for their rules by name; for more, the whole tree is listed.
const MOST_RULES: usize = 256;
const LONGEST_RULE: usize = 1024;

pub(crate) fn restore(
    orders: &Orders,
    around: &Around,
    to: &str,
    head: Option<&Head>,
) -> Result<Restored, Failure> {
    let gone = || Failure::Gone(to.to_owned());
    let place = place::open(orders, around)?;
    let area = Area::main(&around.path, &orders.git_dir, &place)?;
    let target = tree_of(&area.git, to)?.ok_or_else(gone)?;
    // What a fork finds was made for it, and its last snapshot is the one that it begins with.
    let head_file = area.git_dir.join("HEAD");
    let is_first_of_fork = fs::read(&head_file).is_ok_and(|head| head == place::UNBORN);
    let last = orders.last.as_ref().filter(|_| !is_first_of_fork);
    let wreck = last.map(|last| last.commit.as_str());
    let staged = head.map(|_| staged::of(&area.git, to)).transpose()?.flatten();
    let checkout = head.and_then(|head| Checkout::of(&place, around, head, wreck, staged));
    if let Some(checkout) = &checkout {
        checkout.refuse_if_busy()?;
    }
    let mut rules =
        Rules { place: &place, max_file: orders.max_file, bytes_left: u64::MAX, is_first: false };
    let now = area.sync(&mut rules, 0)?;
    let begun = Begun::at(&orders.git_dir, to, wreck);
    let is_again = begun.is_again()?;
    let kept_in = match wreck {
        // What is there now is half of each, and all of it was kept before.
        Some(_) if is_again => None,
        Some(wreck) => tree_of(&area.git, wreck)?,
        None => None,
    };
    let way = Way { target, kept_in, left_out: omitted::of(&orders.git_dir, to)? };
    begun.write()?;
    let mut restored = Restored { written: 0, removed: 0, kept: Vec::new() };
    let stays = checkout.as_ref().map(Checkout::move_branch_back).transpose();
    let stays = match stays {
        Ok(stays) => stays.flatten(),
        Err(failure) if is_again => return Err(failure),
        // Nothing was changed yet.
        Err(failure) => return begun.end().and(Err(failure)),
    };
    go_back(&area, &now.nested, &way, &mut restored)?;
    if is_first_of_fork {
        // Its snapshots go on from this one.
        place::write(&head_file, format!("{to}\n").as_bytes())?;
    }
    if let Some(checkout) = &checkout {
        checkout.turn_back(stays.as_deref())?;
        restored.kept.extend(stays);
    }
    begun.end()?;
    Ok(restored)
}

/// Where an area goes back to.
struct Way {
    target: String,
    /// The tree that what is there now was kept in.
    kept_in: Option<String>,
    /// What was there then and is not in the target.
    left_out: omitted::Paths,
}

/// A mark that files are being changed, so that one who begins again does not take them for another's work.
struct Begun {
    mark: PathBuf,
    what: String,
}

impl Begun {
    fn at(git_dir: &Path, to: &str, wreck: Option<&str>) -> Self {
        let what = format!("{to} {}", wreck.unwrap_or_default());
        Self { mark: git_dir.join("restoring"), what }
    }

    fn is_again(&self) -> Result<bool, Failure> {
        match fs::read(&self.mark) {
            Ok(known) => Ok(known == self.what.as_bytes()),
            Err(error) if is_absence(&error) => Ok(false),
            Err(error) => Err(Failure::io("the mark of a restore")(error)),
        }
    }

    fn write(&self) -> Result<(), Failure> {
        place::write(&self.mark, self.what.as_bytes())
    }

    fn end(&self) -> Result<(), Failure> {
        place::remove(&self.mark)
    }
}

fn tree_of(git: &Git, commit: &str) -> Result<Option<String>, Failure> {
    let tree = git.maybe(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")])?;
    Ok(tree.map(|tree| String::from_utf8_lossy(&tree).trim_end().to_owned()))
}

/// Takes one area back, those within it first.
fn go_back(
    area: &Area,
    nested: &[Nested],
    way: &Way,
    restored: &mut Restored,
) -> Result<(), Failure> {
    area.unlock()?;
    let mut wanted = Wanted::of(area, &way.target)?;
    for Nested { path, area: within, nested, .. } in nested {
        go_back(within, nested, &way.below(area, within, path)?, restored)?;
        wanted.change(|git| take_out(git, &[path.as_slice(), b"/"].concat()))?;
    }
    let now = area.git.line(&["write-tree", "--missing-ok"])?;
    let changes = changes(&area.git, &now, &wanted.tree)?;
    let held = way.hold(area, &wanted.tree, &now, &changes)?;
    let kept = keep(area, &mut wanted, &changes, &held)?;
    let aim = wanted.end()?;
    // With one tree: with two, git would hash every directory again.
    area.git.run(&["read-tree", "-m", "-u", &aim])?;
    let reached = area.git.line(&["write-tree", "--missing-ok"])?;
    if reached != aim {
        return Err(Failure::Unreadable(format!("the restored tree is {reached}, not {aim}")));
    }
    for change in changes.iter().filter(|change| !kept.contains(&change.path)) {
        match change.kind {
            Kind::Removed => restored.removed += 1,
            Kind::Added | Kind::Other => restored.written += 1,
        }
    }
    for path in kept {
        if restored.kept.len() < MOST_KEPT {
            restored.kept.push(String::from_utf8_lossy(&path).into_owned());
        }
    }
    Ok(())
}

/// The tree that an area goes to. It gets an index only if it has to differ from the snapshot's.
struct Wanted {
    tree: String,
    git: Git,
    index: PathBuf,
    is_read: bool,
}

impl Wanted {
    fn of(area: &Area, tree: &str) -> Result<Self, Failure> {
        let index = area.git_dir.join("target");
        for name in ["target", "target.lock"] {
            place::remove(&area.git_dir.join(name))?;
        }
        let git = area.git.clone().with("GIT_INDEX_FILE", &index);
        Ok(Self { tree: tree.to_owned(), git, index, is_read: false })
    }

    fn change(&mut self, with: impl FnOnce(&Git) -> Result<(), Failure>) -> Result<(), Failure> {
        if !self.is_read {
            self.git.run(&["read-tree", &self.tree])?;
            self.is_read = true;
        }
        with(&self.git)?;
        self.tree = self.git.line(&["write-tree", "--missing-ok"])?;
        Ok(())
    }

    fn end(self) -> Result<String, Failure> {
        place::remove(&self.index)?;
        Ok(self.tree)
    }
}

impl Way {
    /// The way of a repository within.
    fn below(&self, area: &Area, within: &Area, path: &[u8]) -> Result<Self, Failure> {
        let at = |tree: &str| {
            let found = tree_at(&area.git, &[tree.as_bytes(), b":", path].concat())?;
            found.map_or_else(|| within.empty_tree(), Ok)
        };
        let kept_in = self.kept_in.as_deref().map(at).transpose()?;
        let left_out = omitted::below(&self.left_out, path);
        Ok(Self { target: at(&self.target)?, kept_in, left_out })
    }

    /// Those of the changes that are not to be made: what a rule of then ignores, what was there then and was not
    /// taken, and what is in no snapshot as it is now.
    fn hold(
        &self,
        area: &Area,
        target: &str,
        now: &str,
        changes: &[Change],
    ) -> Result<BTreeSet<Vec<u8>>, Failure> {
        let removed: BTreeSet<&[u8]> = changes
            .iter()
            .filter(|change| change.kind == Kind::Removed)
            .map(|change| change.path.as_slice())
            .collect();
        let mut held = ignored_then(area, target, &removed)?;
        let then = removed.iter().filter(|path| omitted::has(&self.left_out, path));
        held.extend(then.map(|path| path.to_vec()));
        if let Some(kept_in) = self.kept_in.as_ref().filter(|kept_in| *kept_in != now) {
            let unkept = self::changes(&area.git, now, kept_in)?;
            let unkept = unkept.into_iter().filter(|change| change.kind != Kind::Added);
            let unkept: BTreeSet<Vec<u8>> = unkept.map(|change| change.path).collect();
            let lost = changes.iter().filter(|change| unkept.contains(&change.path));
            held.extend(lost.map(|change| change.path.clone()));
        }
        Ok(held)
    }
}

/// The tree under a path of another, if that is a tree.
fn tree_at(git: &Git, spec: &[u8]) -> Result<Option<String>, Failure> {
    let asked = [spec, b"\n"].concat();
    if spec.contains(&b'\n') {
        return Err(Failure::Unreadable("a repository whose path has a line break".to_owned()));
    }
    let printed = git.fed(&["cat-file", "--batch-check=%(objecttype) %(objectname)"], &asked)?;
    let line = String::from_utf8_lossy(&printed).into_owned();
    Ok(line.strip_prefix("tree ").map(|id| id.trim_end().to_owned()))
}

#[derive(Debug)]
struct Change {
    kind: Kind,
    /// Mode and id as they are now, for an index.
    now: String,
    path: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// The target has it, and nothing is there now.
    Added,
    /// It is there now, and the target does not have it.
    Removed,
    Other,
}

fn changes(git: &Git, now: &str, wanted: &str) -> Result<Vec<Change>, Failure> {
    let args = ["diff-tree", "-r", "--no-renames", "--raw", "-z", "--abbrev=64", now, wanted];
    let printed = git.run(&args)?;
    let mut fields = printed.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut changes = Vec::new();
    while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
        let head = String::from_utf8_lossy(head).into_owned();
        let words: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
        let [mode, _, id, _, letter] = words[..] else {
            return Err(Failure::Unreadable(format!("git diff-tree said {head:?}")));
        };
        let kind = match letter {
            "A" => Kind::Added,
            "D" => Kind::Removed,
            _ => Kind::Other,
        };
        changes.push(Change { kind, now: format!("{mode} {id}"), path: path.to_vec() });
    }
    Ok(changes)
}

/// Changes the target so that what has to be left alone is left alone, and says what that is.
fn keep(
    area: &Area,
    wanted: &mut Wanted,
    changes: &[Change],
    held: &BTreeSet<Vec<u8>>,
) -> Result<BTreeSet<Vec<u8>>, Failure> {
    let removed: BTreeSet<&[u8]> = changes
        .iter()
        .filter(|change| change.kind == Kind::Removed && !held.contains(&change.path))
        .map(|change| change.path.as_slice())
        .collect();
    let in_the_way: Vec<Vec<u8>> = changes
        .iter()
        .filter(|change| change.kind == Kind::Added)
        .filter_map(|change| match is_blocked(&area.top, &change.path, &removed) {
            Ok(true) => Some(Ok(change.path.clone())),
            Ok(false) => None,
            Err(failure) => Some(Err(failure)),
        })
        .collect::<Result<_, _>>()?;
    if !in_the_way.is_empty() {
        let remove = ["update-index", "-z", "--force-remove", "--stdin"];
        wanted.change(|git| git.fed(&remove, &joined(&in_the_way)).map(drop))?;
    }
    let held: Vec<&Change> = changes.iter().filter(|change| held.contains(&change.path)).collect();
    if !held.is_empty() {
        let entry = |change: &&Change| [change.now.as_bytes(), b"\t", &change.path, b"\0"].concat();
        let entries: Vec<u8> = held.iter().flat_map(entry).collect();
        let set = ["update-index", "-z", "--index-info"];
        wanted.change(|git| git.fed(&set, &entries).map(drop))?;
    }
    let held = held.into_iter().map(|change| change.path.clone());
    Ok(in_the_way.into_iter().chain(held).collect())
}

/// True if something is where a file would be written, and no snapshot has it.
fn is_blocked(top: &Path, path: &[u8], removed: &BTreeSet<&[u8]>) -> Result<bool, Failure> {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    for at in 1..=parts.len() {
        let part = parts[..at].join(&b'/');
        let found = match fs::symlink_metadata(path_in(top, &part)) {
            Ok(found) => found,
            Err(error) if is_absence(&error) => return Ok(false),
            Err(error) => return Err(Failure::io("looking at the workspace")(error)),
        };
        if !found.is_dir() {
            return Ok(!removed.contains(part.as_slice()));
        }
    }
    let mut left = MOST_IN_THE_WAY;
    Ok(!is_all_removed(&path_in(top, path), path, removed, &mut left)?)
}

/// True if every file below a directory is about to go.
fn is_all_removed(
    dir: &Path,
    path: &[u8],
    removed: &BTreeSet<&[u8]>,
    left: &mut usize,
) -> Result<bool, Failure> {
    use std::os::unix::ffi::OsStrExt;
    for entry in again::read_dir(dir).map_err(Failure::io("looking at the workspace"))? {
        let entry = entry.map_err(Failure::io("looking at the workspace"))?;
        let below = [path, b"/", entry.file_name().as_bytes()].concat();
        let kind = entry.file_type().map_err(Failure::io("looking at the workspace"))?;
        *left = left.saturating_sub(1);
        let goes = match kind.is_dir() {
            _ if *left == 0 => false,
            true => is_all_removed(&entry.path(), &below, removed, left)?,
            false => removed.contains(below.as_slice()),
        };
        if !goes {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Those paths of now that the target's own rules ignore. Asked also if no `.gitignore` differs: a restore that was
/// killed, or one before it, may have left such a path in our index.
fn ignored_then(
    area: &Area,
    target: &str,
    removed: &BTreeSet<&[u8]>,
) -> Result<BTreeSet<Vec<u8>>, Failure> {
    if removed.is_empty() {
        return Ok(BTreeSet::new());
    }
    let then = area.git_dir.join("rules");
    let index = area.git_dir.join("rules.index");
    place::clear(&then)?;
    place::make_dir(&then)?;
    for name in ["rules.index", "rules.index.lock"] {
        place::remove(&area.git_dir.join(name))?;
    }
    let git = area.git.clone().with("GIT_INDEX_FILE", &index).within(&then);
    let rules = rules_for(&area.git, target, removed)?;
    if !rules.is_empty() {
        git.fed(&["update-index", "-z", "--index-info"], &rules)?;
        git.run(&["checkout-index", "--all"])?;
    }
    // A path that begins so is no pattern.
    let paths: Vec<Vec<u8>> = removed.iter().map(|path| [b"./", *path].concat()).collect();
    let asked = ["check-ignore", "-z", "--no-index", "--stdin"];
    let printed = git.plainly().maybe_fed(&asked, &joined(&paths))?.unwrap_or_default();
    place::clear(&then)?;
    place::remove(&index)?;
    let ignored = printed.split(|byte| *byte == 0).filter_map(|path| path.strip_prefix(b"./"));
    Ok(ignored.map(<[u8]>::to_vec).collect())
}

/// The `.gitignore` files of a tree that are above one of the paths, as entries for an index.
fn rules_for(git: &Git, tree: &str, paths: &BTreeSet<&[u8]>) -> Result<Vec<u8>, Failure> {
    let slashes = |path: &[u8]| -> Vec<usize> {
        path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at + 1).collect()
    };
    let above: BTreeSet<&[u8]> = paths
        .iter()
        .flat_map(|path| iter::once(0).chain(slashes(path)).map(|end| &path[..end]))
        .collect();
    let mut args: Vec<OsString> = vec!["ls-tree".into(), "-r".into(), "-z".into(), tree.into()];
    let is_few = above.len() <= MOST_RULES && above.iter().all(|dir| dir.len() < LONGEST_RULE);
    if is_few {
        args.push("--".into());
        let name = |dir: &&[u8]| OsString::from_vec([*dir, b".gitignore"].concat());
        args.extend(above.iter().map(name));
    }
    let listed = git.run(&args)?;
    let is_rule = |entry: &&[u8]| {
        let path = entry.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default();
        path.strip_suffix(b".gitignore").is_some_and(|dir| above.contains(dir))
    };
    let entries = listed.split(|byte| *byte == 0).filter(is_rule);
    Ok(entries.flat_map(|entry| [entry, b"\0"].concat()).collect())
}
