//! Files that must last, and directories that are nobody else's business.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Creates the directory 0700, with its parents; one that is there already is fine.
pub(crate) fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Whether a file survives the machine, or only us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// Through a crash of the machine.
    Power,
    /// Through our own death; after a crash of the machine nobody asks for it.
    Process,
}

/// Writes a 0600 file whole or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8], lasting: Lasting) -> io::Result<()> {
    let beside = path.with_extension("tmp");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(content)?;
    if lasting == Lasting::Power {
        file.sync_all()?;
    }
    std::fs::rename(&beside, path)?;
    if lasting == Lasting::Power {
        sync_names(path)?;
    }
    Ok(())
}

/// Writes a 0600 file that nobody reads before we are done with it, and that is written again if we die.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(path)?.write_all(content)
}

/// Makes the name of a file last, and that of the directory it is in, which may be as new.
fn sync_names(path: &Path) -> io::Result<()> {
    path.ancestors().skip(1).take(2).try_for_each(|dir| File::open(dir)?.sync_all())
}

/// Removes a file; one that is gone already is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// How much disk a directory takes, as far as it can be read.
pub(crate) fn disk_usage(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;

    let Ok(entries) = std::fs::read_dir(path) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_usage(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
