//! A signal to the daemon that holds the lock, for when the daemon does not answer.
//!
//! The signal goes to exactly that process: the lock names the daemon's boot, pid and start, and the signal travels
//! through a pidfd that was opened before boot, pid and start were compared.

use outlast_home::holder::Holder;
use outlast_home::layout::Layout;
use rustix::process::Signal;

use crate::lock;
use crate::process;
use crate::world::World;

/// What became of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Yes,
    /// The process that the lock names is not there.
    Gone,
    /// The lock does not say enough of its holder, or the system let nothing through.
    No,
}

/// Has a daemon look after a socket that is gone. Signals only a daemon that has said where it listens: a daemon of
/// an earlier version, or a daemon that is just starting, might not be ready for the signal.
pub fn nudge(world: &World, layout: &Layout) -> Sent {
    match lock::holder(&layout.daemon_lock()) {
        Some(holder) if holder.socket.is_some() => signal(world, &holder, Signal::HUP),
        Some(_) | None => Sent::No,
    }
}

#[cfg(target_os = "linux")]
pub fn signal(world: &World, holder: &Holder, signal: Signal) -> Sent {
    use rustix::process::{Pid, PidfdFlags, pidfd_open, pidfd_send_signal};

    let Some(identity) = holder.identity() else { return Sent::No };
    let pid = i32::try_from(identity.pid).ok().and_then(Pid::from_raw);
    let (Some(pid), Some(boot)) = (pid, boot_id(world)) else { return Sent::No };
    if boot != identity.boot {
        return Sent::Gone;
    }
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return Sent::Gone };
    // The start is compared after the open, so the compared process is the process of the handle.
    if process::start(identity.pid) != Some(identity.start) {
        return Sent::Gone;
    }
    match pidfd_send_signal(&process, signal) {
        Ok(()) => Sent::Yes,
        Err(rustix::io::Errno::SRCH) => Sent::Gone,
        Err(_) => Sent::No,
    }
}

/// Untested here: without a pidfd the process may be another one than the lock names.
#[cfg(not(target_os = "linux"))]
pub fn signal(_world: &World, _holder: &Holder, _signal: Signal) -> Sent {
    Sent::No
}

/// True if the daemon was stopped by a signal and does nothing until it is continued.
pub fn is_frozen(holder: &Holder) -> bool {
    process::is_stopped(holder.pid)
}

/// Which boot this is. A debug build takes another from its environment, as the daemon does.
#[cfg(target_os = "linux")]
fn boot_id(world: &World) -> Option<String> {
    let pretended = world.var("OUTLAST_FAKE_BOOT_ID").filter(|_| cfg!(debug_assertions));
    if let Some(pretended) = pretended {
        return pretended.to_str().map(str::to_owned);
    }
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_signal_reaches_nobody_but_the_process_that_is_named() {
        let world = World::new(Vec::new());
        let me = std::process::id();
        let start = process::start(me).expect("we are alive");
        let holder = |boot: Option<String>, start| Holder {
            pid: me,
            version: String::new(),
            epoch: None,
            started_at: String::new(),
            build: None,
            socket: None,
            boot,
            start,
            program: None,
            left: None,
        };
        let boot = boot_id(&world);
        // A continued process that was not stopped notices nothing.
        assert_eq!(signal(&world, &holder(boot.clone(), Some(start)), Signal::CONT), Sent::Yes);
        assert_eq!(
            signal(&world, &holder(boot.clone(), Some(start + 1)), Signal::CONT),
            Sent::Gone
        );
        assert_eq!(
            signal(&world, &holder(Some("another".to_owned()), Some(start)), Signal::CONT),
            Sent::Gone
        );
        assert_eq!(signal(&world, &holder(boot, None), Signal::CONT), Sent::No);
    }
}
