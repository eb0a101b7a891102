//! The database as a file: made whole or not at all, and looked at before SQLite gets to open it.
//!
//! SQLite takes an empty file for an empty database and repairs what it can. Here neither happens by
//! surprise: what is not certainly ours is refused and left as it is.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::schema;
use crate::Error;

/// "Outl": stands in the header of every journal.
pub(super) const APPLICATION_ID: u32 = 0x4f75_746c;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// A write-ahead log of this length is a header and nothing else.
const EMPTY_WAL: u64 = 32;

/// Makes an empty journal at `path`, complete and durable before it gets its name.
pub(super) fn make_if_missing(path: &Path) -> Result<(), Error> {
    let error = |error: io::Error| Error::from_io(path, &error);
    if fs::exists(path).map_err(error)? {
        return Ok(());
    }
    // A log without its database is what is left of a journal, not the absence of one.
    if has_log(path)? {
        return Err(corrupt(path, "it is missing, and its write-ahead log is still there"));
    }
    check_directory(path)?;
    let new = beside(path, ".new");
    for leftover in
        [new.clone(), beside(&new, "-wal"), beside(&new, "-shm"), beside(&new, "-journal")]
    {
        remove_if_there(&leftover)?;
    }
    create_private(&new).map_err(error)?;
    schema::fill_new(&new)?;
    File::open(&new).and_then(|file| file.sync_all()).map_err(error)?;
    fs::rename(&new, path).map_err(error)?;
    File::open(directory(path)).and_then(|directory| directory.sync_all()).map_err(error)
}

/// Refuses whatever is not a journal of ours that can be read and written.
pub(super) fn look(path: &Path) -> Result<(), Error> {
    let header = Header::read(path)?;
    if header.length == 0 {
        return Err(corrupt(path, "it is empty"));
    }
    if header.bytes.get(..16) != Some(MAGIC) {
        return Err(corrupt(path, "it is not a SQLite database"));
    }
    if header.application_id() != APPLICATION_ID {
        return Err(corrupt(path, "it is a database of something else"));
    }
    let found = header.user_version();
    if found > schema::KNOWN {
        return Err(Error::Newer { path: path.to_owned(), found, known: schema::KNOWN });
    }
    // A crash during a checkpoint can leave a torn end; what is missing is then still in the log.
    if !has_log(path)? && !header.is_whole() {
        return Err(corrupt(path, "its end is missing"));
    }
    check_writable(path)
}

/// True if there is a write-ahead log with something in it.
pub(super) fn has_log(path: &Path) -> Result<bool, Error> {
    let log = beside(path, "-wal");
    match fs::metadata(&log) {
        Ok(metadata) => Ok(metadata.len() > EMPTY_WAL),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::from_io(&log, &error)),
    }
}

pub(super) fn length(path: &Path) -> Result<u64, Error> {
    fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| Error::from_io(path, &error))
}

/// The first bytes of the file, where SQLite keeps what can be known without it.
struct Header {
    length: u64,
    bytes: Vec<u8>,
}

impl Header {
    fn read(path: &Path) -> Result<Self, Error> {
        let read = || {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            let mut bytes = Vec::new();
            file.take(100).read_to_end(&mut bytes)?;
            Ok(Self { length, bytes })
        };
        read().map_err(|error| unreadable(path, &error))
    }

    fn page_size(&self) -> u64 {
        match self.number(16) >> 16 {
            1 => 65_536,
            size => u64::from(size),
        }
    }

    /// True if the file has as many pages as it says, and the last one is complete.
    fn is_whole(&self) -> bool {
        let size = self.page_size();
        let count_is_valid = self.number(24) == self.number(92);
        let pages = if count_is_valid { u64::from(self.number(28)) } else { 1 };
        size >= 512 && self.length.is_multiple_of(size) && self.length / size >= pages
    }

    fn user_version(&self) -> u32 {
        self.number(60)
    }

    fn application_id(&self) -> u32 {
        self.number(68)
    }

    /// Four bytes, the highest first; 0 where the file has already ended.
    fn number(&self, offset: usize) -> u32 {
        let bytes = self.bytes.get(offset..offset + 4).and_then(|four| four.try_into().ok());
        bytes.map_or(0, u32::from_be_bytes)
    }
}

fn check_writable(path: &Path) -> Result<(), Error> {
    check_mode(path)?;
    let opened = OpenOptions::new().write(true).open(path);
    opened.map(drop).map_err(|error| Error::from_io(path, &error))?;
    check_directory(path)
}

fn check_directory(path: &Path) -> Result<(), Error> {
    let directory = directory(path);
    check_mode(directory)?;
    access(directory, Access::WRITE_OK).map_err(|error| Error::from_io(directory, &error.into()))
}

/// Root may write to anything; a missing permission is a person's wish all the same.
fn check_mode(path: &Path) -> Result<(), Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::from_io(path, &error))?;
    if metadata.permissions().readonly() { Err(Error::ReadOnly(path.to_owned())) } else { Ok(()) }
}

/// SQLite gives its log and its index the mode of the database, so this one decides for all three.
fn create_private(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::from_io(path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A file that may not be read is not a file that may not be written to.
fn unreadable(path: &Path, error: &io::Error) -> Error {
    match Error::from_io(path, error) {
        Error::ReadOnly(path) => Error::Io(format!("{}: {error}", path.display())),
        other => other,
    }
}

pub(super) fn corrupt(path: &Path, what: &str) -> Error {
    Error::Corrupt { path: path.to_owned(), what: what.to_owned() }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
