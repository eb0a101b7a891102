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
/// What a write-ahead log begins with, by the order of bytes of its checksums.
const WAL_MAGIC: &[u8; 4] = &[0x37, 0x7f, 0x06, 0x82];
const WAL_MAGIC_BIG: &[u8; 4] = &[0x37, 0x7f, 0x06, 0x83];
/// A write-ahead log of this length is a header and nothing else.
const EMPTY_WAL: u64 = 32;

/// Makes an empty journal at `path`, complete and durable before it gets its name.
pub(super) fn make_if_missing(path: &Path) -> Result<(), Error> {
    let error = |error: io::Error| Error::from_io(path, &error);
    if fs::exists(path).map_err(error)? {
        return Ok(());
    }
    // The disk that it leads to may come back.
    if fs::symlink_metadata(path).is_ok() {
        return Err(corrupt(path, "it is a link to a file that is not there"));
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

/// So many copies from before a migration are kept.
const COPIES: usize = 2;

/// Copies a database that has no log, beside it, before its shape becomes `to`. The copy is complete and durable
/// before it gets its name; without one nothing is migrated.
pub(super) fn copy_before(path: &Path, to: u32) -> Result<(), Error> {
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

const BEFORE: &str = ".before-";

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

/// Refuses whatever is not a journal of ours that can be read and written.
pub(super) fn look(path: &Path) -> Result<(), Error> {
    let header = known_header(path)?;
    check_log(path)?;
    // A crash during a checkpoint can leave a torn end; what is missing is then still in the log.
    if !has_log(path)? && !header.is_whole() {
        return Err(corrupt(path, "its end is missing"));
    }
    check_writable(path)
}

/// SQLite takes whatever has the log's name for a log, finds nothing in it and writes over it. A log that the power
/// left without its header begins with zeros.
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

/// The same of a journal that another process is writing, whose end may be on its way.
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
    if found > schema::KNOWN {
        return Err(Error::Newer { path: path.to_owned(), found, known: schema::KNOWN });
    }
    Ok(header)
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
pub(super) fn create_private(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))
}

pub(super) fn remove_if_there(path: &Path) -> Result<(), Error> {
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

pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(super) fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
