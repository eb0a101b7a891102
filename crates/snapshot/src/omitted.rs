//! Which paths a snapshot leaves out, all of them: a file of our own beside the snapshots, for each commit.
//!
//! A commit does not say whether a file was not there or was not taken. A restore has to know.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::Failure;
use crate::area::joined;
use crate::place;

const DIR: &str = "left-out";

pub(crate) type Paths = BTreeSet<Vec<u8>>;

/// A snapshot that is made twice is one commit: what either leaves out is in no snapshot.
pub(crate) fn add(git_dir: &Path, commit: &str, paths: &[Vec<u8>]) -> Result<(), Failure> {
    let mut known = of(git_dir, commit)?;
    let before = known.len();
    known.extend(paths.iter().cloned());
    if known.len() == before {
        return Ok(());
    }
    let known: Vec<Vec<u8>> = known.into_iter().collect();
    place::make_dir(&git_dir.join(DIR))?;
    place::write(&git_dir.join(DIR).join(commit), &joined(&known))
}

pub(crate) fn of(git_dir: &Path, commit: &str) -> Result<Paths, Failure> {
    let bytes = match fs::read(git_dir.join(DIR).join(commit)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Paths::new()),
        Err(error) => return Err(Failure::io("what a snapshot leaves out")(error)),
    };
    let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(<[u8]>::to_vec).collect())
}

/// Those below a directory, by their path from there.
pub(crate) fn below(paths: &Paths, dir: &[u8]) -> Paths {
    let within = [dir, b"/"].concat();
    paths.iter().filter_map(|path| path.strip_prefix(&within[..])).map(<[u8]>::to_vec).collect()
}

/// True if a path, or a directory that it is in, was left out.
pub(crate) fn has(paths: &Paths, path: &[u8]) -> bool {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([path.len()]).any(|end| paths.contains(&path[..end]))
}
