//! A directory that is held open while it is worked in.
//!
//! It is opened name by name and no link is followed, so what is looked at, read, written and removed is that
//! directory, whatever is put in its place meanwhile.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::Failure;

#[derive(Debug, Clone)]
pub(crate) struct Held {
    dir: Arc<OwnedFd>,
    path: PathBuf,
}

impl Held {
    /// Opens a directory by a path that has no link in it.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let root = enter(CWD, OsStr::new("/"), path)?;
        Self::walk(root, path, path)
    }

    /// Opens a directory below this one.
    pub(crate) fn below(&self, name: &Path) -> Result<Self, Failure> {
        let path = self.path.join(name);
        let here = enter(self.dir.as_fd(), OsStr::new("."), &path)?;
        Self::walk(here, name, &path)
    }

    fn walk(mut dir: OwnedFd, names: &Path, path: &Path) -> Result<Self, Failure> {
        for part in names.components() {
            match part {
                Component::Normal(name) => dir = enter(dir.as_fd(), name, path)?,
                Component::RootDir | Component::CurDir => {}
                Component::Prefix(_) | Component::ParentDir => {
                    return Err(Failure::Moved(path.to_owned()));
                }
            }
        }
        Ok(Self { dir: Arc::new(dir), path: path.to_owned() })
    }

    /// A path that leads to the open directory, also in a child before it runs its program.
    pub(crate) fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        if cfg!(target_os = "linux") {
            PathBuf::from(format!("/proc/self/fd/{}", self.dir.as_raw_fd()))
        } else {
            self.path.clone()
        }
    }
}

#[cfg(target_os = "linux")]
const FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn enter(dir: BorrowedFd<'_>, name: &OsStr, path: &Path) -> Result<OwnedFd, Failure> {
    openat(dir, name, FLAGS, Mode::empty()).map_err(|errno| match errno {
        Errno::LOOP | Errno::NOTDIR => Failure::Moved(path.to_owned()),
        errno => Failure::io(format!("opening {}", path.display()))(io::Error::from(errno)),
    })
}
