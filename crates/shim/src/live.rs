//! A started attempt: its main process, and its output on the way from the child to the spool.
//!
//! Moves bytes and keeps what is known about the tree; what follows from it is decided in `attempt`.

use std::io;
use std::time::Instant;

use outlast_secrets::Secrets;
use outlast_wire::output::Stream;
use outlast_wire::shim::Exit;
use rustix::process::Pid;

use crate::clock::{self, earlier};
use crate::control::Control;
use crate::heartbeat::Heartbeat;
use crate::limits::Limits;
use crate::output::{Output, Step};
use crate::reap::Tree;
use crate::spawn::Report;
use crate::spool::Spool;
use crate::terminal::{Answers, Terminal};

/// One read; the buffer that the shim has.
pub(crate) const READ_BYTES: usize = 64 << 10;
/// What is moved from one stream in one round, so that orders are heard in between.
pub(crate) const ROUND_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) main: Main,
    pub(crate) tree: Tree,
    pub(crate) limits: Limits,
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) spool: Spool,
    pub(crate) outputs: Vec<Output>,
    pub(crate) terminal: Option<Terminal>,
    /// What is kept out of the output, and of every word about it.
    pub(crate) secrets: Secrets,
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

    /// Moves up to `budget` bytes of one stream to the spool and to the viewers, without the secrets in them.
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
                    let Self { outputs, spool, terminal, .. } = self;
                    keep(
                        stream,
                        outputs[at].take(&buffer[..count], now),
                        spool,
                        terminal,
                        control,
                    )?;
                }
                Step::Empty => return Ok(()),
                Step::Ended => {
                    let mut ended = self.outputs.swap_remove(at);
                    let Self { spool, terminal, .. } = self;
                    return keep(stream, ended.flush(), spool, terminal, control);
                }
            }
        }
        Ok(())
    }

    /// When what is held back, because it may become a secret, has to leave.
    pub(crate) fn flush_at(&self) -> Option<Instant> {
        self.outputs.iter().map(Output::flush_at).fold(None, earlier)
    }

    /// Lets leave what has been held back for long enough.
    pub(crate) fn flush_due(&mut self, control: &mut Control, now: Instant) -> io::Result<()> {
        self.flush(control, |output| output.flush_at().is_some_and(|at| now >= at))
    }

    fn flush(&mut self, control: &mut Control, is_due: impl Fn(&Output) -> bool) -> io::Result<()> {
        let Self { outputs, spool, terminal, .. } = self;
        for output in outputs.iter_mut().filter(|output| is_due(output)) {
            keep(output.stream, output.flush(), spool, terminal, control)?;
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
        self.flush(control, |_| true)?;
        self.spool.settle()
    }
}

/// Puts output down, and shows it.
fn keep(
    stream: Stream,
    bytes: &[u8],
    spool: &mut Spool,
    terminal: &mut Option<Terminal>,
    control: &mut Control,
) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    if let Some(terminal) = terminal {
        let answers = if control.has_viewers() { Answers::Viewers } else { Answers::Ours };
        terminal.show(bytes, answers);
        control.show(bytes);
    }
    spool.append(stream, bytes, clock::wall_ms())
}
