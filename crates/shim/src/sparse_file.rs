//! Files with a hole: the log and its index free their middle, and every byte keeps its offset.
//!
//! Makes files and holes. The spool and its index decide which bytes may go.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Holes are made of whole blocks of this size.
pub(crate) const BLOCK: u64 = 4096;

pub(crate) fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o600);
    outlast_home::regular::open_with(&mut options, path)
}

/// Frees the whole blocks of `from..to`. Their bytes read as zeros; the file keeps its length.
#[cfg(target_os = "linux")]
pub(crate) fn punch(file: &File, from: u64, to: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};

    let (from, to) = (from.next_multiple_of(BLOCK), to / BLOCK * BLOCK);
    if from >= to {
        return Ok(());
    }
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    loop {
        match fallocate(file, flags, from, to - from) {
            Err(rustix::io::Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}

/// Elsewhere the spool counts instead of punching.
#[cfg(not(target_os = "linux"))]
pub(crate) fn punch(_file: &File, _from: u64, _to: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
