//! Where the daemon listens: the held lock names the socket, whatever the environment of a client says.
//!
//! Another path would lead to the daemon of another home.

use std::path::PathBuf;

use crate::holder::{self, Holder};
use crate::layout::Layout;
use crate::process;

/// A socket, and the daemon that named the socket in the lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub socket: PathBuf,
    pub pid: u32,
    /// The daemon's start in clock ticks since boot; a daemon of version 0.1 did not write it.
    pub start: Option<u64>,
}

impl Address {
    /// `None` if the daemon does not listen yet.
    pub fn of(holder: &Holder, layout: &Layout) -> Option<Self> {
        let says_where = holder.start.is_some() || holder.boot.is_some();
        let socket = match holder.socket() {
            Some(socket) => socket.to_owned(),
            None if says_where => return None,
            // A daemon of an earlier version listens where its environment said, which is likely to be this one.
            None => layout.socket(),
        };
        Some(Self { socket, pid: holder.pid, start: holder.start })
    }

    /// False if a daemon that is gone wrote this: the daemon that holds the lock now has not written its own text yet.
    pub fn is_of_holder(&self) -> bool {
        self.start.is_none_or(|start| process::start_of(self.pid) == Some(start))
    }
}

/// The address in the held lock, which may be that of a daemon that is gone. `None` if no daemon lives, or the daemon
/// does not listen yet.
pub fn address(layout: &Layout) -> Option<Address> {
    Address::of(&holder::current(&layout.daemon_lock())?, layout)
}

/// The socket of the living daemon. `None` if no daemon lives, or the daemon does not listen yet.
pub fn socket(layout: &Layout) -> Option<PathBuf> {
    address(layout).filter(Address::is_of_holder).map(|address| address.socket)
}

#[cfg(test)]
mod tests {
    use outlast_wire::again;

    use super::*;

    #[test]
    fn a_lock_names_the_socket_for_as_long_as_it_is_held() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(dir.path());
        std::fs::create_dir_all(&layout.state).expect("a directory");
        assert_eq!(socket(&layout), None);
        let mut file = std::fs::File::create(layout.daemon_lock()).expect("a file");
        let said =
            r#"{"pid":7,"version":"0.1.0","epoch":1,"started_at":"x","socket":"/elsewhere"}"#;
        std::io::Write::write_all(&mut file, said.as_bytes()).expect("written");
        assert_eq!(socket(&layout), None, "the lock is free");
        again::lock(&file).expect("a lock");
        assert_eq!(socket(&layout), Some(PathBuf::from("/elsewhere")));
    }
}
