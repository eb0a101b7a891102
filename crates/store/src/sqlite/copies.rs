//! Copies of the journal that are made beside it before its schema changes.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

use super::file::{beside, create_private, directory, remove_if_there};
use crate::Error;

const BEFORE: &str = ".before-";
/// How many copies are kept; older ones are removed.
const COPIES: usize = 2;

/// Copies a database that has no log, beside it, before its shape becomes `to`. The copy is complete and durable
/// before it gets its name; without one nothing is migrated.
pub(super) fn make_before(path: &Path, to: u32) -> Result<(), Error> {
    let copy = beside(path, &format!("{BEFORE}{to}"));
    let new = beside(&copy, ".new");
    let make = || {
        remove_if_there(&new).map_err(io::Error::other)?;
        create_private(&new)?;
        let mut into = OpenOptions::new().write(true).open(&new)?;
        io::copy(&mut File::open(path)?, &mut into)?;
        into.sync_all()?;
        fs::rename(&new, &copy)?;
        File::open(directory(path))?.sync_all()
    };
    make().map_err(|error| {
        drop(remove_if_there(&new));
        let text = format!(
            "{}: {error}; the journal is copied there before its schema changes",
            copy.display()
        );
        match Error::from_io(&copy, &error) {
            Error::Full(_) => Error::Full(text),
            _ => Error::Io(text),
        }
    })?;
    forget_older_copies(path)
}

fn forget_older_copies(path: &Path) -> Result<(), Error> {
    let error = |error: io::Error| Error::from_io(path, &error);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned() + BEFORE;
    let mut copies = Vec::new();
    let entries = loop {
        #[expect(
            clippy::disallowed_methods,
            reason = "this crate knows no wire, and repeats it here"
        )]
        match fs::read_dir(directory(path)) {
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
            read => break read.map_err(error)?,
        }
    };
    for entry in entries {
        let found = entry.map_err(error)?.file_name().to_string_lossy().into_owned();
        copies.extend(found.strip_prefix(&name).and_then(|number| number.parse::<u32>().ok()));
    }
    copies.sort_unstable_by(|one, other| other.cmp(one));
    copies
        .iter()
        .skip(COPIES)
        .try_for_each(|number| remove_if_there(&beside(path, &format!("{BEFORE}{number}"))))
}
