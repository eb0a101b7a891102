//! Getting a connection to the daemon, and starting one first where that is allowed.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use outlast_wire::layout::Layout;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::autostart;
use crate::client::{Connection, Failed};
use crate::holder::{self, Sent};
use crate::lock::{self, Door, Lock};
use crate::problem::Problem;
use crate::world::{Autostart, World};

/// How long a client looks for a daemon that went away under it.
pub(crate) const RECONNECT: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(50);
/// How long a client that waits holds out after a `daemon stop`, in case a `daemon start` follows.
const STOPPED_FOR: Duration = Duration::from_secs(5);
/// How long a daemon may take to listen anew once it is told that its socket is gone.
const MEND_WITHIN: Duration = Duration::from_secs(3);

/// A connection for a command that needs the daemon.
pub(crate) async fn connect(world: &World) -> Result<Connection, Problem> {
    if let Some(connection) = meet(world).await? {
        return Ok(connection);
    }
    if world.is_in_run() {
        return reconnect(world, Instant::now() + RECONNECT).await;
    }
    match world.autostart() {
        Autostart::Allowed => autostart::start(world).await,
        Autostart::Forbidden => {
            Err(not_running().hint("OUTLAST_NO_AUTOSTART=1 forbids starting it"))
        }
    }
}

/// A connection after one broke, until `deadline`. A daemon that was stopped and is not started again at once stays
/// stopped.
pub(crate) async fn reconnect(world: &World, deadline: Instant) -> Result<Connection, Problem> {
    let layout = world.layout()?;
    // One that lives and lost its socket is told so.
    holder::nudge(world, layout);
    let mut stopped_until = None;
    loop {
        if let Some(connection) = try_connect(layout).await? {
            return Ok(connection);
        }
        let now = Instant::now();
        if layout.stopped_marker().exists() {
            // `daemon stop` and then `daemon start` is how many an upgrade goes.
            if now >= *stopped_until.get_or_insert(now + STOPPED_FOR) {
                return Err(Problem::unreachable("it was stopped")
                    .hint("runs go on without it; outlast daemon start"));
            }
        } else {
            stopped_until = None;
            // A daemon that we start would be a process of our run's tree and go with it, so its shim comes first.
            let is_late = now >= deadline;
            if world.autostart() == Autostart::Allowed && (is_late || !world.is_in_run()) {
                return autostart::start(world).await;
            }
            if is_late {
                return Err(not_running());
            }
        }
        sleep(RETRY).await;
    }
}

/// A connection if a daemon lives. One that holds the lock and has lost its socket is told to listen anew.
pub(crate) async fn meet(world: &World) -> Result<Option<Connection>, Problem> {
    let layout = world.layout()?;
    if let Some(connection) = try_connect(layout).await? {
        return Ok(Some(connection));
    }
    if holder::nudge(world, layout) != Sent::Yes {
        return Ok(None);
    }
    let deadline = Instant::now() + MEND_WITHIN;
    while Instant::now() < deadline && lock::probe(&layout.daemon_lock()) == Lock::Held {
        sleep(RETRY).await;
        if let Some(connection) = try_connect(layout).await? {
            return Ok(Some(connection));
        }
    }
    Ok(None)
}

/// A connection if a daemon listens; `None` if none does.
pub(crate) async fn try_connect(layout: &Layout) -> Result<Option<Connection>, Problem> {
    let lock = layout.daemon_lock();
    match lock::door(layout) {
        Some(door) => connect_to(&door).await,
        None => match std::fs::File::open(&lock) {
            // Another user's: to say that no daemon runs would be a guess.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(Problem::unreachable(format_args!("{}: {error}", lock.display())))
            }
            Ok(_) | Err(_) => Ok(None),
        },
    }
}

async fn connect_to(door: &Door) -> Result<Option<Connection>, Problem> {
    let socket = &door.socket;
    let stream = match open(socket).await {
        // Whom the kernel names at the other end need not be looked for.
        Ok(stream) if is_at(&stream, door.pid) || door.is_its_holders() => stream,
        Ok(_another) => return Ok(None),
        Err(error) if is_nobody(&error) => return Ok(None),
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

/// True if that process listens at the other end.
fn is_at(stream: &UnixStream, pid: u32) -> bool {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    peer.is_some_and(|peer| u32::try_from(peer) == Ok(pid))
}

fn is_nobody(error: &io::Error) -> bool {
    // A full backlog shows as EAGAIN on a unix socket: the daemon is there, and busy.
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::WouldBlock
    )
}

pub(crate) fn not_running() -> Problem {
    Problem::unreachable("it is not running")
}

async fn open(socket: &Path) -> io::Result<UnixStream> {
    #[cfg(target_os = "linux")]
    if socket.as_os_str().len() > outlast_wire::layout::LONGEST_SOCKET_PATH {
        return open_through_directory(socket).await;
    }
    UnixStream::connect(socket).await
}

#[cfg(target_os = "linux")]
async fn open_through_directory(socket: &Path) -> io::Result<UnixStream> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{Mode, OFlags};

    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = || rustix::fs::open(directory, flags, Mode::empty());
    let directory = rustix::io::retry_on_intr(open)?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    UnixStream::connect(&short).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(layout: &Layout) -> Door {
        Door { socket: layout.socket(), pid: std::process::id(), start: None }
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
            // Bound by way of a short link, as the daemon has to as well.
            let link = home.path().join("link");
            std::os::unix::fs::symlink(&layout.runtime, &link).expect("a link");
            let _listener =
                tokio::net::UnixListener::bind(link.join("daemon.sock")).expect("a socket");
            assert!(matches!(connect_to(&at(&layout)).await, Ok(Some(_))));
        });
    }

    #[test]
    fn a_socket_that_nobody_serves_counts_as_no_daemon() {
        let home = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(home.path());
        std::fs::create_dir_all(&layout.runtime).expect("a directory");
        runtime().block_on(async {
            drop(tokio::net::UnixListener::bind(layout.socket()).expect("a socket"));
            assert!(matches!(connect_to(&at(&layout)).await, Ok(None)));
        });
    }
}
