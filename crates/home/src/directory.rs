//! Directories of mode 0700: no other user may look into them. And links on the way to a file that lead nowhere.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Creates the directory 0700, with its parents. A directory that exists already is fine.
pub fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates the directory 0700, with its parents. A directory that exists already is an error.
pub fn new_private_dir(path: &Path) -> io::Result<()> {
    let make = || only_private_dir(path);
    match (make(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
            private_dir(parent)?;
            make()
        }
        (made, _) => made,
    }
}

/// Creates the directory 0700 and none of its parents. A directory that exists already is an error.
pub fn only_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// The symbolic link on the way to a path, the path itself included, that leads nowhere. A file behind such a link may
/// exist elsewhere, so its absence proves nothing.
pub fn broken_link(path: &Path) -> Option<PathBuf> {
    let is_missing =
        |it: io::Result<_>| it.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let is_link = |it: &&Path| it.symlink_metadata().is_ok_and(|it| it.is_symlink());
    let mut links = path.ancestors().filter(is_link);
    links.find(|it| is_missing(it.metadata())).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_private_directory_is_open_to_its_user_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let (parent, inner) = (dir.path().join("parent"), dir.path().join("parent/inner"));
        assert!(only_private_dir(&inner).is_err(), "its parent is missing");
        new_private_dir(&inner).expect("the parent is made first");
        assert_eq!(new_private_dir(&inner).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        private_dir(&inner).expect("it exists already");
        for made in [parent, inner] {
            let mode = std::fs::metadata(made).expect("it was made").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
    }

    #[test]
    fn a_link_that_leads_nowhere_is_found_on_the_whole_way() {
        let dir = tempfile::tempdir().expect("a directory");
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        assert_eq!(broken_link(&file), None, "what was never there");
        std::os::unix::fs::symlink(dir.path().join("nowhere"), &link).expect("a link");
        assert_eq!(broken_link(&link), Some(link.clone()));
        assert_eq!(broken_link(&link.join("file")), Some(link.clone()));
        std::fs::create_dir(dir.path().join("nowhere")).expect("a directory");
        assert_eq!(broken_link(&link.join("file")), None);
    }
}
