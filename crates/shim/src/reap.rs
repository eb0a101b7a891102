//! Reaping: which children have ended, and whether any process is left.
//!
//! As the subreaper of its tree the shim is told of every end in it. "No child" from the kernel is then
//! the proof that the tree is empty. Sends no signal.

use outlast_wire::shim::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus};

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

/// Reaps every child that has ended.
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
