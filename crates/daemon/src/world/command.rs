//! Running the commands of sinks and of polls, each below a guard of its own.
//!
//! Bounded in time and in what is read. A command that takes too long, or that nothing waits for any more, is ended by its
//! guard with all that it started. What it leaves behind when it ends by itself is left alone, below the guard: that
//! tells it from a person (`peers`). An agent, a hook or a check is never run here: these outlive us.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use futures_util::FutureExt;
use outlast_wire::environment::{GUARD_NAME, not_inherited};
use outlast_wire::guard::{Ended as Told, Guarded};
use outlast_wire::shim::{EnvVar, Exit, NeverStarted};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::ReadHalf;

use super::limits;
use super::spawn::{self, Outputs};

/// What is read of what a command complains of.
const MOST_STDERR: usize = 4 << 10;

/// What a pipe can hold at most, unless its owner is privileged.
const PIPE_MAX: usize = 1 << 20;

/// More than a guard has to say.
const TOLD_MAX: u64 = 64 << 10;

/// How long the end of a command that took too long is waited for. The guard gives it one second before it kills.
const END_WITHIN: Duration = Duration::from_secs(5);

pub(crate) struct Call {
    pub(crate) argv: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) around: Around,
    /// How much of what it prints is wanted, if any.
    pub(crate) most_stdout: usize,
}

/// Where a command runs and what it finds there.
pub(crate) enum Around {
    /// In `/`, with the daemon's own environment and these.
    Daemon { env: Vec<(&'static str, String)> },
    /// As a client had it.
    Given { dir: String, env: Vec<EnvVar> },
}

#[derive(Debug)]
pub(crate) enum Ended {
    Exited {
        status: ExitStatus,
        stdout: Printed,
        stderr: String,
    },
    TooSlow {
        after: Duration,
    },
    /// Its guard was killed, most likely by the command itself, which may still run.
    Unseen,
}

#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) bytes: Vec<u8>,
    /// There was more than was wanted.
    pub(crate) is_cut: bool,
}

/// Runs a command to its end, below a guard that is started from this very program; `name` is what `ps` shows.
pub(crate) async fn call(name: &Path, call: Call, within: Duration) -> io::Result<Ended> {
    let outputs = if call.most_stdout > 0 { Outputs::Both } else { Outputs::Stderr };
    let mut guard = spawn::guard(name, outputs)?;
    match tokio::time::timeout(within, attend(&mut guard, call)).await {
        Ok(ended) => ended,
        Err(_elapsed) => {
            end(guard.stream).await;
            Ok(Ended::TooSlow { after: within })
        }
    }
}

async fn attend(guard: &mut spawn::Guard, call: Call) -> io::Result<Ended> {
    let order = Guarded {
        argv: call.argv,
        dir: call.around.dir().into(),
        env: call.around.env(),
        soft_limits: limits::before(),
        stdin_bytes: call.stdin.len() as u64,
    };
    let order = order.encode()?;
    let (from_guard, mut to_guard) = guard.stream.split();
    let tell = async move {
        // A guard that is gone cannot be told; that its answer is missing shows it.
        let _not_told = to_guard.write_all(&order).await;
        let _not_told = to_guard.write_all(&call.stdin).await;
    };
    let mut printed = Heard::new(guard.stdout.take(), call.most_stdout);
    let mut said = Heard::new(guard.stderr.take(), MOST_STDERR);
    let mut answer = std::pin::pin!(answer(from_guard));
    let mut tell = std::pin::pin!(tell.fuse());
    let told = loop {
        tokio::select! {
            told = &mut answer => break told?,
            () = &mut tell => {}
            () = printed.hear() => {}
            () = said.hear() => {}
        }
    };
    // What it had said before it ended; a process that it left behind and that holds the pipe is not waited for.
    printed.drain();
    said.drain();
    let Some(status) = told else { return Ok(Ended::Unseen) };
    let stderr = String::from_utf8_lossy(&said.heard.bytes).into_owned();
    Ok(Ended::Exited { status, stdout: printed.heard, stderr })
}

/// What the guard says of the command's end; `None` from one that was killed before it could.
async fn answer(from_guard: ReadHalf<'_>) -> io::Result<Option<ExitStatus>> {
    let mut text = Vec::new();
    from_guard.take(TOLD_MAX).read_to_end(&mut text).await?;
    if text.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(&text)? {
        Told::Exited(Exit::Code(code)) => Ok(Some(ExitStatus::from_raw(code << 8))),
        Told::Exited(Exit::Signal(signal)) => Ok(Some(ExitStatus::from_raw(signal))),
        Told::NeverStarted { code: NeverStarted::CommandNotFound, why } => {
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        }
        Told::NeverStarted { code: _, why } => Err(io::Error::other(why)),
    }
}

/// Has the guard end the command and all that it started, and waits until that is done. Merely dropping the
/// connection has it ended, too.
async fn end(mut guard: UnixStream) {
    let ended = async {
        guard.shutdown().await?;
        guard.read_to_end(&mut Vec::new()).await
    };
    match tokio::time::timeout(END_WITHIN, ended).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot end a command that took too long"),
        Err(_elapsed) => tracing::warn!("a command that took too long has not ended yet"),
    }
}

impl Around {
    fn dir(&self) -> &str {
        match self {
            Self::Daemon { .. } => "/",
            Self::Given { dir, .. } => dir,
        }
    }

    /// The whole environment of the command; of two variables with one name, the later.
    fn env(&self) -> Vec<EnvVar> {
        let mut env: BTreeMap<OsString, OsString> = match self {
            #[expect(clippy::disallowed_methods, reason = "world is where the environment is read")]
            Self::Daemon { .. } => std::env::vars_os().collect(),
            Self::Given { env, .. } => {
                env.iter().map(|var| (var.name.0.clone(), var.value.0.clone())).collect()
            }
        };
        for name in not_inherited() {
            env.remove(OsStr::new(name));
        }
        if let Self::Daemon { env: named } = self {
            env.extend(named.iter().map(|(name, value)| (name.into(), value.into())));
        }
        env.insert(GUARD_NAME.into(), "1".into());
        env.into_iter()
            .map(|(name, value)| EnvVar { name: name.into(), value: value.into() })
            .collect()
    }
}

/// One of its pipes, and what came through it.
struct Heard<R> {
    /// `None` once everything was heard.
    pipe: Option<R>,
    most: usize,
    heard: Printed,
    /// Bytes, with those that were not kept.
    read: usize,
}

impl<R: AsyncRead + Unpin> Heard<R> {
    fn new(pipe: Option<R>, most: usize) -> Self {
        Self { pipe, most, heard: Printed::default(), read: 0 }
    }

    /// Hears the next of it; waits for ever if there is nothing more.
    async fn hear(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut some = [0; 4096];
        match pipe.read(&mut some).await {
            Ok(0) | Err(_) => self.pipe = None,
            // The rest is read too, so that the command is not held up, and forgotten.
            Ok(read) => {
                let room = self.most.saturating_sub(self.heard.bytes.len());
                self.heard.is_cut |= read > room;
                self.heard.bytes.extend_from_slice(&some[..read.min(room)]);
                self.read += read;
            }
        }
    }

    /// What is there already, and not what another process goes on to write.
    fn drain(&mut self) {
        let most = self.read + PIPE_MAX;
        let is_open = |heard: &Self| heard.pipe.is_some() && heard.read < most;
        // The runtime would have us yield in the middle of it.
        while is_open(self) && tokio::task::unconstrained(self.hear()).now_or_never().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn a_pipe_is_heard_up_to_a_bound_and_its_writer_is_not_held_up() {
        let (mut ours, theirs) = tokio::io::duplex(100);
        let mut heard = Heard::new(Some(theirs), 150);
        let write = async move { ours.write_all(&[b'x'; 1000]).await };
        let hear = async {
            while heard.pipe.is_some() {
                heard.hear().await;
            }
        };
        let (written, ()) = tokio::join!(write, hear);
        written.expect("all of it is taken");
        assert_eq!((heard.heard.bytes.len(), heard.heard.is_cut), (150, true));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_is_left_in_a_pipe_is_heard_whole_however_much_was_heard_before() {
        let (ours, theirs) = tokio::io::duplex(PIPE_MAX);
        let mut ours = ours;
        ours.write_all(&vec![b'x'; PIPE_MAX]).await.expect("it has room");
        let mut heard = Heard::new(Some(theirs), PIPE_MAX);
        heard.drain();
        assert_eq!((heard.heard.bytes.len(), heard.heard.is_cut), (PIPE_MAX, false));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_process_that_goes_on_writing_is_not_heard_for_ever() {
        let mut heard = Heard::new(Some(tokio::io::repeat(b'y')), 10);
        heard.drain();
        assert_eq!((heard.heard.bytes.len(), heard.heard.is_cut), (10, true));
    }

    #[test]
    fn a_command_is_marked_and_knows_nothing_of_a_run() {
        let var = |name: &str, value: &str| EnvVar { name: name.into(), value: value.into() };
        let env = vec![var("A", "1"), var("OUTLAST_RUN_ID", "k3m"), var("A", "2")];
        let around = Around::Given { dir: "/usr".to_owned(), env };
        assert_eq!(around.env(), [var("A", "2"), var(GUARD_NAME, "1")]);
    }
}
