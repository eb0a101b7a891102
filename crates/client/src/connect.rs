//! A connection to the daemon, for a command that needs one.
//!
//! Starts a daemon first where that is allowed, and waits for a daemon that was away. A single try is `dial`'s.

use std::time::Duration;

use outlast_home::lock::{self, Lock};
use outlast_home::process::Sent;
use tokio::time::{Instant, sleep};

use crate::autostart;
use crate::connection::Connection;
use crate::dial::try_connect;
use crate::nudge;
use crate::problem::Problem;
use crate::world::{Autostart, World};

/// How long a client looks for a daemon that went away under it.
pub const RECONNECT: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(50);
/// How long a client waits after a `daemon stop`, in case a `daemon start` follows.
const STOPPED_FOR: Duration = Duration::from_secs(5);
/// How long a daemon may take to listen anew once it is told that its socket is gone.
const MEND_WITHIN: Duration = Duration::from_secs(3);

/// A connection for a command that needs the daemon.
pub async fn connect(world: &World) -> Result<Connection, Problem> {
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

/// A connection after one broke; tries until `deadline`. A daemon that was stopped and is not started again at once
/// stays stopped.
pub async fn reconnect(world: &World, deadline: Instant) -> Result<Connection, Problem> {
    let layout = world.layout()?;
    // A daemon that lives and lost its socket is told so.
    nudge::nudge(layout);
    let mut stopped_until = None;
    loop {
        if let Some(connection) = try_connect(layout).await? {
            return Ok(connection);
        }
        let now = Instant::now();
        if layout.stopped_marker().exists() {
            // Many an upgrade is `daemon stop` and then `daemon start`.
            if now >= *stopped_until.get_or_insert(now + STOPPED_FOR) {
                return Err(Problem::unreachable("it was stopped")
                    .hint("runs keep running without it:\noutlast daemon start"));
            }
        } else {
            stopped_until = None;
            // A daemon that this client starts would be a process of its run's tree and end with the tree, so the
            // run's shim comes first.
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

/// A connection if a daemon lives. A daemon that holds the lock and has lost its socket is told to listen anew.
pub async fn meet(world: &World) -> Result<Option<Connection>, Problem> {
    let layout = world.layout()?;
    if let Some(connection) = try_connect(layout).await? {
        return Ok(Some(connection));
    }
    if nudge::nudge(layout) != Sent::Yes {
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

pub fn not_running() -> Problem {
    Problem::unreachable("it is not running")
}
