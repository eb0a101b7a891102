//! Starting shims. Besides git and the commands of sinks and polls, all of them short, nothing else is started
//! by the daemon.
//!
//! Nothing runs between fork and exec, so the standard library uses `posix_spawn`, whose cost does not
//! grow with the daemon. The shim makes its own session.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use outlast_wire::shim::not_inherited;

/// A shim that was just started.
pub(crate) struct Shim {
    /// Its first control connection.
    pub(crate) stream: UnixStream,
    /// `None` if it is gone already.
    pub(crate) pid: Option<u32>,
}

/// Starts a shim for the attempt in `dir`.
pub(crate) fn shim(exe: &Path, dir: &Path) -> io::Result<Shim> {
    let (ours, theirs) = UnixStream::pair()?;
    #[expect(clippy::disallowed_methods, reason = "world is where the daemon starts processes")]
    let mut command = tokio::process::Command::new(exe);
    command.arg("__shim").arg(dir).stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(false);
    for name in not_inherited() {
        command.env_remove(name);
    }
    let mut child = command.spawn()?;
    let pid = child.id();
    #[expect(clippy::disallowed_methods, reason = "reaps one shim, and ends with it")]
    let _reaper = tokio::spawn(async move { child.wait().await });
    ours.set_nonblocking(true)?;
    Ok(Shim { stream: ours, pid })
}
