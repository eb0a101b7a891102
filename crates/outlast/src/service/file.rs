//! The file that describes the service to its manager: written whole, and only over one of our own.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::Shortfall;

/// In the first lines of each file that we write, and in none that we did not.
pub(super) const MARK: &str = "Written by `outlast daemon install`";

/// How the lines begin that say which Outlast it is: where it keeps its runs.
const PLACES: [&str; 4] = [
    "Environment=\"OUTLAST_HOME=",
    "Environment=\"XDG_STATE_HOME=",
    "<key>OUTLAST_HOME</key>",
    "<key>XDG_STATE_HOME</key>",
];

pub(super) fn read(path: &Path) -> Result<Option<String>, Shortfall> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Shortfall::new(format!("cannot read {}: {error}", path.display()))),
    }
}

pub(super) fn is_ours(text: &str) -> bool {
    text.lines().take(3).any(|line| line.contains(MARK))
}

/// True if both describe the Outlast that keeps its runs in one place.
pub(super) fn is_same_place(one: &str, other: &str) -> bool {
    fn places(text: &str) -> Vec<&str> {
        let is_place = |line: &&str| PLACES.iter().any(|start| line.starts_with(start));
        text.lines().map(str::trim).filter(is_place).collect()
    }
    places(one) == places(other)
}

/// A file of a person's, or of another Outlast's, is left alone.
pub(super) fn refuse_strangers(path: &Path, known: &str, ours: &str) -> Result<(), Shortfall> {
    let path = path.display();
    if !is_ours(known) {
        return Err(Shortfall::new(format!("{path} was not written by outlast"))
            .hint(format!("move {path} away if it is not needed")));
    }
    if !is_same_place(known, ours) {
        return Err(Shortfall::new(format!("{path} is the service of another OUTLAST_HOME"))
            .hint("uninstall it with that OUTLAST_HOME set, then install this one"));
    }
    Ok(())
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Shortfall> {
    let cannot =
        |error: std::io::Error| Shortfall::new(format!("cannot write {}: {error}", path.display()));
    let dir = path.parent().ok_or_else(|| cannot(ErrorKind::InvalidInput.into()))?;
    std::fs::create_dir_all(dir).map_err(cannot)?;
    // Not named like a service, so that no manager reads half of one.
    let beside = path.with_extension("tmp");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(&beside)
        .map_err(cannot)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(cannot)?;
    std::fs::rename(&beside, path).map_err(cannot)?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(cannot)
}

/// One that is gone already is fine. True if it was there.
pub(super) fn remove(path: &Path) -> Result<bool, Shortfall> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Shortfall::new(format!("cannot remove {}: {error}", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ours_by_its_mark_and_this_outlasts_by_its_place() {
        let ours =
            format!("# {MARK}\nEnvironment=\"PATH=/a\"\nEnvironment=\"OUTLAST_HOME=/one\"\n");
        assert!(is_ours(&ours) && !is_ours("[Unit]\nDescription=mine\n"));
        assert!(is_same_place(
            &ours,
            "Environment=\"OUTLAST_HOME=/one\"\nEnvironment=\"PATH=/b\"\n"
        ));
        assert!(!is_same_place(&ours, "Environment=\"OUTLAST_HOME=/two\"\n"));
        assert!(!is_same_place(&ours, "[Unit]\n"));
    }
}
