//! Reaping: who has ended, and whether anybody is left.
//!
//! As the subreaper of its tree the shim is told of every end in it. "No child" from the kernel is then
//! the proof that the tree is empty. Signals nobody.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use outlast_wire::shim::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

/// SIGCHLD as something to poll.
#[derive(Debug)]
pub(crate) struct ChildSignal(UnixStream);

impl ChildSignal {
    pub(crate) fn register() -> io::Result<Self> {
        let (ours, handlers) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(libc::SIGCHLD, handlers)?;
        Ok(Self(ours))
    }

    /// Forgets the signals that came so far, before asking who has ended.
    pub(crate) fn clear(&mut self) {
        let mut bytes = [0; 64];
        while self.0.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }
}

impl AsFd for ChildSignal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    Alive,
    /// The kernel says that we have no child.
    Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reaped {
    /// How the main process ended, if it did just now.
    pub(crate) main: Option<Exit>,
    pub(crate) tree: Tree,
}

/// Reaps everybody who has ended.
pub(crate) fn reap(main: Option<Pid>) -> Reaped {
    let mut main_exit = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if Some(pid) == main => main_exit = Some(exit(status)),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return Reaped { main: main_exit, tree: Tree::Alive },
            Err(Errno::CHILD) => return Reaped { main: main_exit, tree: Tree::Empty },
            Err(errno) => unreachable!("waitpid refuses only what it does not know: {errno}"),
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => unreachable!("waitpid was asked for ends only: {status:?}"),
    }
}
