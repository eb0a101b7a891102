//! Processes by identity, as `outlast_home::process` has them, and what a daemon waits for and logs about them.

use outlast_home::process::Sent;
pub(crate) use outlast_home::process::{Stat, Who, is_alive, is_frozen, open, read, stat};
use rustix::process::{Pid, Signal};

/// True if this child of ours was stopped by a signal. Takes nothing from the task that waits for its end.
pub(crate) fn is_stopped_child(pid: u32) -> bool {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let how = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::Pid(pid), how), Ok(Some(_)))
}

/// Returns when exactly this process is gone, at once if it is already.
#[cfg(target_os = "linux")]
pub(crate) async fn gone(who: Who) -> std::io::Result<()> {
    let Some(handle) = open(who)? else { return Ok(()) };
    let handle = super::readable(handle)?;
    let _ended = handle.readable().await?;
    Ok(())
}

/// Signals exactly this process; a process that is gone, or another one under its number, gets nothing.
pub(crate) fn signal(who: Who, signal: Signal) {
    match outlast_home::process::signal(who, signal) {
        Ok(Sent::Yes | Sent::Gone) => {}
        Ok(Sent::No) => tracing::warn!(pid = who.pid, "signal not sent: this system has no pidfd"),
        Err(error) => tracing::warn!(pid = who.pid, %error, "signal not sent"),
    }
}
