//! What is typed on the terminal, as it comes.
//!
//! The terminal is shared with a shell and must not be made non-blocking, so a thread of its own waits for
//! it. It can be told to stop, so that the next owner of the terminal gets its keys too.

use std::io::{self, PipeReader, PipeWriter};

use outlast_client::problem::Problem;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

/// More than this waits unread in the terminal.
const WAITING: usize = 16;

pub(crate) struct Input {
    typed: mpsc::Receiver<io::Result<Vec<u8>>>,
    /// The thread stops when this is closed.
    stop: Option<PipeWriter>,
}

impl Input {
    pub(crate) fn open() -> Result<Self, Problem> {
        let cannot = |error| Problem::failure(format_args!("cannot read the terminal: {error}"));
        let (stopped, stop) = std::io::pipe().map_err(cannot)?;
        let (send, typed) = mpsc::channel(WAITING);
        std::thread::spawn(move || {
            while let Some(typed) = read(&stopped).transpose() {
                let is_over = typed.is_err();
                if send.blocking_send(typed).is_err() || is_over {
                    return;
                }
            }
        });
        Ok(Self { typed, stop: Some(stop) })
    }

    /// One at which nothing is typed.
    pub(crate) fn none() -> Self {
        let (_, typed) = mpsc::channel(1);
        Self { typed, stop: None }
    }

    /// Some bytes; an error once the terminal is gone.
    pub(crate) async fn next(&mut self) -> io::Result<Vec<u8>> {
        self.typed.recv().await.unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))
    }

    /// Returns when the thread does not read the terminal any more.
    pub(crate) async fn close(self) {
        let Self { mut typed, stop } = self;
        drop(stop);
        while typed.recv().await.is_some() {}
    }
}

/// Waits for keys; `None` once none are wanted.
fn read(stopped: &PipeReader) -> io::Result<Option<Vec<u8>>> {
    let stdin = rustix::stdio::stdin();
    loop {
        let mut fds = [PollFd::new(stopped, PollFlags::IN), PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) if !fds[0].revents().is_empty() => return Ok(None),
            Ok(_) => {}
        }
        let mut chunk = [0; 4096];
        match rustix::io::read(stdin, &mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => return Ok(Some(chunk[..count].to_vec())),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
