//! One try to connect to the daemon's unix socket.
//!
//! Starts nothing and does not try again; `autostart` and `connect` do.

use std::io::{self, ErrorKind};
use std::path::Path;

use outlast_home::address::{self, Address};
use outlast_home::layout::Layout;
use outlast_home::socket::ShortPath;
use tokio::net::UnixStream;

use crate::connection::{Connection, Failed};
use crate::problem::Problem;

/// A connection if a daemon listens; `None` if none does.
pub async fn try_connect(layout: &Layout) -> Result<Option<Connection>, Problem> {
    let lock = layout.daemon_lock();
    match address::address(layout) {
        Some(address) => connect_to(&address).await,
        None => match outlast_home::regular::open(&lock) {
            // The lock is another user's: to say that no daemon runs would be a guess.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(Problem::unreachable(format_args!("{}: {error}", lock.display())))
            }
            Ok(_) | Err(_) => Ok(None),
        },
    }
}

async fn connect_to(address: &Address) -> Result<Option<Connection>, Problem> {
    let socket = &address.socket;
    let stream = match open(socket).await {
        // If the kernel names the holder's pid at the other end, the start need not be compared.
        Ok(stream) if is_at(&stream, address.pid) || address.is_of_holder() => stream,
        Ok(_another) => return Ok(None),
        Err(error) if is_unserved(&error) => return Ok(None),
        Err(error) => {
            return Err(Problem::unreachable(format_args!("{}: {error}", socket.display())));
        }
    };
    match Connection::open(stream).await {
        Ok(connection) => Ok(Some(connection)),
        Err(Failed::Lost(_)) => Ok(None),
        Err(Failed::Answered(problem)) => Err(problem),
    }
}

/// True if the process with that number listens at the other end.
fn is_at(stream: &UnixStream, pid: u32) -> bool {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    peer.is_some_and(|peer| u32::try_from(peer) == Ok(pid))
}

fn is_unserved(error: &io::Error) -> bool {
    // A full backlog shows as EAGAIN on a unix socket: the daemon is there, and busy.
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::WouldBlock
    )
}

async fn open(socket: &Path) -> io::Result<UnixStream> {
    let short = ShortPath::of(socket)?;
    UnixStream::connect(short.path()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(layout: &Layout) -> Address {
        Address { socket: layout.socket(), pid: std::process::id(), start: None }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn a_socket_deep_in_the_tree_is_reached() {
        let home = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(&home.path().join("deep".repeat(40)));
        std::fs::create_dir_all(&layout.runtime).expect("directories");
        runtime().block_on(async {
            assert!(matches!(connect_to(&at(&layout)).await, Ok(None)));
            let _listener = outlast_home::socket::bind(&layout.socket()).expect("a socket");
            assert!(matches!(connect_to(&at(&layout)).await, Ok(Some(_))));
        });
    }

    #[test]
    fn a_socket_that_no_process_serves_counts_as_no_daemon() {
        let home = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(home.path());
        std::fs::create_dir_all(&layout.runtime).expect("a directory");
        runtime().block_on(async {
            drop(tokio::net::UnixListener::bind(layout.socket()).expect("a socket"));
            assert!(matches!(connect_to(&at(&layout)).await, Ok(None)));
        });
    }
}
