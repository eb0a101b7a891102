//! The signals that end the watching of a run, and never the run.

use futures_util::FutureExt;
use outlast_client::problem::Problem;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) struct Detach {
    interrupt: Signal,
    quit: Signal,
    hangup: Signal,
    terminate: Signal,
}

/// Which kind of signal asked this process to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// ctrl-c or ctrl-\
    ByKeys,
    /// A hang-up of the terminal, or a termination.
    ForGood,
}

impl Detach {
    /// From here on these signals are kept for [`Detach::asked`] instead of killing us.
    pub(crate) fn listen() -> Result<Self, Problem> {
        let listen = |kind| signal(kind).map_err(cannot_listen);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            quit: listen(SignalKind::quit())?,
            hangup: listen(SignalKind::hangup())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// Returns when a signal asks this process to leave.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Returns when a signal other than the keyboard's asks this process to leave. The keys are for
    /// another process just now.
    pub(crate) async fn asked_for_good(&mut self) {
        tokio::select! {
            _ = self.hangup.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Returns when the keyboard's signals or any other ask this process to leave, and says which.
    pub(crate) async fn asked_how(&mut self) -> How {
        tokio::select! {
            _ = self.interrupt.recv() => How::ByKeys,
            _ = self.quit.recv() => How::ByKeys,
            _ = self.hangup.recv() => How::ForGood,
            _ = self.terminate.recv() => How::ForGood,
        }
    }

    /// The keyboard's signals up to now were for another process.
    pub(crate) fn forget_keys(&mut self) {
        for signal in [&mut self.interrupt, &mut self.quit] {
            while let Some(Some(())) = signal.recv().now_or_never() {}
        }
    }
}

pub(crate) fn window_changes() -> Result<Signal, Problem> {
    signal(SignalKind::window_change()).map_err(cannot_listen)
}

fn cannot_listen(error: std::io::Error) -> Problem {
    Problem::failure(format_args!("cannot listen for signals: {error}"))
}
