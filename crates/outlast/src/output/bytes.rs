//! Bytes to standard output and standard error, unbuffered and unchanged.

use std::io;
use std::os::fd::BorrowedFd;

use outlast_client::problem::Problem;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Stdout,
    Stderr,
}

impl Target {
    fn fd(self) -> BorrowedFd<'static> {
        match self {
            Self::Stdout => rustix::stdio::stdout(),
            Self::Stderr => rustix::stdio::stderr(),
        }
    }
}

/// The columns of the terminal that this goes to; `None` if it goes elsewhere.
pub(crate) fn columns(target: Target) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(target.fd()).ok()?;
    Some(if size.ws_col == 0 { 80 } else { usize::from(size.ws_col) })
}

pub(crate) fn write_all(target: Target, mut bytes: &[u8]) -> io::Result<()> {
    let fd = target.fd();
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            // Another process may have made the terminal or pipe that we share non-blocking.
            Err(Errno::AGAIN) => {
                poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What we were to print could not be written (`EX_IOERR`).
const UNWRITABLE: u8 = 74;

/// Why a write failed. A reader that went away ends the command without words.
pub(crate) fn unwritable(error: &io::Error) -> Problem {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Problem::OutputClosed,
        _ => Problem::new(
            UNWRITABLE,
            "output_failed",
            format_args!("cannot write the output: {error}"),
        ),
    }
}

/// Writes without holding up the task that waits for signals: a reader may have stopped reading for good.
/// Gives back what was written.
pub(crate) async fn stream(target: Target, bytes: Vec<u8>) -> Result<Vec<u8>, Problem> {
    #[expect(clippy::disallowed_methods, reason = "a client has no lanes; this is its one thread")]
    let written = tokio::task::spawn_blocking(move || write_all(target, &bytes).map(|()| bytes));
    written.await.expect("writing does not panic").map_err(|error| unwritable(&error))
}
