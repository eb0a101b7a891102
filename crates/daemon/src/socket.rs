//! Unix sockets by path, also where the path is longer than the kernel accepts.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use outlast_home::layout::LONGEST_SOCKET_PATH;
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;

/// A short name for a socket, good for as long as this is kept.
pub(crate) struct ShortPath {
    path: PathBuf,
    _dir: Option<OwnedFd>,
}

impl ShortPath {
    pub(crate) fn of(socket: &Path) -> io::Result<Self> {
        if socket.as_os_str().len() <= LONGEST_SOCKET_PATH {
            return Ok(Self { path: socket.to_owned(), _dir: None });
        }
        let (Some(parent), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::Error::other("a socket needs a directory and a name"));
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = retry_on_intr(|| rustix::fs::open(parent, flags, Mode::empty()))?;
        let path = Path::new("/proc/self/fd").join(dir.as_raw_fd().to_string()).join(name);
        Ok(Self { path, _dir: Some(dir) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
