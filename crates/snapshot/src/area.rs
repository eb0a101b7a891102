//! One index of ours over one directory, and the repositories within that directory with an index each.
//!
//! Git keeps a repository within a repository as a bare link. A snapshot keeps its files: each is listed and read by an
//! index of its own, and its tree is put into the tree around it. Its `.git` is neither read nor kept.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use outlast_wire::snapshot::Place;

use crate::Failure;
use crate::git::Git;
use crate::held::Held;
use crate::list::{self, Look, Omitted, is_secret_name, leave_out, look};
use crate::place::{self, UNBORN, path_in};

const DEEPEST: usize = 4;
const MOST_NESTED: usize = 64;

/// What holds for all areas of a workspace.
pub(crate) struct Rules<'a> {
    pub(crate) place: &'a Place,
    pub(crate) max_file: u64,
    /// What may still be read.
    pub(crate) bytes_left: u64,
    /// Whether the first snapshot of a repository is made, whose files are in it already.
    pub(crate) is_first: bool,
}

/// What an area has come to.
#[derive(Debug, Default)]
pub(crate) struct Synced {
    pub(crate) tree: String,
    pub(crate) bytes: u64,
    pub(crate) left_out: Omitted,
    pub(crate) nested: Vec<Nested>,
    /// True if nothing was found that the last snapshot does not have.
    pub(crate) is_same: bool,
}

/// A repository within the area, by its path from there.
#[derive(Debug)]
pub(crate) struct Nested {
    pub(crate) path: Vec<u8>,
    pub(crate) tree: String,
    pub(crate) area: Area,
    /// Those within it.
    pub(crate) nested: Vec<Self>,
}

/// Names of files as git has them: bytes, not text.
type Paths = Vec<Vec<u8>>;

/// One index over one directory.
#[derive(Debug, Clone)]
pub(crate) struct Area {
    pub(crate) git: Git,
    pub(crate) git_dir: PathBuf,
    pub(crate) top: PathBuf,
    /// What `top` leads to.
    held: Held,
    /// Nothing outside of this is looked at; empty is all.
    pub(crate) prefix: String,
    pub(crate) objects: PathBuf,
    pub(crate) path: std::ffi::OsString,
    /// The index of the user's checkout, for what is tracked there.
    pub(crate) users_index: Option<PathBuf>,
    /// Another store that objects are read from.
    pub(crate) alternates: Option<PathBuf>,
}

impl Area {
    pub(crate) fn main(
        path: &std::ffi::OsStr,
        git_dir: &Path,
        place: &Place,
    ) -> Result<Self, Failure> {
        let held = Held::open(&place.top)?;
        let top = held.path();
        let objects = match &place.repository {
            Some(repository) => repository.common.join("objects"),
            None => git_dir.join("objects"),
        };
        let git = Git::new(path, git_dir)
            .within(&top)
            .with("GIT_INDEX_FILE", git_dir.join("index"))
            .with("GIT_OBJECT_DIRECTORY", &objects);
        Ok(Self {
            git,
            git_dir: git_dir.to_owned(),
            top,
            held,
            prefix: place.prefix.clone(),
            objects,
            path: path.to_owned(),
            users_index: place.repository.as_ref().map(|it| it.admin.join("index")),
            alternates: None,
        })
    }

    fn nested(&self, path: &[u8], place: &Place) -> Result<Self, Failure> {
        let git_dir = self.git_dir.join("nested").join(short_name(path));
        let held = self.held.below(&path_in(Path::new(""), path))?;
        let top = held.path();
        if !git_dir.join("HEAD").exists() {
            place::make_dir(&git_dir)?;
            place::fill(&git_dir, place, "")?;
        }
        let exclude = fs::read(self.git_dir.join("info/exclude"));
        place::write(
            &git_dir.join("info/exclude"),
            &exclude.map_err(Failure::io("info/exclude"))?,
        )?;
        let mut git = Git::new(&self.path, &git_dir)
            .within(&top)
            .with("GIT_INDEX_FILE", git_dir.join("index"))
            .with("GIT_OBJECT_DIRECTORY", &self.objects);
        if let Some(alternates) = &self.alternates {
            git = git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternates);
        }
        Ok(Self {
            git,
            git_dir,
            top,
            held,
            prefix: String::new(),
            users_index: None,
            ..self.clone()
        })
    }

    /// Removes what a git of ours that was killed has left. No other process writes here.
    pub(crate) fn unlock(&self) -> Result<(), Failure> {
        place::remove(&self.git_dir.join("index.lock"))
    }

    /// Everything is read anew by the next look.
    pub(crate) fn forget(&self) -> Result<(), Failure> {
        self.unlock()?;
        place::remove(&self.git_dir.join("index"))?;
        place::remove(&self.git_dir.join("stamp"))?;
        match fs::remove_dir_all(self.git_dir.join("nested")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::io("removing indexes")(error));
            }
            Ok(()) | Err(_) => {}
        }
        place::write(&self.git_dir.join("HEAD"), UNBORN)
    }

    /// Brings the index to what is on disk, and writes the tree of it.
    pub(crate) fn sync(&self, rules: &mut Rules<'_>, depth: usize) -> Result<Synced, Failure> {
        self.unlock()?;
        let mut args = vec!["status", "--porcelain=v2", "-z", "--no-renames"];
        if !self.prefix.is_empty() {
            args.extend(["--", &self.prefix]);
        }
        let listed = list::parse(&self.git.run(&args)?)?;
        let mut synced = Synced::default();
        let mut plan = Plan::default();
        // What an earlier snapshot had may be tracked no longer: then it is a secret like any other.
        let (secret, changed): (Vec<_>, Vec<_>) =
            listed.changed.into_iter().partition(|path| is_secret_name(path));
        let (tracked, secret) = self.tracked_of(secret)?;
        for path in changed.iter().chain(&tracked) {
            self.consider(path, true, rules, &mut plan, &mut synced.left_out)?;
        }
        for path in secret {
            if let Ok(found) = fs::symlink_metadata(path_in(&self.top, &path)) {
                leave_out(&mut synced.left_out, &path, "named like a secret", found.len());
            }
            plan.remove.push(path);
        }
        let (secret, untracked): (Vec<_>, Vec<_>) =
            listed.untracked.into_iter().partition(|path| is_secret_name(path));
        let (tracked, secret) = self.tracked_of(secret)?;
        for path in secret {
            let bytes = fs::symlink_metadata(path_in(&self.top, &path)).map_or(0, |it| it.len());
            leave_out(&mut synced.left_out, &path, "named like a secret", bytes);
        }
        let forced = self.forced(&mut synced.left_out)?;
        for path in untracked.iter().chain(&tracked).chain(&forced) {
            self.consider(path, false, rules, &mut plan, &mut synced.left_out)?;
        }
        synced.bytes = plan.bytes;
        let has_plan = !plan.add.is_empty() || !plan.remove.is_empty();
        self.carry_out(plan, &mut synced.left_out)?;
        synced.is_same = !has_plan && !listed.is_staged && listed.nested.is_empty();
        let own = match synced.is_same {
            true => String::new(),
            false => self.git.line(&["write-tree", "--missing-ok"])?,
        };
        self.sync_nested(&listed.nested, rules, depth, &mut synced)?;
        synced.tree = if synced.nested.is_empty() { own } else { self.graft(&synced.nested)? };
        Ok(synced)
    }

    fn consider(
        &self,
        path: &[u8],
        is_known: bool,
        rules: &mut Rules<'_>,
        plan: &mut Plan,
        left_out: &mut Omitted,
    ) -> Result<(), Failure> {
        match look(&self.top, path, rules.max_file)? {
            Look::Add { bytes } => {
                if !rules.is_first {
                    rules.bytes_left = rules.bytes_left.checked_sub(bytes).ok_or_else(too_much)?;
                    plan.bytes += bytes;
                }
                plan.add.push(path.to_vec());
            }
            Look::Remove if is_known => plan.remove.push(path.to_vec()),
            Look::Remove => {}
            Look::LeftOut { why, bytes } => {
                leave_out(left_out, path, why, bytes);
                if is_known {
                    plan.remove.push(path.to_vec());
                }
            }
        }
        Ok(())
    }

    /// Removals first: an index does not take a file where it has a directory of that name.
    fn carry_out(&self, plan: Plan, left_out: &mut Omitted) -> Result<(), Failure> {
        let Plan { add, remove, .. } = plan;
        if !remove.is_empty() {
            self.git.fed(&["update-index", "-z", "--force-remove", "--stdin"], &joined(&remove))?;
        }
        if add.is_empty() {
            return Ok(());
        }
        let args = ["update-index", "-z", "--add", "--remove", "--replace", "--stdin"];
        let Err(failure) = self.git.fed(&args, &joined(&add)) else { return Ok(()) };
        // One file that cannot be read is no reason to have no snapshot.
        let is_readable = |path: &Vec<u8>| {
            let path = path_in(&self.top, path);
            let is_link = path.is_symlink();
            is_link
                || !matches!(File::open(path), Err(error) if error.kind() == io::ErrorKind::PermissionDenied)
        };
        let (readable, unreadable): (Vec<_>, Vec<_>) = add.into_iter().partition(is_readable);
        if unreadable.is_empty() {
            return Err(failure);
        }
        self.unlock()?;
        for path in &unreadable {
            leave_out(left_out, path, "not readable", 0);
        }
        self.git.fed(&["update-index", "-z", "--force-remove", "--stdin"], &joined(&unreadable))?;
        self.git.fed(&args, &joined(&readable)).map(drop)
    }

    /// Splits off the paths that the user's own index has.
    fn tracked_of(&self, paths: Paths) -> Result<(Paths, Paths), Failure> {
        let index = self.users_index.as_ref().filter(|index| index.exists() && !paths.is_empty());
        let Some(index) = index else { return Ok((Vec::new(), paths)) };
        let git = self.git.clone().with("GIT_INDEX_FILE", index);
        // An index that is not read is no proof that they are tracked.
        let listed = git.run(&["ls-files", "-z", "--cached"]).unwrap_or_default();
        let known: std::collections::BTreeSet<&[u8]> = listed.split(|byte| *byte == 0).collect();
        Ok(paths.into_iter().partition(|path| known.contains(path.as_slice())))
    }

    /// Files that a rule ignores although the user tracks them. Asked again only when the user's index has changed.
    fn forced(&self, left_out: &mut Omitted) -> Result<Vec<Vec<u8>>, Failure> {
        use std::os::unix::fs::MetadataExt;
        let Some(index) = self.users_index.as_ref() else { return Ok(Vec::new()) };
        let Ok(found) = fs::metadata(index) else { return Ok(Vec::new()) };
        let stamp =
            format!("{}.{} {} {}", found.mtime(), found.mtime_nsec(), found.len(), found.ino());
        let file = self.git_dir.join("stamp");
        if fs::read(&file).is_ok_and(|known| known == stamp.as_bytes()) {
            return Ok(Vec::new());
        }
        let mut args = vec!["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
        if !self.prefix.is_empty() {
            args.extend(["--", &self.prefix]);
        }
        let listed = match self.git.clone().with("GIT_INDEX_FILE", index).run(&args) {
            Ok(listed) => listed,
            Err(failure) => {
                let why = format!("tracked files that a rule ignores were not listed: {failure}");
                leave_out(left_out, b".gitignore", &why, 0);
                return Ok(Vec::new());
            }
        };
        place::write(&file, stamp.as_bytes())?;
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(<[u8]>::to_vec).collect())
    }

    fn sync_nested(
        &self,
        paths: &[Vec<u8>],
        rules: &mut Rules<'_>,
        depth: usize,
        synced: &mut Synced,
    ) -> Result<(), Failure> {
        for (at, path) in paths.iter().enumerate() {
            if depth >= DEEPEST || at >= MOST_NESTED {
                leave_out(&mut synced.left_out, path, "too many repositories within", 0);
                continue;
            }
            let area = self.nested(path, rules.place)?;
            let place = rules.place;
            let mut own = Rules {
                place,
                max_file: rules.max_file,
                bytes_left: rules.bytes_left,
                is_first: false,
            };
            let mut within = area.sync(&mut own, depth + 1)?;
            rules.bytes_left = own.bytes_left;
            if within.tree.is_empty() {
                within.tree = area.git.line(&["write-tree", "--missing-ok"])?;
            }
            synced.bytes += within.bytes;
            let Omitted { told, paths } = within.left_out;
            for name in told.names {
                let name = format!("{}/{name}", String::from_utf8_lossy(path));
                synced.left_out.told.names.push(name);
            }
            synced.left_out.told.files += told.files;
            synced.left_out.told.bytes += told.bytes;
            let paths = paths.iter().map(|name| [path, &b"/"[..], name].concat());
            synced.left_out.paths.extend(paths);
            let (path, tree, nested) = (path.clone(), within.tree, within.nested);
            synced.nested.push(Nested { path, tree, area, nested });
        }
        Ok(())
    }

    /// The tree of this area with those of the repositories within.
    fn graft(&self, nested: &[Nested]) -> Result<String, Failure> {
        let index = self.git_dir.join("graft");
        place::remove(&self.git_dir.join("graft.lock"))?;
        fs::copy(self.git_dir.join("index"), &index).map(drop).or_else(|error| {
            match error.kind() {
                io::ErrorKind::NotFound => place::remove(&index),
                _ => Err(Failure::io("copying the index")(error)),
            }
        })?;
        let git = self.git.clone().with("GIT_INDEX_FILE", &index);
        for Nested { path, tree, area, .. } in nested {
            let within = [path.as_slice(), b"/"].concat();
            take_out(&git, &within)?;
            if *tree != area.empty_tree()? {
                let prefix = [b"--prefix=", within.as_slice()].concat();
                let prefix: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(prefix);
                git.run(&["read-tree".into(), prefix, tree.as_str().into()])?;
            }
        }
        let tree = git.line(&["write-tree", "--missing-ok"])?;
        place::remove(&index)?;
        Ok(tree)
    }

    pub(crate) fn empty_tree(&self) -> Result<String, Failure> {
        // Written, not only named: a repository need not have it.
        self.git.line(&["hash-object", "-w", "-t", "tree", "/dev/null"])
    }
}

/// Takes every path that begins so out of an index.
pub(crate) fn take_out(git: &Git, within: &[u8]) -> Result<(), Failure> {
    let listed = git.run(&["ls-files", "-z"])?;
    let gone: Vec<Vec<u8>> = listed
        .split(|byte| *byte == 0)
        .filter(|path| path.starts_with(within))
        .map(<[u8]>::to_vec)
        .collect();
    if !gone.is_empty() {
        git.fed(&["update-index", "-z", "--force-remove", "--stdin"], &joined(&gone))?;
    }
    Ok(())
}

#[derive(Default)]
struct Plan {
    add: Vec<Vec<u8>>,
    remove: Vec<Vec<u8>>,
    bytes: u64,
}

fn too_much() -> Failure {
    Failure::TooBig(
        "the run's snapshots would hold more than workspace.snapshot.max_total".to_owned(),
    )
}

pub(crate) fn joined(paths: &[Vec<u8>]) -> Vec<u8> {
    let mut joined = paths.join(&0);
    joined.push(0);
    joined
}

/// A name for a directory, of any path.
fn short_name(path: &[u8]) -> String {
    let hash = path.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}-{}", path.len())
}
