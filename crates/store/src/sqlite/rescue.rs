//! A copy of the journal from the files that are open, whatever became of their names.
//!
//! The copy is checked and durable before it gets a name. Nothing that is at a path is ever overwritten or deleted,
//! but what this file itself has begun and not finished.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::read::Reader;
use super::{file, schema};
use crate::Error;

/// More copies or damaged files than this beside a journal are a person's to look at first.
const MOST: u32 = 1000;

/// A copy that has its name.
pub(super) struct Copy {
    pub(super) path: PathBuf,
    /// Every run in it replays, as far as that was looked at.
    pub(super) is_whole: bool,
}

/// How closely a copy is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audit {
    /// Its pages fit together.
    Pages,
    /// Also that every run replays: bytes may be missing where no page shows it.
    Runs,
}

/// Copies what this connection reads to `outlast.db.rescued-N`, for the first number that is free.
pub(super) fn copy(from: &Connection, path: &Path, audit: Audit) -> Result<Copy, Error> {
    let new = file::beside(path, ".rescued.new");
    let copied = fill(from, &new, audit)
        .and_then(|is_whole| Ok(Copy { path: name_aside(&new, path, ".rescued-")?, is_whole }));
    if copied.is_err() {
        drop(remove_unfinished(&new));
    }
    copied
}

/// Says whether the copy is whole.
fn fill(from: &Connection, new: &Path, audit: Audit) -> Result<bool, Error> {
    let sql = |error: rusqlite::Error| Error::from_sql(new, &error);
    remove_unfinished(new)?;
    file::create_private(new).map_err(|error| Error::from_io(new, &error))?;
    let mut to = schema::connect(new, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(sql)?;
    match Backup::new(from, &mut to).and_then(|backup| backup.step(-1)).map_err(sql)? {
        StepResult::Done => {}
        _ => return Err(Error::Locked(new.to_owned())),
    }
    // Pages that were cut off are read as zeros, so that a copy may be one of nothing.
    schema::quick_check(new, &to)?;
    let reader = Reader::over(to, new);
    let is_whole = audit == Audit::Pages || reader.check()?.is_empty();
    reader.into_connection().close().map_err(|(_, error)| sql(error))?;
    let synced = File::open(new).and_then(|file| file.sync_all());
    synced.map(|()| is_whole).map_err(|error| Error::from_io(new, &error))
}

fn remove_unfinished(new: &Path) -> Result<(), Error> {
    ["", "-wal", "-shm", "-journal"]
        .iter()
        .try_for_each(|suffix| file::remove_if_there(&file::beside(new, suffix)))
}

/// Gives a file the first free name of this kind beside the journal.
pub(super) fn name_aside(from: &Path, path: &Path, kind: &str) -> Result<PathBuf, Error> {
    for number in 1..=MOST {
        let to = file::beside(path, &format!("{kind}{number}"));
        match move_to(from, &to) {
            Ok(()) => return Ok(to),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::from_io(&to, &error)),
        }
    }
    Err(Error::Io(format!("{}: too many files{kind}N beside it", path.display())))
}

/// Gives a file another name, durably, unless something has that name.
pub(super) fn move_to(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system can do that.
        Err(Errno::INVAL | Errno::NOSYS) => {
            fs::hard_link(from, to)?;
            fs::remove_file(from)?;
        }
        moved => moved?,
    }
    File::open(file::directory(to))?.sync_all()
}
