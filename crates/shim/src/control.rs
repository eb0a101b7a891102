//! `ctl.sock` and every peer connected to it.
//!
//! Lets in peers of the same user, up to a number, and as the daemon only the process that holds its lock; keeps
//! the highest epoch that a daemon came with.
//! Carries orders and news; obeys none itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_home::layout::AttemptDir;
use outlast_home::socket;
use outlast_wire::shim::{Frame, News, Order, Refusal, Window};

use crate::clock::earlier;
use crate::connection::{Connection, Peer, Seat, View};
use crate::peer::Door;

/// More connections than this are closed as they come.
const CONNECTIONS_MAX: usize = 64;
/// A peer that has not said Hello by then is a stranger and is closed.
const HELLO_WITHIN: Duration = Duration::from_secs(30);
/// How long a connection that is ending may take to read its last news.
const END_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Control {
    listener: UnixListener,
    connections: Vec<Connection>,
    epoch: u64,
    next_id: u64,
    /// Who is let in as the daemon.
    door: Door,
}

impl Control {
    /// Binds the socket; the caller holds the attempt's lock, so one that is there is stale.
    pub(crate) fn bind(dir: &AttemptDir, daemon_lock: &Path) -> io::Result<Self> {
        match std::fs::remove_file(dir.socket()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let listener = socket::bind(&dir.socket())?;
        listener.set_nonblocking(true)?;
        let door = Door::of(daemon_lock);
        Ok(Self { listener, connections: Vec::new(), epoch: 0, next_id: 0, door })
    }

    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub(crate) fn connections(&self) -> &[Connection] {
        &self.connections
    }

    pub(crate) fn accept(&mut self, now: Instant) {
        for _ in 0..CONNECTIONS_MAX {
            let Ok((stream, _)) = self.listener.accept() else { return };
            if stream.set_nonblocking(true).is_ok() {
                self.admit(stream, now);
            }
        }
    }

    /// The connection that the daemon which started us had ready.
    pub(crate) fn take(&mut self, stream: UnixStream, now: Instant) {
        self.next_id += 1;
        self.connections.push(Connection::handed(self.next_id, stream, now + HELLO_WITHIN));
    }

    fn admit(&mut self, stream: UnixStream, now: Instant) {
        if self.connections.len() < CONNECTIONS_MAX && is_same_user(&stream) {
            self.next_id += 1;
            self.connections.push(Connection::new(self.next_id, stream, now + HELLO_WITHIN));
        }
    }

    /// True if that connection's peer may say that it is the daemon.
    pub(crate) fn is_daemons(&mut self, id: u64) -> bool {
        let Self { connections, door, .. } = self;
        connections
            .iter()
            .find(|connection| connection.id == id)
            .is_some_and(|it| it.is_daemons(door))
    }

    /// True if that connection's peer was the daemon, and another process is by now.
    pub(crate) fn is_replaced(&self, id: u64) -> bool {
        let connection = self.connections.iter().find(|connection| connection.id == id);
        connection.is_some_and(|it| it.is_replaced(&self.door))
    }

    pub(crate) fn get(&mut self, id: u64) -> Option<&mut Connection> {
        self.connections.iter_mut().find(|connection| connection.id == id)
    }

    pub(crate) fn receive(&mut self, id: u64) -> Vec<Frame<Order>> {
        self.get(id).map(Connection::receive).unwrap_or_default()
    }

    /// Whether a viewer that a daemon of `epoch` carries may speak. A viewer claims nothing.
    pub(crate) fn accepts_viewer(&self, epoch: u64) -> bool {
        epoch >= self.epoch
    }

    /// Whether a daemon of `epoch` may speak; the highest that did is remembered.
    pub(crate) fn accepts_epoch(&mut self, epoch: u64) -> bool {
        self.epoch = self.epoch.max(epoch);
        epoch == self.epoch
    }

    /// A daemon of `epoch` is here: those of older epochs are not daemons any more.
    pub(crate) fn retire_older(&mut self, epoch: u64, now: Instant) {
        for connection in &mut self.connections {
            if matches!(connection.peer, Peer::Daemon { epoch: older } if older < epoch) {
                connection.peer = Peer::Stranger;
                let message = format!("a daemon of epoch {epoch} has come");
                connection.send(News::Refused { code: Refusal::StaleEpoch, message });
                connection.end(now + END_WITHIN);
            }
        }
    }

    pub(crate) fn tell_daemons(&mut self, news: &News) {
        for connection in &mut self.connections {
            if matches!(connection.peer, Peer::Daemon { .. }) {
                connection.send(news.clone());
            }
        }
    }

    /// Refuses, and closes the connection once it has been told.
    pub(crate) fn dismiss(
        &mut self,
        id: u64,
        code: Refusal,
        message: impl Into<String>,
        now: Instant,
    ) {
        if let Some(connection) = self.get(id) {
            connection.send(News::Refused { code, message: message.into() });
            connection.end(now + END_WITHIN);
        }
    }

    /// Answers those who wait for more output than there was.
    pub(crate) fn tell_output(&mut self, bytes: u64) {
        for connection in &mut self.connections {
            if connection.watch.is_some_and(|after| bytes > after) {
                connection.watch = None;
                connection.send(News::Output { bytes });
            }
        }
    }

    /// What this connection may do at the terminal.
    pub(crate) fn seat(&self, id: u64) -> Seat {
        let found = self.connections.iter().find(|connection| connection.id == id);
        found.map_or(Seat::Looks, |connection| connection.seat)
    }

    pub(crate) fn tell_window(&mut self, window: Window) {
        for connection in &mut self.connections {
            connection.tell_window(window);
        }
    }

    pub(crate) fn show(&mut self, bytes: &[u8]) {
        for connection in &mut self.connections {
            connection.show(bytes);
        }
    }

    /// Paints those who came new or fell behind and have taken what was queued for them.
    pub(crate) fn paint_ready(&mut self, mut screen: impl FnMut() -> Vec<u8>) {
        for connection in
            self.connections.iter_mut().filter(|connection| connection.is_to_be_painted())
        {
            connection.paint(&screen());
        }
    }

    /// The last screen, also for those who still have something queued.
    pub(crate) fn paint_behind(&mut self, mut screen: impl FnMut() -> Vec<u8>) {
        let behind = Peer::Viewer(View::Behind);
        for connection in self.connections.iter_mut().filter(|connection| connection.peer == behind)
        {
            connection.paint(&screen());
        }
    }

    pub(crate) fn has_daemon(&self) -> bool {
        self.connections.iter().any(|connection| matches!(connection.peer, Peer::Daemon { .. }))
    }

    pub(crate) fn has_viewers(&self) -> bool {
        self.connections.iter().any(Connection::is_attached)
    }

    pub(crate) fn is_flushed(&self) -> bool {
        !self.connections.iter().any(Connection::has_queued)
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.connections.iter().map(Connection::wake_at).fold(None, earlier)
    }

    /// Sends what can be sent and forgets who is gone.
    pub(crate) fn tick(&mut self, now: Instant) {
        for connection in &mut self.connections {
            connection.flush();
            connection.tick(now);
        }
        self.connections.retain(|connection| !connection.is_closed());
    }
}

fn is_same_user(stream: &UnixStream) -> bool {
    #[cfg(target_os = "linux")]
    {
        let peer = rustix::net::sockopt::socket_peercred(stream);
        peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
    }
    // The socket's mode and its directory's keep others out; there is no second check.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = stream;
        true
    }
}
