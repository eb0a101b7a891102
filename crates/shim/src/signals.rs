//! Signals as something to poll: one descriptor for each that the shim listens to.
//!
//! Sends none, and does not say how often one came: the kernel does not know that either.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

#[derive(Debug)]
pub(crate) struct Signals {
    /// Some process of the tree has ended.
    pub(crate) child: Listener,
    /// We were stopped, and most likely our tree with us, and go on now.
    pub(crate) continued: Listener,
}

impl Signals {
    pub(crate) fn register() -> io::Result<Self> {
        Ok(Self {
            child: Listener::register(libc::SIGCHLD)?,
            continued: Listener::register(libc::SIGCONT)?,
        })
    }
}

/// Readable once its signal came.
#[derive(Debug)]
pub(crate) struct Listener(UnixStream);

impl Listener {
    fn register(signal: libc::c_int) -> io::Result<Self> {
        let (ours, handlers) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(signal, handlers)?;
        Ok(Self(ours))
    }

    /// Forgets what came so far. True if anything did.
    pub(crate) fn take(&mut self) -> bool {
        let mut bytes = [0; 64];
        let mut has_come = false;
        while self.0.read(&mut bytes).is_ok_and(|count| count > 0) {
            has_come = true;
        }
        has_come
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
