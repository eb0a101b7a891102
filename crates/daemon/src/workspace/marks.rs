//! What is left beside a workspace for the daemon that goes on with it.
//!
//! The marks are in the root, beside the workspace and under its name with a dot before it, which no
//! workspace's own name has. They are directories, since making one never follows a symlink.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::failure::Failure;
use crate::world::files;

#[derive(Debug, Clone)]
pub(super) struct Marks {
    /// There until the workspace is settled: what follows on its creation has not all been done.
    new: PathBuf,
    /// There while a checkout is under way, or was when it died: what is in the workspace is not whole.
    pub(super) checkout: PathBuf,
    /// The workspace itself, once it is being removed: it is whole or it is gone, and never half of it.
    pub(super) removing: PathBuf,
}

impl Marks {
    pub(super) fn of(dir: &Path) -> Self {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let new = dir.with_file_name(format!(".{name}.new"));
        let removing = dir.with_file_name(format!(".{name}.removing"));
        Self { checkout: new.join("checkout"), new, removing }
    }

    pub(super) fn is_new(&self) -> bool {
        is_there(&self.new)
    }

    pub(super) fn is_half_checked_out(&self) -> bool {
        is_there(&self.checkout)
    }

    pub(super) fn set_new(&self) -> Result<(), Failure> {
        files::private_dir(&self.new).map_err(Failure::io("making", &self.new))
    }

    pub(super) fn clear(&self) -> Result<(), Failure> {
        remove_whole(&self.new)
    }
}

fn is_there(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Removes a directory with all that is in it, and nothing that its symlinks lead to; gone already is fine.
pub(super) fn remove_whole(path: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io("removing", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
