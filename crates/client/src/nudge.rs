//! Tells a daemon that holds the lock and cannot be reached to listen anew.
//!
//! The daemon may not know that its socket was removed.

use outlast_home::holder;
use outlast_home::layout::Layout;
use outlast_home::process::Sent;
use rustix::process::Signal;

/// Has the daemon look after its socket. Signals only a daemon that has said where it listens: a daemon of an earlier
/// version, or a daemon that is just starting, might not be ready for the signal.
pub fn nudge(layout: &Layout) -> Sent {
    match holder::current(&layout.daemon_lock()) {
        Some(holder) if holder.socket.is_some() => holder.signal(Signal::HUP),
        Some(_) | None => Sent::No,
    }
}
