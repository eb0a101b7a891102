//! What the shim waits for: the attempt lists its sources, `serve` polls them and hands back those that are ready.

use std::os::fd::BorrowedFd;

use outlast_wire::output::Stream;
use rustix::event::PollFlags;

/// Who a descriptor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Some process of the tree has ended.
    ChildSignal,
    /// The shim was stopped by a signal, and goes on.
    Continued,
    Listener,
    Connection(u64),
    Output(Stream),
    /// The terminal takes keys again.
    Keys,
}

/// A descriptor to wait for.
pub(crate) type Waited<'a> = (Source, BorrowedFd<'a>, PollFlags);
