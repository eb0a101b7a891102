//! Whether the journal's files are still those at their paths, and still as long as they were.
//!
//! SQLite writes to the files that it has open, whatever became of their names: a commit into a file without a name
//! is lost with the process. Only asks for metadata: to open and close a file of the database here would drop the
//! locks that SQLite holds on it.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::file;
use crate::Error;

/// The database and its write-ahead log, as they were when they were opened.
#[derive(Debug, Clone)]
pub(super) struct OpenedFiles {
    database: OpenedFile,
    log: OpenedFile,
}

#[derive(Debug, Clone)]
struct OpenedFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// The most that was ever seen of it: neither file shrinks while we have it open.
    bytes: u64,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Ours,
    /// Ours, with fewer bytes than it had.
    Shorter,
    Missing,
    /// Another file, without a byte.
    Empty,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) database: Standing,
    pub(super) log: Standing,
}

/// What can be done about what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remedy {
    Nothing,
    /// The log has lost its name: what is in it goes into the database.
    MoveLog,
    /// The database has lost its name, and nothing is there: a copy takes its place.
    PutBack,
    /// Ours, and perhaps damaged: a sound copy takes its place, and what is there is set aside.
    Replace,
    /// Another file is there, which is not ours to touch.
    Part,
}

impl OpenedFiles {
    /// Where the files are now. The database has been read, so its log is there.
    pub(super) fn of(path: &Path) -> Result<Self, Error> {
        let error = |error: io::Error| Error::Io(format!("{}: {error}", path.display()));
        // SQLite keeps the log beside the file that a link leads to.
        let log = file::beside(&fs::canonicalize(path).map_err(error)?, "-wal");
        let opened = || Ok(Self { database: OpenedFile::of(path)?, log: OpenedFile::of(&log)? });
        opened().map_err(error)
    }

    pub(super) fn look(&mut self) -> Result<Found, Error> {
        Ok(Found { database: self.database.look()?, log: self.log.look()? })
    }

    /// True if a connection that is opened now has our files open.
    pub(super) fn is_there(&self) -> bool {
        self.database.is_there() && self.log.is_there()
    }

    pub(super) fn log(&self) -> &Path {
        &self.log.path
    }
}

impl OpenedFile {
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        let (device, inode, bytes) = (file.dev(), file.ino(), file.len());
        Ok(Self { path: path.to_owned(), device, inode, bytes })
    }

    fn look(&mut self) -> Result<Standing, Error> {
        let file = match fs::metadata(&self.path) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(Standing::Missing),
            Err(error) => return Err(Error::Io(format!("{}: {error}", self.path.display()))),
        };
        if (file.dev(), file.ino()) != (self.device, self.inode) {
            return Ok(if file.len() == 0 { Standing::Empty } else { Standing::Other });
        }
        if file.len() < self.bytes {
            return Ok(Standing::Shorter);
        }
        self.bytes = file.len();
        Ok(Standing::Ours)
    }

    fn is_there(&self) -> bool {
        let is_ours = |file: &fs::Metadata| {
            (file.dev(), file.ino()) == (self.device, self.inode) && file.len() >= self.bytes
        };
        fs::metadata(&self.path).is_ok_and(|file| is_ours(&file))
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl Found {
    pub(super) fn remedy(self) -> Remedy {
        use Standing::{Empty, Missing, Other, Ours, Shorter};

        match (self.database, self.log) {
            (Ours, Ours) => Remedy::Nothing,
            (Ours, Missing | Empty) => Remedy::MoveLog,
            (Missing, Ours | Shorter | Missing | Empty) => Remedy::PutBack,
            (Ours, Shorter) | (Shorter, Ours | Shorter | Missing | Empty) => Remedy::Replace,
            (Empty | Other, _) | (_, Other) => Remedy::Part,
        }
    }

    /// What happened, after the path of the database.
    pub(super) fn says(self) -> &'static str {
        match (self.database, self.log) {
            (Standing::Missing, _) => "was removed under this daemon",
            (Standing::Empty | Standing::Other, _) => "was replaced under this daemon",
            (Standing::Shorter, _) => "was cut short under this daemon",
            (Standing::Ours, Standing::Missing | Standing::Empty) => {
                "lost its write-ahead log under this daemon"
            }
            (Standing::Ours, Standing::Other) => {
                "had its write-ahead log replaced under this daemon"
            }
            (Standing::Ours, Standing::Shorter) => {
                "had its write-ahead log cut short under this daemon"
            }
            (Standing::Ours, Standing::Ours) => "was written to under this daemon",
        }
    }
}
