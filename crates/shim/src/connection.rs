//! One control connection: frames in, frames out, and a bound on both.
//!
//! Knows who is at the other end, not what they may ask for. Never blocks: what a slow peer does not
//! take is queued up to a bound, beyond which a viewer loses its backlog (and is painted anew) and
//! any other peer loses the connection (and may come back and ask).

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use outlast_wire::shim::{Decoder, FRAME_MAX, Frame, News, Order, Window};

use crate::peer::Door;

/// What a viewer may be behind by before its backlog is dropped.
const SCREEN_MAX: usize = 256 << 10;
/// What a peer may be behind by: the longest message and some.
const QUEUE_MAX: usize = FRAME_MAX + SCREEN_MAX;
/// What is taken from one connection in one round.
const RECEIVE_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: u64,
    pub(crate) peer: Peer,
    /// What a viewer may do at the terminal.
    pub(crate) seat: Seat,
    /// Tell this peer once there are more bytes of output than this.
    pub(crate) watch: Option<u64>,
    /// True if the daemon that started us had it ready for us.
    is_handed: bool,
    stream: UnixStream,
    decoder: Decoder,
    queue: VecDeque<Outgoing>,
    /// How much of the queue's front is sent.
    sent: usize,
    queued: usize,
    life: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Has not said Hello.
    Stranger,
    Daemon {
        epoch: u64,
    },
    Viewer(View),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    /// Has not asked for the screen yet.
    Detached,
    Live,
    /// Lost its backlog, or has just come: to be painted once it has taken what is queued.
    Behind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    /// Sizes the terminal, answers its program, presses keys.
    Whole,
    /// Presses keys only.
    Keys,
    /// Only looks.
    Looks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Open,
    /// To be closed by then at the latest, and read no more if it `is_ending`.
    Until {
        at: Instant,
        is_ending: bool,
    },
    Closed,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Vec<u8>,
    is_screen: bool,
}

impl Connection {
    /// A peer that must say Hello before `hello_by`.
    pub(crate) fn new(id: u64, stream: UnixStream, hello_by: Instant) -> Self {
        Self {
            id,
            peer: Peer::Stranger,
            seat: Seat::Whole,
            watch: None,
            is_handed: false,
            stream,
            decoder: Decoder::default(),
            queue: VecDeque::new(),
            sent: 0,
            queued: 0,
            life: Life::Until { at: hello_by, is_ending: false },
        }
    }

    /// The same, from the daemon that started us.
    pub(crate) fn handed(id: u64, stream: UnixStream, hello_by: Instant) -> Self {
        Self { is_handed: true, ..Self::new(id, stream, hello_by) }
    }

    /// True if the peer may say that it is the daemon.
    pub(crate) fn is_daemons(&self, door: &Door) -> bool {
        self.is_handed || door.lets_in(&self.stream)
    }

    /// True if the peer was the daemon and has been replaced since.
    pub(crate) fn is_replaced(&self, door: &Door) -> bool {
        door.turns_away(&self.stream)
    }

    /// Said Hello as `peer`.
    pub(crate) fn welcome(&mut self, peer: Peer) {
        self.peer = peer;
        self.life = Life::Open;
    }

    /// Closes once what is queued is sent, or at `by`.
    pub(crate) fn end(&mut self, by: Instant) {
        if self.life != Life::Closed {
            self.life = Life::Until { at: by, is_ending: true };
        }
    }

    /// What has arrived, and an end of the connection noted for [`Connection::is_closed`].
    pub(crate) fn receive(&mut self) -> Vec<Frame<Order>> {
        self.read_available();
        let mut frames = Vec::new();
        loop {
            match self.decoder.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => return frames,
                // A peer that speaks no protocol gets no answer in it.
                Err(_) => {
                    self.life = Life::Closed;
                    return frames;
                }
            }
        }
    }

    fn read_available(&mut self) {
        let mut chunk = [0; 4096];
        for _ in 0..RECEIVE_MAX / chunk.len() {
            match self.stream.read(&mut chunk) {
                Ok(0) => return self.life = Life::Closed,
                Ok(count) => self.decoder.feed(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.life = Life::Closed,
            }
        }
    }

    pub(crate) fn send(&mut self, news: News) {
        match Frame::Message(news).encode() {
            Ok(bytes) => self.enqueue(bytes, false),
            Err(error) => unreachable!("lists in our messages are bounded: {error}"),
        }
    }

    /// Forwards screen bytes to a viewer that is up to date, and lets a slow one fall behind.
    pub(crate) fn show(&mut self, bytes: &[u8]) {
        if self.peer != Peer::Viewer(View::Live) {
            return;
        }
        self.send_screen(bytes);
        if self.queued > SCREEN_MAX {
            self.drop_backlog();
            self.peer = Peer::Viewer(View::Behind);
        }
    }

    /// Sends a whole screen, after which the viewer is up to date.
    pub(crate) fn paint(&mut self, screen: &[u8]) {
        self.send_screen(screen);
        self.peer = Peer::Viewer(View::Live);
    }

    pub(crate) fn is_to_be_painted(&self) -> bool {
        self.peer == Peer::Viewer(View::Behind) && self.queue.is_empty()
    }

    /// True of a viewer whose terminal answers the program.
    pub(crate) fn is_attached(&self) -> bool {
        self.seat == Seat::Whole && matches!(self.peer, Peer::Viewer(View::Live | View::Behind))
    }

    /// The screen has another size: a viewer that does not size it is told, and painted anew.
    pub(crate) fn tell_window(&mut self, window: Window) {
        if self.seat != Seat::Whole && matches!(self.peer, Peer::Viewer(View::Live | View::Behind))
        {
            self.drop_backlog();
            self.send(News::Window { window });
            self.peer = Peer::Viewer(View::Behind);
        }
    }

    pub(crate) fn is_reading(&self) -> bool {
        matches!(self.life, Life::Open | Life::Until { is_ending: false, .. })
    }

    pub(crate) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.life == Life::Closed
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        match self.life {
            Life::Until { at, .. } => Some(at),
            Life::Open | Life::Closed => None,
        }
    }

    /// Closes what has outstayed its time, or has been told everything before its end.
    pub(crate) fn tick(&mut self, now: Instant) {
        let Life::Until { at, is_ending } = self.life else { return };
        if now >= at || (is_ending && self.queue.is_empty()) {
            self.life = Life::Closed;
        }
    }

    /// Sends what the peer takes now.
    pub(crate) fn flush(&mut self) {
        while let Some(front) = self.queue.front() {
            match self.stream.write(&front.bytes[self.sent..]) {
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.life = Life::Closed;
                    return self.queue.clear();
                }
            }
        }
    }

    fn advance(&mut self, count: usize) {
        self.sent += count;
        let length = self.queue.front().map_or(0, |front| front.bytes.len());
        if self.sent >= length {
            self.queue.pop_front();
            self.queued -= length;
            self.sent = 0;
        }
    }

    fn send_screen(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(FRAME_MAX) {
            let frame =
                Frame::<News>::Bytes(part.to_vec()).encode().expect("a part fits in a frame");
            self.enqueue(frame, true);
        }
    }

    fn enqueue(&mut self, bytes: Vec<u8>, is_screen: bool) {
        if self.is_closed() {
            return;
        }
        self.queued += bytes.len();
        self.queue.push_back(Outgoing { bytes, is_screen });
        if self.queued > QUEUE_MAX && !is_screen {
            self.life = Life::Closed;
        }
    }

    /// Forgets screen bytes, but not the rest of a frame whose beginning is sent.
    fn drop_backlog(&mut self) {
        let is_begun = self.sent > 0;
        let mut index = 0;
        self.queue.retain(|outgoing| {
            let keep = !outgoing.is_screen || (is_begun && index == 0);
            index += 1;
            keep
        });
        self.queued = self.queue.iter().map(|outgoing| outgoing.bytes.len()).sum();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;

    #[test]
    fn a_slow_viewer_falls_behind_and_whole_frames_still_arrive() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("sets");
        let mut viewer = Connection::new(1, ours, clock::now() + Duration::from_secs(9));
        viewer.welcome(Peer::Viewer(View::Live));
        for _ in 0..1000 {
            viewer.show(&[b'x'; 4000]);
            viewer.flush();
        }
        assert_eq!(viewer.peer, Peer::Viewer(View::Behind));
        assert!(viewer.queued <= SCREEN_MAX);

        theirs.set_nonblocking(true).expect("sets");
        let mut decoder = Decoder::default();
        let mut chunk = [0; 65536];
        let mut take = |viewer: &mut Connection| {
            while let Ok(count) = theirs.read(&mut chunk) {
                decoder.feed(&chunk[..count]);
                viewer.flush();
            }
        };
        while !viewer.is_to_be_painted() {
            take(&mut viewer);
        }
        viewer.paint(b"the screen");
        viewer.flush();
        take(&mut viewer);
        let mut last = None;
        while let Some(frame) = decoder.next::<News>().expect("frames stay whole") {
            last = Some(frame);
        }
        assert!(last == Some(Frame::Bytes(b"the screen".to_vec())), "the last frame is the screen");
    }
}
