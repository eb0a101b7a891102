//! The inspection of a journal before SQLite opens it.
//!
//! SQLite takes an empty file for an empty database and repairs what it can. Here neither happens by surprise: a file
//! that is not certainly a journal of ours is refused and left as it is.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{Access, access};

use super::file::{beside, corrupt, directory, has_log};
use super::schema::{APPLICATION_ID, KNOWN};
use crate::Error;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// What a write-ahead log begins with, by the order of bytes of its checksums.
const WAL_MAGIC: &[u8; 4] = &[0x37, 0x7f, 0x06, 0x82];
const WAL_MAGIC_BIG: &[u8; 4] = &[0x37, 0x7f, 0x06, 0x83];

/// Refuses a file that is not a journal of ours, or that cannot be read and written.
pub(super) fn look(path: &Path) -> Result<(), Error> {
    let header = known_header(path)?;
    check_log(path)?;
    // A crash during a checkpoint can leave a torn end; what is missing is then still in the log.
    if !has_log(path)? && !header.is_whole() {
        return Err(corrupt(path, "its end is missing"));
    }
    check_writable(path)
}

/// Refuses a file beside the journal that has the name of its log and is none: SQLite would find nothing in the file
/// and write over it. A log whose header was lost with the power begins with zeros, and is a log.
fn check_log(path: &Path) -> Result<(), Error> {
    let error = |error: io::Error| Error::from_io(path, &error);
    let mut start = Vec::new();
    match File::open(beside(path, "-wal")) {
        Ok(log) => log.take(WAL_MAGIC.len() as u64).read_to_end(&mut start).map_err(error)?,
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(problem) => return Err(error(problem)),
    };
    let is_empty = start.iter().all(|byte| *byte == 0);
    if is_empty || WAL_MAGIC.starts_with(&start) || WAL_MAGIC_BIG.starts_with(&start) {
        return Ok(());
    }
    Err(corrupt(path, "the file beside it that ends in -wal is no log of a database"))
}

/// Inspects a journal that another process is writing: the last pages may be on their way, so the length is not compared.
pub(super) fn look_beside_its_writer(path: &Path) -> Result<(), Error> {
    known_header(path).and_then(|_| check_writable(path))
}

fn known_header(path: &Path) -> Result<Header, Error> {
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
    if found > KNOWN {
        return Err(Error::Newer { path: path.to_owned(), found, known: KNOWN });
    }
    Ok(header)
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

pub(super) fn check_directory(path: &Path) -> Result<(), Error> {
    let directory = directory(path);
    check_mode(directory)?;
    access(directory, Access::WRITE_OK).map_err(|error| Error::from_io(directory, &error.into()))
}

/// Root may write to any file. A permission that is missing was taken away on purpose, so root obeys it too.
fn check_mode(path: &Path) -> Result<(), Error> {
    let metadata = fs::metadata(path).map_err(|error| Error::from_io(path, &error))?;
    if metadata.permissions().readonly() { Err(Error::ReadOnly(path.to_owned())) } else { Ok(()) }
}

/// A file that may not be read is an IO error, and not `ReadOnly`: that error is about writing.
fn unreadable(path: &Path, error: &io::Error) -> Error {
    match Error::from_io(path, error) {
        Error::ReadOnly(path) => Error::Io(format!("{}: {error}", path.display())),
        other => other,
    }
}
