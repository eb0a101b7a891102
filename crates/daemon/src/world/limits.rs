//! What the kernel lets this process have: raised once at the start, and handed on as it was.
//!
//! The daemon holds two descriptors for each live step, and the usual soft limit of 1024 is for programs that
//! use `select`. Steps get the limits that the daemon was started with.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;

use outlast_home::holder::LOCK_DESCRIPTOR;
use outlast_wire::shim::SoftLimits;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than this is never asked for: some hard limits are without end, and tables grow with the number.
const MOST_OPEN_FILES: u64 = 1 << 20;

/// Descriptors that no step takes, so that clients are answered and files can be opened when there are no more
/// for steps. Of a small limit only a part.
const KEPT_FREE: u64 = 64;

/// So many descriptors have a place before the kernel makes the table of this process larger.
const ROOM_FOR: i32 = 1024;

/// Above the descriptors that a daemon opens early, and below `ROOM_FOR`. The lock is the first that is moved here.
const CLOSED_FIRST_MIN: i32 = LOCK_DESCRIPTOR as i32;

static BEFORE: OnceLock<SoftLimits> = OnceLock::new();

/// Raises the soft limits to the hard ones, once. A limit that cannot be raised stays. Best called before this
/// process has a second thread, see `make_room`.
pub fn raise() {
    BEFORE.get_or_init(|| {
        let before = SoftLimits {
            open_files: raise_one(Resource::Nofile, MOST_OPEN_FILES),
            processes: raise_one(Resource::Nproc, u64::MAX),
        };
        make_room();
        before
    });
}

/// Has the kernel make the table of descriptors large enough for a thousand. Later it would stop each thread that
/// opens a file for up to 50 ms, once at 64, at 256 and at 512 descriptors; a process with one thread is not stopped.
fn make_room() {
    // Where the limit is lower than that, the table grows when it has to, as any other process's does.
    drop(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), ROOM_FOR - 1));
}

/// The soft limits that this process was started with, of those that were raised.
pub(crate) fn before() -> SoftLimits {
    BEFORE.get().copied().unwrap_or_default()
}

/// How many descriptors this process may have.
pub(crate) fn open_files() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Refuses a descriptor that is one of the last ones. The kernel gives the lowest number that is free, so a
/// high number says how many are taken.
pub(crate) fn keep_some_free(taken: impl AsFd) -> io::Result<()> {
    let most = open_files();
    let kept_free = KEPT_FREE.min(most / 4);
    let number = u64::try_from(taken.as_fd().as_raw_fd()).unwrap_or(0);
    if number >= most.saturating_sub(kept_free) { Err(Errno::MFILE.into()) } else { Ok(()) }
}

/// Moves what the next daemon waits for to a high number. The kernel closes the descriptors of a dead process from
/// the highest to the lowest, and can need 50 ms to close one of inotify: nothing that is awaited comes after it.
pub(crate) fn closed_first<F: AsFd + From<OwnedFd>>(file: F) -> F {
    let moved = rustix::io::fcntl_dupfd_cloexec(&file, CLOSED_FIRST_MIN);
    // Where the limit is lower than that, a daemon's death takes a little longer, and nothing else changes.
    moved.map_or(file, F::from)
}

/// The soft limit as it was, if it was raised.
fn raise_one(resource: Resource, most: u64) -> Option<u64> {
    let found = getrlimit(resource);
    let before = found.current?;
    let wanted = found.maximum.unwrap_or(u64::MAX).min(most);
    if wanted <= before {
        return None;
    }
    // `u64::MAX` is how the kernel writes "without end".
    let current = Some(wanted).filter(|wanted| *wanted != u64::MAX);
    match setrlimit(resource, Rlimit { current, maximum: found.maximum }) {
        Ok(()) => Some(before),
        Err(error) => {
            tracing::warn!(?resource, %error, "cannot raise a limit of this process");
            None
        }
    }
}
