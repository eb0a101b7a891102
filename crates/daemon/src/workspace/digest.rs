//! A fingerprint of a workspace, by which a turn that changed nothing is told.
//!
//! Reads names and what the directory says about files, never their content. What it cannot take in whole
//! has no fingerprint, so that no comparison claims that nothing has changed. It is no security measure: an agent
//! that wants to hide a change can.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use outlast_wire::again;

use super::fnv::Fnv;

const MOST_ENTRIES: usize = 200_000;
const DEEPEST: usize = 64;
/// Of a file that says where git keeps something.
const LONGEST_POINTER: u64 = 64 * 1024;

/// What of a repository's own files says that work was done; the rest is how git keeps it.
const TELLING: [&str; 4] = ["HEAD", "index", "packed-refs", "refs"];
/// The same for what a linked worktree has to itself.
const TELLING_OF_LINKED: [&str; 3] = ["HEAD", "index", "logs/HEAD"];

pub(crate) fn digest(dir: &Path) -> Option<String> {
    Walk::new(MOST_ENTRIES, DEEPEST).digest(dir)
}

struct Walk {
    hashes: [Fnv; 2],
    entries_left: usize,
    deepest: usize,
}

impl Walk {
    fn new(most_entries: usize, deepest: usize) -> Self {
        let hashes = [Fnv::new(), Fnv::starting_at(0x6c62_272e_07bb_0142)];
        Self { hashes, entries_left: most_entries, deepest }
    }

    fn digest(mut self, dir: &Path) -> Option<String> {
        self.inside(dir, Path::new(""), 0)?;
        if let Some(admin) = linked_admin(dir)? {
            self.linked(&admin)?;
        }
        let [a, b] = self.hashes.map(Fnv::value);
        Some(format!("{a:016x}{b:016x}"))
    }

    fn inside(&mut self, dir: &Path, below: &Path, depth: usize) -> Option<()> {
        if depth > self.deepest {
            return None;
        }
        let is_git = below.file_name().is_some_and(|name| name == ".git");
        let mut names = Vec::new();
        for entry in again::read_dir(dir).ok()? {
            let name = entry.ok()?.file_name();
            if !is_git || TELLING.iter().any(|telling| name == *telling) {
                self.entries_left = self.entries_left.checked_sub(1)?;
                names.push(name);
            }
        }
        names.sort_unstable();
        names.iter().try_for_each(|name| self.entry(&dir.join(name), &below.join(name), depth))
    }

    fn entry(&mut self, path: &Path, below: &Path, depth: usize) -> Option<()> {
        let found = fs::symlink_metadata(path).ok()?;
        self.found(path, below, &found)?;
        if found.is_dir() { self.inside(path, below, depth + 1) } else { Some(()) }
    }

    fn found(&mut self, path: &Path, below: &Path, found: &Metadata) -> Option<()> {
        self.add(below.as_os_str().as_bytes());
        self.add(&found.mode().to_le_bytes());
        if found.is_dir() {
            // A directory's own size and time only say that something came and went.
            return Some(());
        }
        if found.is_symlink() {
            self.add(fs::read_link(path).ok()?.as_os_str().as_bytes());
        }
        for number in [found.size().cast_signed(), found.mtime(), found.mtime_nsec()] {
            self.add(&number.to_le_bytes());
        }
        Some(())
    }

    /// A linked worktree has its index and its commits outside of the directory.
    fn linked(&mut self, admin: &Path) -> Option<()> {
        for name in TELLING_OF_LINKED {
            self.maybe(&admin.join(name), name)?;
        }
        let head = pointer(&admin.join("HEAD"))?;
        let common = pointer(&admin.join("commondir"))?;
        let Some(branch) = head.strip_prefix("ref: ").map(Path::new) else { return Some(()) };
        let is_plain = branch.components().all(|part| matches!(part, Component::Normal(_)));
        if is_plain { self.maybe(&admin.join(common).join(branch), "branch") } else { None }
    }

    fn maybe(&mut self, path: &Path, name: &str) -> Option<()> {
        match fs::symlink_metadata(path) {
            Ok(found) => self.found(path, Path::new(name), &found),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                self.add(b"none");
                Some(())
            }
            Err(_) => None,
        }
    }

    /// With its length, so that two fields are never taken for one.
    fn add(&mut self, field: &[u8]) {
        for hash in &mut self.hashes {
            hash.add(&field.len().to_le_bytes());
            hash.add(field);
        }
    }
}

/// Where a linked worktree's own files are; `Some(None)` for a directory that is none.
fn linked_admin(dir: &Path) -> Option<Option<PathBuf>> {
    let link = dir.join(".git");
    match fs::symlink_metadata(&link) {
        Ok(found) if found.is_file() => {
            let text = pointer(&link)?;
            Some(Some(dir.join(text.strip_prefix("gitdir: ")?)))
        }
        Ok(_) => Some(None),
        Err(error) => (error.kind() == std::io::ErrorKind::NotFound).then_some(None),
    }
}

/// The one line of a small file of git's.
fn pointer(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    if !found.is_file() || found.size() > LONGEST_POINTER {
        return None;
    }
    Some(fs::read_to_string(path).ok()?.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{FileTimes, OpenOptions, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::{Duration, SystemTime};

    use super::super::fixture::{Fixture, commit, in_git, write};
    use super::*;

    const THEN: SystemTime = SystemTime::UNIX_EPOCH;

    /// Sets both times of a file, so that no test depends on how fine the disk's clock is.
    fn set_times(path: &Path, modified_s: u64, accessed_s: u64) {
        let file = OpenOptions::new().write(true).open(path).expect("it is ours");
        let times = FileTimes::new()
            .set_modified(THEN + Duration::from_secs(modified_s))
            .set_accessed(THEN + Duration::from_secs(accessed_s));
        file.set_times(times).expect("it is ours");
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a scratch directory");
        fs::create_dir_all(dir.path().join("a/b")).expect("it is ours");
        write(&dir.path().join("a/file"), "one");
        set_times(&dir.path().join("a/file"), 1, 1);
        symlink("a", dir.path().join("link")).expect("it is ours");
        dir
    }

    #[track_caller]
    fn changes(change: impl FnOnce(&Path)) -> bool {
        let dir = tree();
        let before = digest(dir.path()).expect("a small tree");
        assert_eq!(digest(dir.path()).as_ref(), Some(&before), "it is stable");
        change(dir.path());
        digest(dir.path()).expect("a small tree") != before
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
    }

    #[test]
    fn every_kind_of_change_shows() {
        assert!(changes(|dir| {
            write(&dir.join("a/file"), "longer");
            set_times(&dir.join("a/file"), 1, 1);
        }));
        assert!(changes(|dir| set_times(&dir.join("a/file"), 2, 1)), "content of the same size");
        assert!(changes(|dir| {
            fs::rename(dir.join("a/file"), dir.join("a/other")).expect("it is ours");
        }));
        assert!(changes(|dir| {
            fs::rename(dir.join("a/file"), dir.join("a/b/file")).expect("it is ours");
        }));
        assert!(changes(|dir| set_mode(&dir.join("a/file"), 0o751)));
        assert!(changes(|dir| set_mode(&dir.join("a/b"), 0o711)));
        assert!(changes(|dir| write(&dir.join("new"), "")));
        assert!(changes(|dir| fs::create_dir(dir.join("empty")).expect("it is ours")));
        assert!(changes(|dir| fs::remove_dir(dir.join("a/b")).expect("it is ours")));
        assert!(changes(|dir| {
            fs::remove_file(dir.join("link")).expect("it is ours");
            symlink("b", dir.join("link")).expect("it is ours");
        }));
    }

    #[test]
    fn what_is_no_change_does_not_show() {
        assert!(!changes(|dir| set_times(&dir.join("a/file"), 1, 9)), "it was only read");
        assert!(!changes(|dir| {
            write(&dir.join("a/passing"), "");
            fs::remove_file(dir.join("a/passing")).expect("it is ours");
        }));
    }

    #[test]
    fn what_is_behind_a_symlink_is_not_looked_at() {
        let elsewhere = tree();
        let dir = tree();
        symlink(elsewhere.path(), dir.path().join("out")).expect("it is ours");
        let before = digest(dir.path());
        write(&elsewhere.path().join("new"), "");
        assert_eq!(digest(dir.path()), before);
    }

    #[test]
    fn of_a_repository_only_what_tells_of_work_counts() {
        let fixture = Fixture::new();
        let repository = fixture.repository();
        let before = digest(&repository).expect("a small tree");
        write(&repository.join(".git/COMMIT_EDITMSG"), "something else altogether");
        write(&repository.join(".git/objects/junk"), "");
        assert_eq!(digest(&repository).as_ref(), Some(&before));
        in_git(&repository, &["branch", "another"]);
        assert_ne!(digest(&repository).as_ref(), Some(&before));
    }

    #[test]
    fn a_commit_in_a_linked_worktree_shows_there_and_not_in_another() {
        let fixture = Fixture::new();
        fixture.repository();
        let (ours, other) = (fixture.worktree("ours"), fixture.worktree("other"));
        let of =
            |spec: &outlast_engine::RunSpec| digest(Path::new(&spec.dir)).expect("a small tree");
        let before = (of(&ours), of(&other));
        commit(Path::new(&ours.dir), "nothing but a message");
        assert_ne!(of(&ours), before.0);
        assert_eq!(of(&other), before.1);
    }

    #[test]
    fn what_cannot_be_told_has_no_fingerprint() {
        let dir = tree();
        let with = |entries, depth| Walk::new(entries, depth).digest(dir.path());
        assert!(with(4, 2).is_some() && with(3, 2).is_none() && with(4, 1).is_none());
        assert_eq!(digest(&dir.path().join("none")), None);
        write(&dir.path().join(".git"), "gitdir: nowhere\n");
        assert_eq!(digest(dir.path()), None, "a worktree whose other half is not there");
    }
}
