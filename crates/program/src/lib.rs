//! Runs a program to its end, bounded in time and in what it prints.
//!
//! A program that passes a bound is ended with its tree. What the tree is, its owner says ([`Tree`]): a process group
//! that gets SIGKILL ([`group`]), or a guard that the daemon tells to end it. A process that the program leaves behind
//! with its pipes does not hold up the answer, and is left alone. The crate chooses no environment and logs nothing:
//! the caller makes the command and reads what became of it.

mod group;
mod output;

use std::io;
use std::time::Duration;

use tokio::io::AsyncRead;

pub use group::{run, run_blocking};
use output::Heard;

/// The bounds of one program.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub within: Duration,
    /// How many bytes of each output are kept.
    pub most_stdout: usize,
    pub most_stderr: usize,
    pub beyond: Beyond,
}

/// What happens to a program that prints more on its standard output than is kept. Its standard error may always be
/// longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// The rest is read and dropped, so that the program is not held up.
    Dropped,
    /// The program is ended.
    Ended,
}

/// What one output has given, up to its bound.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    pub bytes: Vec<u8>,
    /// There was more than is kept.
    pub is_cut: bool,
}

impl Printed {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

#[derive(Debug)]
pub enum Ended<S> {
    Exited {
        status: S,
        stdout: Printed,
        stderr: Printed,
    },
    /// The program passed a bound, and its tree was ended.
    Stopped {
        bound: Bound,
        /// Why the tree may still be there.
        trouble: Option<io::Error>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    Time,
    Output,
}

/// A program that runs, and the processes that are ended with it. A tree that is dropped is ended too.
pub trait Tree {
    /// How the program ended.
    type Status;

    /// Returns when the program has ended by itself.
    fn ended(&mut self) -> impl Future<Output = io::Result<Self::Status>> + Send;

    /// Ends every process of the tree and waits for that, for a bounded time.
    fn end(&mut self) -> impl Future<Output = io::Result<()>> + Send;
}

/// Reads what the program prints until it has ended or passes a bound.
pub async fn attend<T: Tree>(
    mut tree: T,
    stdout: Option<impl AsyncRead + Unpin + Send>,
    stderr: Option<impl AsyncRead + Unpin + Send>,
    limits: Limits,
) -> io::Result<Ended<T::Status>> {
    let mut stdout = Heard::new(stdout, limits.most_stdout);
    let mut stderr = Heard::new(stderr, limits.most_stderr);
    let read = read(&mut tree, &mut stdout, &mut stderr, limits.beyond);
    let bound = match tokio::time::timeout(limits.within, read).await {
        Ok(Ok(Some(status))) => {
            // What it printed before it ended; a process that it left behind and that holds the pipe is not waited for.
            stdout.drain();
            stderr.drain();
            if !stdout.printed.is_cut || limits.beyond == Beyond::Dropped {
                let (stdout, stderr) = (stdout.printed, stderr.printed);
                return Ok(Ended::Exited { status, stdout, stderr });
            }
            Bound::Output
        }
        Ok(Ok(None)) => Bound::Output,
        Ok(Err(error)) => return Err(error),
        Err(_elapsed) => Bound::Time,
    };
    Ok(Ended::Stopped { bound, trouble: tree.end().await.err() })
}

/// `None` if the program printed too much.
async fn read<T: Tree>(
    tree: &mut T,
    stdout: &mut Heard<impl AsyncRead + Unpin>,
    stderr: &mut Heard<impl AsyncRead + Unpin>,
    beyond: Beyond,
) -> io::Result<Option<T::Status>> {
    let mut ended = std::pin::pin!(tree.ended());
    loop {
        tokio::select! {
            status = &mut ended => return status.map(Some),
            () = stdout.hear() => {}
            () = stderr.hear() => {}
        }
        if beyond == Beyond::Ended && stdout.printed.is_cut {
            return Ok(None);
        }
    }
}
