//! A started attempt: its main process, and its output on the way from the child to the spool.
//!
//! Moves bytes and keeps what is known about the tree; what follows from it is decided in `attempt`.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use outlast_wire::output::Stream;
use outlast_wire::shim::Exit;
use rustix::io::Errno;
use rustix::process::Pid;

use crate::clock;
use crate::control::Control;
use crate::heartbeat::Heartbeat;
use crate::limits::Limits;
use crate::reap::Tree;
use crate::spawn::Report;
use crate::spool::Spool;
use crate::terminal::{Answers, Terminal};

/// One read; the buffer that the shim has.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// What is moved from one stream in one round, so that orders are heard in between.
pub(crate) const ROUND_BYTES: usize = 1 << 20;
/// What is read of a terminal after its program has ended, at most.
const DRAIN_BYTES: usize = 4 << 20;
/// What a pipe is enlarged to once it was found full. Modest, because a user's pipes share one allowance.
const PIPE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) main: Main,
    pub(crate) tree: Tree,
    pub(crate) limits: Limits,
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) spool: Spool,
    pub(crate) outputs: Vec<Output>,
    pub(crate) terminal: Option<Terminal>,
}

#[derive(Debug)]
pub(crate) enum Main {
    Running {
        pid: Pid,
        report: Report,
    },
    /// Reaped, and not written down yet.
    Ended {
        exit: Exit,
        report: Report,
    },
    /// Its end is written down.
    Gone,
}

/// A descriptor that output comes from.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stream: Stream,
    pub(crate) fd: OwnedFd,
    capacity: Capacity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capacity {
    AsMade,
    Enlarged,
}

/// How far a read got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Moved(usize),
    Empty,
    Ended,
}

impl Output {
    pub(crate) fn new(stream: Stream, fd: OwnedFd) -> Self {
        Self { stream, fd, capacity: Capacity::AsMade }
    }

    fn read(&mut self, buffer: &mut [u8]) -> Step {
        loop {
            match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(0) => return Step::Ended,
                Ok(count) => {
                    if count == buffer.len() {
                        self.enlarge();
                    }
                    return Step::Moved(count);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Step::Empty,
                // A terminal that nothing has open any more says EIO, which is after its program has ended.
                Err(_) => return Step::Ended,
            }
        }
    }

    /// A pipe found full belongs to a child that writes fast: fewer, larger turns serve it better.
    fn enlarge(&mut self) {
        if self.capacity == Capacity::AsMade && self.stream != Stream::Tty {
            self.capacity = Capacity::Enlarged;
            #[cfg(target_os = "linux")]
            crate::tolerate(rustix::pipe::fcntl_setpipe_size(&self.fd, PIPE_BYTES));
        }
    }

    /// Everything that was written before now, which a drain must not stop short of.
    fn pending(&self) -> usize {
        match self.stream {
            // The kernel hands a terminal's bytes over in steps and does not say how many there are.
            Stream::Tty => DRAIN_BYTES,
            Stream::Stdout | Stream::Stderr => rustix::io::ioctl_fionread(&self.fd)
                .ok()
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(PIPE_BYTES),
        }
    }
}

impl Live {
    pub(crate) fn main_pid(&self) -> Option<Pid> {
        match self.main {
            Main::Running { pid, .. } => Some(pid),
            Main::Ended { .. } | Main::Gone => None,
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.main, Main::Running { .. })
    }

    /// Notes who was reaped.
    pub(crate) fn reaped(&mut self, main: Option<Exit>, tree: Tree) {
        self.tree = tree;
        if let Some(exit) = main {
            self.main = match std::mem::replace(&mut self.main, Main::Gone) {
                Main::Running { report, .. } => Main::Ended { exit, report },
                Main::Ended { .. } | Main::Gone => unreachable!("a main process ends once"),
            };
        }
    }

    pub(crate) fn look_for_a_beat(&mut self, now: Instant) {
        if let Some(beat) = self.heartbeat.as_mut().and_then(|heartbeat| heartbeat.beat(now)) {
            self.limits.heard(beat);
        }
    }

    /// Moves up to `budget` bytes of one stream to the spool and to the viewers.
    pub(crate) fn pump(
        &mut self,
        stream: Stream,
        budget: usize,
        buffer: &mut [u8],
        control: &mut Control,
        now: Instant,
    ) -> io::Result<()> {
        let Some(at) = self.outputs.iter().position(|output| output.stream == stream) else {
            return Ok(());
        };
        let mut left = budget;
        while left > 0 {
            match self.outputs[at].read(buffer) {
                Step::Moved(count) => {
                    left = left.saturating_sub(count);
                    self.limits.heard(now);
                    self.show(&buffer[..count], control);
                    self.spool.append(stream, &buffer[..count], clock::wall_ms())?;
                }
                Step::Empty => return Ok(()),
                Step::Ended => {
                    self.outputs.swap_remove(at);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Takes everything that was written until now, and not what a survivor goes on writing.
    pub(crate) fn drain(
        &mut self,
        buffer: &mut [u8],
        control: &mut Control,
        now: Instant,
    ) -> io::Result<()> {
        let pending: Vec<_> =
            self.outputs.iter().map(|output| (output.stream, output.pending())).collect();
        for (stream, bytes) in pending {
            self.pump(stream, bytes, buffer, control, now)?;
        }
        self.spool.settle()
    }

    fn show(&mut self, bytes: &[u8], control: &mut Control) {
        if let Some(terminal) = &mut self.terminal {
            let answers = if control.has_viewers() { Answers::Viewers } else { Answers::Ours };
            terminal.show(bytes, answers);
            control.show(bytes);
        }
    }
}
