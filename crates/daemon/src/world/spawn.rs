//! Starting shims, the waiter, guards and the daemon that comes after this one. Besides git, which is short, nothing else is started by the daemon: the
//! commands of sinks and polls are started by their guards.
//!
//! Nothing runs between fork and exec, so the standard library uses `posix_spawn`, whose cost does not
//! grow with the daemon. A shim, a waiter and a guard make
//! their own sessions.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use outlast_wire::environment::not_inherited;
use outlast_wire::guard::GUARD_VERB;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// In the child that resolves it, the program of this daemon, whatever became of its file.
const OWN: &str = "/proc/self/exe";

/// A shim that was just started.
pub(crate) struct Shim {
    /// Its first control connection.
    pub(crate) stream: UnixStream,
    /// `None` if it is gone already.
    pub(crate) pid: Option<u32>,
}

/// Starts a shim for the attempt in `dir`, from the very program that this daemon runs: an upgrade may have removed
/// or replaced the file, and a shim of another build than its daemon is for adoption only. `name` is what `ps`
/// shows, and the file to start where there is no /proc.
pub(crate) fn shim(name: &Path, dir: &Path) -> io::Result<Shim> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = OwnedFd::from(theirs);
    let mut child = own(
        name,
        &["__shim".as_ref(), dir.as_ref()],
        &|| theirs.try_clone().map(Stdio::from),
        Outputs::Unheard,
    )?;
    let pid = child.id();
    #[expect(clippy::disallowed_methods, reason = "reaps one shim, and ends with it")]
    let _reaper = tokio::spawn(async move { child.wait().await });
    ours.set_nonblocking(true)?;
    Ok(Shim { stream: ours, pid })
}

/// Starts the waiter, which goes by the plan in this file. It outlives the daemon.
pub(crate) fn waiter(name: &Path, plan: &Path) -> io::Result<Child> {
    own(name, &["__wait".as_ref(), plan.as_ref()], &|| Ok(Stdio::null()), Outputs::Unheard)
}

/// Starts the daemon that takes the place of this one, from the name that this one was started by: an upgrade leads that
/// name to the new version.
pub(crate) fn successor(name: &Path) -> io::Result<Child> {
    let args = ["daemon", "run", "--detached", "--replace"].map(OsStr::new);
    let start = |program: &Path| {
        let mut command = command(program, name, &args, Outputs::Stdout);
        command.current_dir("/").stdin(Stdio::null()).spawn()
    };
    match start(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => start(Path::new(OWN)),
        spawned => spawned,
    }
}

/// The first line that a process prints; `None` if it ended without one.
pub(crate) async fn first_line(mut child: Child) -> Option<String> {
    let stdout = child.stdout.take()?;
    BufReader::new(stdout).lines().next_line().await.ok().flatten()
}

/// A guard that was just started and waits to be told what to run.
pub(crate) struct Guard {
    pub(crate) stream: tokio::net::UnixStream,
    /// What its command is to print goes here, if it is wanted.
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

/// Which outputs of a new process come to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outputs {
    Unheard,
    Stdout,
    Stderr,
    Both,
}

/// Starts the guard of one command. It leaves with the last process of that command.
pub(crate) fn guard(name: &Path, outputs: Outputs) -> io::Result<Guard> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let stream = tokio::net::UnixStream::from_std(ours)?;
    let theirs = OwnedFd::from(theirs);
    let stdin = || theirs.try_clone().map(Stdio::from);
    let mut child = own(name, &[GUARD_VERB.as_ref()], &stdin, outputs)?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let pid = child.id();
    #[expect(clippy::disallowed_methods, reason = "reaps one guard, and ends with it")]
    let _reaper = tokio::spawn(async move {
        if let Ok(status) = child.wait().await
            && let Some(signal) = status.signal()
        {
            let what = "a guard was killed: what its command has left behind may pass for a person";
            tracing::warn!(pid, signal, "{what}");
        }
    });
    Ok(Guard { stream, stdout, stderr })
}

/// Another life of this program, which outlives the daemon.
fn own(
    name: &Path,
    args: &[&OsStr],
    stdin: &dyn Fn() -> io::Result<Stdio>,
    outputs: Outputs,
) -> io::Result<Child> {
    match command(Path::new(OWN), name, args, outputs).stdin(stdin()?).spawn() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            command(name, name, args, outputs).stdin(stdin()?).spawn()
        }
        spawned => spawned,
    }
}

fn command(program: &Path, name: &Path, args: &[&OsStr], outputs: Outputs) -> Command {
    #[expect(clippy::disallowed_methods, reason = "world is where the daemon starts processes")]
    let mut command = Command::new(program);
    let (stdout, stderr) = match outputs {
        Outputs::Unheard => (Stdio::null(), Stdio::null()),
        Outputs::Stdout => (Stdio::piped(), Stdio::null()),
        Outputs::Stderr => (Stdio::null(), Stdio::piped()),
        Outputs::Both => (Stdio::piped(), Stdio::piped()),
    };
    command.arg0(name).args(args).stdout(stdout).stderr(stderr).kill_on_drop(false);
    for name in not_inherited() {
        command.env_remove(name);
    }
    command
}
