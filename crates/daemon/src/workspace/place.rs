//! Where a workspace may be: below its root, and in no other place through a link.
//!
//! Looks and never makes anything. What is outside the root is refused, also if it is outside only because
//! of a symlink in the way. A root that is itself reached through a symlink is fine: the person who
//! named it meant where it leads.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Escape {
    #[error("{} is not a directory", .path.display())]
    NotADirectory { path: PathBuf },
    #[error("{} is a symlink", .path.display())]
    Symlink { path: PathBuf },
    #[error("{} is not below the workspace root {}", .dir.display(), .root.display())]
    Outside { dir: PathBuf, root: PathBuf },
    #[error("{} leads to {}, and was prepared at {}", .dir.display(), .now.display(), .was.display())]
    Displaced { dir: PathBuf, now: PathBuf, was: PathBuf },
    #[error("cannot look at {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl Escape {
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NotADirectory { .. } => "move it away, or name another workspace root",
            Self::Symlink { .. } => "a workspace is a directory of its own: remove the symlink",
            Self::Outside { .. } => "a workspace is made directly in its root",
            Self::Displaced { .. } => "a link in the way has changed: put it back",
            Self::Unreadable { .. } => "may the daemon's user read it?",
        }
    }
}

/// The workspace's path, by its name alone.
pub(crate) fn path(root: &Path, key: &str) -> Result<PathBuf, Escape> {
    let dir = root.join(key);
    let is_one_name = matches!(normal(Path::new(key)).as_deref(), Some([name]) if *name == key);
    let is_plain_root =
        root.is_absolute() && !root.components().any(|part| part == Component::ParentDir);
    if is_one_name && is_plain_root { Ok(dir) } else { Err(outside(root, &dir)) }
}

/// Whether `dir` is, or would be, below the root, which has been made.
pub(crate) fn contained(root: &Path, dir: &Path) -> Result<(), Escape> {
    let real_root = canonical(root)?;
    let below = dir.strip_prefix(root).or_else(|_| dir.strip_prefix(&real_root));
    let below = below.map_err(|_| outside(root, dir))?;
    let parts = normal(below).filter(|parts| !parts.is_empty());
    let parts = parts.ok_or_else(|| outside(root, dir))?;
    let mut at = root.to_owned();
    for part in parts {
        at.push(part);
        let Some(found) = look(&at)? else { return Ok(()) };
        check(&at, &found)?;
    }
    let parent = canonical(dir.parent().unwrap_or(root))?;
    if parent.starts_with(&real_root) { Ok(()) } else { Err(outside(root, dir)) }
}

/// Where a workspace really is, or will be once it is made: no link in the way is left in the path.
pub(crate) fn real(dir: &Path) -> Result<PathBuf, Escape> {
    let name = dir.file_name().unwrap_or_default();
    Ok(canonical(dir.parent().unwrap_or(dir))?.join(name))
}

/// Whether a workspace is still where it was prepared, and no link. What is not there at all is for others to find.
pub(crate) fn stands(root: &Path, dir: &Path, was: Option<&Path>) -> Result<(), Escape> {
    if look(dir)?.is_none() {
        return Ok(());
    }
    contained(root, dir)?;
    let now = canonical(dir)?;
    match was.filter(|was| *was != now) {
        Some(was) => Err(Escape::Displaced { dir: dir.to_owned(), now, was: was.to_owned() }),
        None => Ok(()),
    }
}

/// What is there, if anything; a symlink is itself.
pub(super) fn look(path: &Path) -> Result<Option<Metadata>, Escape> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // Below something that is no directory there is nothing.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(source) => Err(Escape::Unreadable { path: path.to_owned(), source }),
    }
}

fn check(path: &Path, found: &Metadata) -> Result<(), Escape> {
    if found.is_symlink() {
        Err(Escape::Symlink { path: path.to_owned() })
    } else if found.is_dir() {
        Ok(())
    } else {
        Err(Escape::NotADirectory { path: path.to_owned() })
    }
}

/// The names that a relative path consists of, if it consists of names only.
fn normal(path: &Path) -> Option<Vec<&std::ffi::OsStr>> {
    let name = |part| match part {
        Component::Normal(name) => Some(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    };
    path.components().map(name).collect()
}

fn canonical(path: &Path) -> Result<PathBuf, Escape> {
    fs::canonicalize(path).map_err(|source| Escape::Unreadable { path: path.to_owned(), source })
}

fn outside(root: &Path, dir: &Path) -> Escape {
    Escape::Outside { dir: dir.to_owned(), root: root.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir, create_dir_all};
    use std::os::unix::fs::symlink;

    use super::*;

    fn said(result: Result<(), Escape>, base: &Path) -> String {
        let base = base.to_str().expect("a plain path");
        result.map_or_else(|error| error.to_string().replace(base, ""), |()| "fine".to_owned())
    }

    #[test]
    fn a_path_is_the_root_and_one_name() {
        let of = |root: &str, key: &str| path(Path::new(root), key).ok();
        assert_eq!(of("/runs", "a"), Some("/runs/a".into()));
        for (root, key) in [
            ("/runs", ".."),
            ("/runs", ""),
            ("/runs", "."),
            ("/runs", "a/b"),
            ("/runs", "a/."),
            ("/runs", "/a"),
            ("/runs/..", "a"),
            ("runs", "a"),
        ] {
            assert_eq!(of(root, key), None, "{root} {key}");
        }
    }

    #[test]
    fn what_is_below_the_root_is_fine_whether_it_is_there_or_not() {
        let base = tempfile::tempdir().expect("a scratch directory");
        let (base, root) = (base.path(), base.path().join("runs"));
        create_dir_all(root.join("a/b")).expect("it is ours");
        for dir in ["a", "a/b", "new", "new/deeper"] {
            assert_eq!(said(contained(&root, &root.join(dir)), base), "fine", "{dir}");
        }
    }

    #[test]
    fn what_is_not_below_the_root_is_outside() {
        let base = tempfile::tempdir().expect("a scratch directory");
        let (base, root) = (base.path(), base.path().join("runs"));
        create_dir(&root).expect("it is ours");
        create_dir(base.join("runs2")).expect("it is ours");
        for dir in ["runs", "runs2", "runs/../runs2", "runs/a/../../x", ""] {
            let told = said(contained(&root, &base.join(dir)), base);
            assert!(told.ends_with("is not below the workspace root /runs"), "{dir}: {told}");
        }
    }

    #[test]
    fn a_root_behind_a_symlink_is_where_it_leads() {
        let base = tempfile::tempdir().expect("a scratch directory");
        let base = base.path();
        create_dir_all(base.join("real/base/a")).expect("it is ours");
        symlink(base.join("real"), base.join("link")).expect("it is ours");
        let root = base.join("link/base");
        assert_eq!(said(contained(&root, &root.join("a")), base), "fine");
        let real = fs::canonicalize(&root).expect("it is there");
        assert_eq!(said(contained(&root, &real.join("a")), base), "fine");
    }

    #[test]
    fn a_symlink_in_the_way_is_refused_wherever_it_leads() {
        let base = tempfile::tempdir().expect("a scratch directory");
        let (base, root) = (base.path(), base.path().join("runs"));
        create_dir_all(root.join("inside")).expect("it is ours");
        for (name, target) in [("out", "/"), ("in", "inside"), ("dangling", "nowhere")] {
            symlink(target, root.join(name)).expect("it is ours");
            let expected = format!("/runs/{name} is a symlink");
            assert_eq!(said(contained(&root, &root.join(name)), base), expected);
            assert_eq!(said(contained(&root, &root.join(name).join("etc")), base), expected);
        }
    }

    #[test]
    fn a_file_in_the_way_is_refused() {
        let base = tempfile::tempdir().expect("a scratch directory");
        let (base, root) = (base.path(), base.path().join("runs"));
        create_dir(&root).expect("it is ours");
        File::create(root.join("file")).expect("it is ours");
        for dir in ["file", "file/below"] {
            let told = said(contained(&root, &root.join(dir)), base);
            assert_eq!(told, "/runs/file is not a directory");
        }
    }
}
