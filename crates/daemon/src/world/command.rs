//! Running the commands of sinks and of polls, each below a guard of its own.
//!
//! Bounded in time and in what is read (`outlast_program`). A command that takes too long, or that nothing waits for any more, is ended by its
//! guard with all that it started. What it leaves behind when it ends by itself is left alone, below the guard: that
//! tells it from a person (`peers`). An agent, a hook or a check is never run here: these outlive us.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use outlast_program::{self as program, Beyond, Bound, Limits, Printed, Tree};
use outlast_secrets::{SecretRules, Secrets};
use outlast_wire::environment::{GUARD_NAME, not_inherited};
use outlast_wire::guard::{Ended as Told, Guarded};
use outlast_wire::shim::{EnvVar, Exit, NeverStarted};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::ReadHalf;

use super::limits;
use super::spawn::{self, Outputs};

/// What is read of what a command complains of.
const MOST_STDERR: usize = 4 << 10;

/// More than a guard has to say.
const TOLD_MAX: u64 = 64 << 10;

/// How long the end of a command that took too long is waited for. The guard gives it one second before it kills.
const END_WITHIN: Duration = Duration::from_secs(5);

pub(crate) struct Call {
    pub(crate) argv: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) around: Around,
    /// Which variables of its environment are secret: their values are not in what is heard of it.
    pub(crate) rules: SecretRules,
    /// How much of what it prints is wanted, if any.
    pub(crate) most_stdout: usize,
}

/// Where a command runs and what it finds there.
pub(crate) enum Around {
    /// With the daemon's own environment and these.
    Daemon { dir: String, env: Vec<(&'static str, String)> },
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

/// Runs a command to its end, below a guard that is started from this very program; `name` is what `ps` shows.
pub(crate) async fn call(name: &Path, call: Call, within: Duration) -> io::Result<Ended> {
    let outputs = if call.most_stdout > 0 { Outputs::Both } else { Outputs::Stderr };
    let limits = Limits {
        within,
        most_stdout: call.most_stdout,
        most_stderr: MOST_STDERR,
        beyond: Beyond::Dropped,
    };
    let mut guard = spawn::guard(name, outputs)?;
    let (stdout, stderr) = (guard.stdout.take(), guard.stderr.take());
    let env = call.around.env();
    let vars = env.iter().map(|var| (var.name.as_os_str(), var.value.as_os_str()));
    let secrets = Secrets::of(&call.rules, vars, &[]);
    let order = Guarded {
        argv: call.argv,
        dir: call.around.dir().into(),
        env,
        soft_limits: limits::before(),
        stdin_bytes: call.stdin.len() as u64,
    };
    let tree = Guard { stream: guard.stream, order: order.encode()?, stdin: call.stdin };
    Ok(match program::attend(tree, stdout, stderr, limits).await? {
        program::Ended::Exited { status: Some(status), stdout, stderr } => {
            let bytes = secrets.hide_bytes(&stdout.bytes).into_owned();
            let stderr = secrets.hide(&stderr.text()).into_owned();
            Ended::Exited { status, stdout: Printed { bytes, ..stdout }, stderr }
        }
        program::Ended::Exited { status: None, .. } => Ended::Unseen,
        program::Ended::Stopped { bound: Bound::Time | Bound::Output, trouble } => {
            if let Some(error) = trouble {
                tracing::warn!(%error, "cannot end a command that took too long");
            }
            Ended::TooSlow { after: within }
        }
    })
}

/// A guard, and what it has yet to be told. The command's tree is the guard's to end; a connection that is dropped has
/// it ended, too.
struct Guard {
    stream: UnixStream,
    order: Vec<u8>,
    stdin: Vec<u8>,
}

impl Tree for Guard {
    /// `None` if the guard was killed before it could say how the command ended.
    type Status = Option<ExitStatus>;

    async fn ended(&mut self) -> io::Result<Self::Status> {
        let (from_guard, mut to_guard) = self.stream.split();
        let tell = async {
            // A guard that is gone cannot be told; that its answer is missing shows it.
            let _not_told = to_guard.write_all(&self.order).await;
            let _not_told = to_guard.write_all(&self.stdin).await;
            std::future::pending().await
        };
        tokio::select! {
            answer = answer(from_guard) => answer,
            never = tell => never,
        }
    }

    async fn end(&mut self) -> io::Result<()> {
        let ended = async {
            self.stream.shutdown().await?;
            self.stream.read_to_end(&mut Vec::new()).await
        };
        tokio::time::timeout(END_WITHIN, ended).await?.map(drop)
    }
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

impl Around {
    fn dir(&self) -> &str {
        match self {
            Self::Daemon { dir, .. } | Self::Given { dir, .. } => dir,
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
        if let Self::Daemon { env: named, .. } = self {
            env.extend(named.iter().map(|(name, value)| (name.into(), value.into())));
        }
        env.insert(GUARD_NAME.into(), "1".into());
        env.into_iter()
            .map(|(name, value)| EnvVar { name: name.into(), value: value.into() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_marked_and_knows_nothing_of_a_run() {
        let var = |name: &str, value: &str| EnvVar { name: name.into(), value: value.into() };
        let env = vec![var("A", "1"), var("OUTLAST_RUN_ID", "k3m"), var("A", "2")];
        let around = Around::Given { dir: "/usr".to_owned(), env };
        assert_eq!(around.env(), [var("A", "2"), var(GUARD_NAME, "1")]);
    }
}
