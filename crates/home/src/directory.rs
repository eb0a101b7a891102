//! Directories of mode 0700: no other user may look into them.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

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
}
