//! The kernel's word that a file is no longer where it was or as it was: unlinked, replaced, moved or written to.
//!
//! Costs nothing while nothing happens. Where there is no inotify, or no more of it to be had, nothing is said.

use std::path::Path;

/// What is heeded of a file: that its name, its links or its mode changed, and what else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heed {
    Name,
    /// Also every write.
    Words,
    /// Also that a process which may have written to it closes it.
    Writers,
}

#[cfg(target_os = "linux")]
pub(crate) struct FileWatch(Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>);

#[cfg(target_os = "linux")]
impl FileWatch {
    /// Watches what is at these paths now. A path at which nothing is has no more to lose: look at the paths after
    /// this, not before.
    pub(crate) fn of(paths: &[(&Path, Heed)]) -> Self {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
        use rustix::io::Errno;

        let made = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(std::io::Error::from)
            .and_then(crate::world::readable);
        let inotify = match made {
            Ok(inotify) => inotify,
            Err(error) => {
                tracing::warn!(%error, "cannot be told when a file of the daemon is removed; the next that needs it notices");
                return Self(None);
            }
        };
        // The count of a file's names is an attribute of it, so the last unlink is seen while we hold it open.
        let name = WatchFlags::ATTRIB | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        for (path, heed) in paths {
            let flags = match heed {
                Heed::Name => name,
                Heed::Words => name | WatchFlags::MODIFY,
                Heed::Writers => name | WatchFlags::CLOSE_WRITE,
            };
            match add_watch(inotify.get_ref(), *path, flags) {
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => tracing::warn!(%error, path = %path.display(), "cannot watch a file"),
            }
        }
        Self(Some(inotify))
    }

    /// Returns when something was done to one of the files.
    pub(crate) async fn changed(&self) {
        let Some(inotify) = &self.0 else { return std::future::pending().await };
        loop {
            let Ok(mut ready) = inotify.readable().await else {
                return std::future::pending().await;
            };
            if ready.try_io(|inotify| Ok(drain(inotify.get_ref())?)).is_ok() {
                return;
            }
        }
    }
}

/// Reads what was said and forgets it; fails if nothing was.
#[cfg(target_os = "linux")]
fn drain(inotify: &std::os::fd::OwnedFd) -> rustix::io::Result<()> {
    use rustix::fs::inotify::Reader;
    use rustix::io::Errno;

    let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
    let mut reader = Reader::new(inotify, &mut buffer);
    reader.next()?;
    loop {
        match reader.next() {
            Ok(_) => {}
            Err(Errno::WOULDBLOCK) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) struct FileWatch;

/// Untested here: without inotify, clients that find the socket dead say so, and the journal looks with each commit.
#[cfg(not(target_os = "linux"))]
impl FileWatch {
    pub(crate) fn of(_paths: &[(&Path, Heed)]) -> Self {
        Self
    }

    pub(crate) async fn changed(&self) {
        std::future::pending().await
    }
}
