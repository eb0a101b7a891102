//! Files that are opened as files and as nothing else.
//!
//! A pipe in the place of a file makes its reader wait for a writer, for ever. Every file of the state directory is opened
//! here: nothing is waited for, and what is no regular file is refused. It is not taken for an empty file.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a file to read it.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(OpenOptions::new().read(true), path)
}

/// Opens a file with these options.
pub fn open_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_flagged(options, OFlags::empty(), path)
}

/// The same with more flags of the system's.
pub fn open_flagged(options: &mut OpenOptions, more: OFlags, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | more;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    match options.custom_flags(flags).open(path) {
        Ok(file) => match file.metadata()? {
            found if found.is_file() => Ok(file),
            found if found.is_dir() => Err(ErrorKind::IsADirectory.into()),
            _ => Err(refused()),
        },
        // A pipe without a reader, or a socket, cannot be opened to write at all.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            Err(refused())
        }
        Err(error) => Err(error),
    }
}

/// All that is in a file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn refused() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is no regular file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe");
        let kind = |opened: io::Result<File>| opened.map(drop).map_err(|error| error.kind());
        assert_eq!(kind(open(&pipe)), Err(ErrorKind::InvalidInput));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        assert_eq!(kind(open_with(&mut options, &pipe)), Err(ErrorKind::InvalidInput));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        assert_eq!(kind(open_with(&mut options, &pipe)), Err(ErrorKind::InvalidInput));
        assert_eq!(kind(open(dir.path())), Err(ErrorKind::IsADirectory), "nor is a directory");
        let missing = dir.path().join("missing");
        assert_eq!(read(&missing).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
    }
}
