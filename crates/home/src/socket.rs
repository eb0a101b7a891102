//! Unix sockets by path, also where the path is longer than the kernel accepts.
//!
//! On Linux a long path is replaced by a short one that leads through a descriptor of the socket's directory. On other
//! systems a long path fails with the kernel's own error.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The longest path by which a socket is bound and reached directly. `sun_path` holds 108 bytes on Linux and 104 on
/// macOS, the terminating zero among them.
const LONGEST_PATH: usize = 100;

/// True if the socket is bound and reached through a descriptor of its directory.
pub fn is_long(socket: &Path) -> bool {
    socket.as_os_str().len() > LONGEST_PATH
}

pub fn bind(socket: &Path) -> io::Result<UnixListener> {
    UnixListener::bind(ShortPath::of(socket)?.path())
}

pub fn connect(socket: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(ShortPath::of(socket)?.path())
}

/// A short name for a socket, valid while this value lives. For callers with sockets of their own, such as tokio's.
#[derive(Debug)]
pub struct ShortPath {
    path: PathBuf,
    _directory: Option<OwnedFd>,
}

impl ShortPath {
    pub fn of(socket: &Path) -> io::Result<Self> {
        if !is_long(socket) {
            return Ok(Self { path: socket.to_owned(), _directory: None });
        }
        through_directory(socket)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(target_os = "linux")]
fn through_directory(socket: &Path) -> io::Result<ShortPath> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags, open};

    let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
        let message = "a socket needs a directory and a name";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::io::retry_on_intr(|| open(parent, flags, Mode::empty()))?;
    let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    Ok(ShortPath { path, _directory: Some(directory) })
}

/// Untested here: macOS has no way through a descriptor, so the kernel refuses the long path.
#[cfg(not(target_os = "linux"))]
fn through_directory(socket: &Path) -> io::Result<ShortPath> {
    Ok(ShortPath { path: socket.to_owned(), _directory: None })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_any_length_of_path_is_bound_and_reached() {
        let dir = tempfile::tempdir().expect("a directory");
        for length in [1, 99, 250] {
            let parent = dir.path().join("d".repeat(length));
            std::fs::create_dir(&parent).expect("a directory");
            let socket = parent.join("s.sock");
            assert!(connect(&socket).is_err(), "no process has bound it");
            let _listener = bind(&socket).expect("it is bound");
            connect(&socket).expect("it is reached");
            assert!(socket.exists(), "the name on disk is the long one");
        }
    }

    #[test]
    fn a_path_is_long_from_its_hundred_and_first_byte() {
        let path = |bytes: usize| PathBuf::from("x".repeat(bytes));
        assert_eq!([100, 101, 107].map(|bytes| is_long(&path(bytes))), [false, true, true]);
    }
}
