//! A descriptor that output comes from, and what of it is held back because it may become a secret.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use outlast_secrets::{Redactor, Secrets, TELLING};
use outlast_wire::output::Stream;
use rustix::io::Errno;

/// What is read of a terminal after its program has ended, at most.
const DRAIN_BYTES: usize = 4 << 20;
/// What a pipe is enlarged to once it was found full. Modest, because a user's pipes share one allowance.
const PIPE_BYTES: usize = 256 << 10;
/// A few bytes that a secret begins with are held back so long: they may be the end of a prompt.
const HELD_SHORT: Duration = Duration::from_millis(50);
/// More of them are no accident, and are held back so long.
const HELD_LONG: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stream: Stream,
    pub(crate) fd: OwnedFd,
    capacity: Capacity,
    redactor: Redactor,
    /// When something was read last.
    read_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capacity {
    AsMade,
    Enlarged,
}

/// How far a read got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Moved(usize),
    Empty,
    Ended,
}

impl Output {
    pub(crate) fn new(stream: Stream, fd: OwnedFd, secrets: &Secrets) -> Self {
        let (capacity, redactor) = (Capacity::AsMade, secrets.redactor());
        Self { stream, fd, capacity, redactor, read_at: None }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Step {
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

    /// What may be kept and shown now that these bytes were read.
    pub(crate) fn take<'b>(&'b mut self, bytes: &'b [u8], now: Instant) -> &'b [u8] {
        self.read_at = Some(now);
        self.redactor.feed(bytes)
    }

    /// When what is held back has to leave, if anything is.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        let is_short = self.redactor.begun() < TELLING;
        let hold = if is_short { HELD_SHORT } else { HELD_LONG };
        self.read_at.filter(|_| self.redactor.held() > 0).map(|at| at + hold)
    }

    /// What was held back.
    pub(crate) fn flush(&mut self) -> &[u8] {
        self.redactor.flush()
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
    pub(crate) fn pending(&self) -> usize {
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
