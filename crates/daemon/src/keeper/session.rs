//! A conversation with a living shim, from Hello until the stream ends.

use std::io;
use std::path::Path;
use std::time::Duration;

use outlast_engine::{Custody, Input, Step, StopMode};
use outlast_wire::hook;
use outlast_wire::shim::{Decoder, Frame, News, Order, Record, Role};
use outlast_wire::version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::launch::GRACE_MS;
use super::{Work, records};
use crate::conductor::Message;
use crate::socket::ShortPath;

/// A shim answers within this, or it is asked again later.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Session {
    stream: UnixStream,
    decoder: Decoder,
    pub(super) shim_pid: u32,
    pub(super) records: Vec<Record>,
    pub(super) output_bytes: u64,
    /// True if this daemon started the shim itself.
    pub(super) is_ours: bool,
}

impl Session {
    pub(super) async fn connect(socket: &Path, epoch: u64) -> io::Result<Self> {
        let short = ShortPath::of(socket)?;
        let stream = UnixStream::connect(short.path()).await?;
        Self::over(stream, epoch, None).await
    }

    /// Says Hello, and `then` what can be said at once, and hears how things are.
    pub(super) async fn over(
        stream: UnixStream,
        epoch: u64,
        then: Option<Order>,
    ) -> io::Result<Self> {
        tokio::time::timeout(ANSWER_WITHIN, Self::greet(stream, epoch, then)).await?
    }

    async fn greet(stream: UnixStream, epoch: u64, then: Option<Order>) -> io::Result<Self> {
        let mut session = Self {
            stream,
            decoder: Decoder::default(),
            shim_pid: 0,
            records: Vec::new(),
            output_bytes: 0,
            is_ours: false,
        };
        session.say(Order::Hello { proto: version::SHIM, epoch, role: Role::Daemon }).await?;
        if let Some(order) = then {
            session.say(order).await?;
            hook!("daemon.start-sent");
        }
        match session.hear().await? {
            Some(News::Hello { proto, .. }) if proto < version::OLDEST_SHIM => {
                Err(io::Error::other(format!(
                    "shim protocol {proto} is older than {}",
                    version::OLDEST_SHIM
                )))
            }
            Some(News::Hello { pid, records, output_bytes, .. }) => {
                Ok(Self { shim_pid: pid, records, output_bytes, ..session })
            }
            Some(other) => Err(io::Error::other(format!("a shim answered Hello with {other:?}"))),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    pub(super) async fn say(&mut self, order: Order) -> io::Result<()> {
        let frame = Frame::Message(order).encode().map_err(io::Error::other)?;
        self.stream.write_all(&frame).await
    }

    /// The next news; `None` when the shim has gone. Safe to drop halfway.
    async fn hear(&mut self) -> io::Result<Option<News>> {
        let mut chunk = [0; 2048];
        loop {
            match self.decoder.next().map_err(io::Error::other)? {
                Some(Frame::Message(news)) => return Ok(Some(news)),
                Some(Frame::Bytes(_)) => continue,
                None => {}
            }
            match self.stream.read(&mut chunk).await? {
                0 => return Ok(None),
                count => self.decoder.feed(&chunk[..count]),
            }
        }
    }
}

/// How a step is named to its shim: an errand is of turn 0.
pub(super) fn on_the_wire(step: Step) -> (u32, u32) {
    match step {
        Step::Attempt { turn, attempt } => (turn, attempt),
        Step::Errand { errand } => (0, errand),
    }
}

impl Work {
    /// Talks with the shim until it is gone.
    pub(super) async fn meet(&mut self, mut session: Session) {
        self.tries = 0;
        self.say_no_trouble().await;
        if let Err(error) = self.converse(&mut session).await
            && !records::is_over(&session.records)
        {
            tracing::warn!(run = %self.task.run.id, %error, "lost the shim");
        }
    }

    /// What is to be stopped is not started first.
    pub(super) fn start_order(&self) -> Option<Order> {
        let ((turn, attempt), epoch) = (on_the_wire(self.task.step), self.supervisor.epoch);
        self.stop.borrow().is_none().then_some(Order::Start { turn, attempt, epoch })
    }

    async fn converse(&mut self, session: &mut Session) -> io::Result<()> {
        let (step, epoch) = (self.task.step, self.supervisor.epoch);
        self.say_shim(Some(session.shim_pid)).await;
        hook!("daemon.shim-hello");
        if !records::is_begun(&session.records) {
            // One that we have launched has heard it with our Hello.
            if let Some(order) = self.start_order().filter(|_| !session.is_ours) {
                session.say(order).await?;
            }
        } else if !session.is_ours && !self.has_met {
            hook!("daemon.adopted");
            let input = Input::Adopted { step, epoch };
            self.post(Message::Input { input, done: None }).await;
        }
        // Whoever is met again after a lost connection was ours already.
        self.has_met = true;
        // What a shim could not end by itself is news as long as nobody has ordered anything.
        let is_ordered = self.stop.borrow().is_some();
        let mut stops_before = if is_ordered { records::failed_stops(&session.records) } else { 0 };
        self.report(Custody::Shim, &session.records, stops_before).await;
        self.order(session, &mut stops_before).await?;
        // Whoever looked before the shim was met has not heard of what was written since.
        self.handle.output.bytes.send_replace(session.output_bytes);
        let mut followers = self.handle.output.followers.subscribe();
        let mut is_armed = false;
        loop {
            if *followers.borrow_and_update() > 0 && !is_armed {
                session.say(Order::WatchOutput { after: session.output_bytes }).await?;
                is_armed = true;
            }
            tokio::select! {
                news = session.hear() => match news? {
                    None => return Ok(()),
                    Some(News::Output { bytes }) => {
                        is_armed = false;
                        session.output_bytes = bytes;
                        self.handle.output.bytes.send_replace(bytes);
                    }
                    Some(News::Record { record }) => {
                        session.records.push(record);
                        self.report(Custody::Shim, &session.records, stops_before).await;
                    }
                    Some(News::Disk { problem: Some(problem) }) => self.say_trouble("disk_full", problem).await,
                    Some(News::Disk { problem: None }) => self.say_no_trouble().await,
                    Some(News::Refused { code, message }) => {
                        return Err(io::Error::other(format!("refused ({code:?}): {message}")));
                    }
                    Some(News::Hello { .. }) => {}
                },
                changed = self.stop.changed() => match changed {
                    Ok(()) => self.order(session, &mut stops_before).await?,
                    Err(_let_go) => return Ok(()),
                },
                _ = followers.changed() => {}
            }
        }
    }

    /// Passes on the stop that is ordered, if one is.
    async fn order(&mut self, session: &mut Session, stops_before: &mut usize) -> io::Result<()> {
        let grace_ms = match *self.stop.borrow_and_update() {
            None => return Ok(()),
            Some(StopMode::Gracefully) => GRACE_MS,
            Some(StopMode::Now) => 0,
        };
        *stops_before = records::failed_stops(&session.records);
        session.say(Order::Stop { grace_ms }).await?;
        hook!("daemon.stop-sent");
        Ok(())
    }
}
