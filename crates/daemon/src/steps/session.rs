//! A connection to a living shim, from Hello until the stream ends.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_conduct::steps::{ANSWER_WITHIN_MS, Say};
use outlast_engine::Step;
use outlast_home::socket::ShortPath;
use outlast_wire::hook;
use outlast_wire::shim::{Decoder, Frame, News, Order, Record, Refusal, Role};
use outlast_wire::version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

use crate::ground::Ground;
use crate::mailbox::OutputWatch;

/// A shim answers within this, or it is asked again later.
const ANSWER_WITHIN: Duration = Duration::from_millis(ANSWER_WITHIN_MS);

/// So long beyond its grace may a tree take to go.
const END_WITHIN: Duration = Duration::from_secs(20);

pub(super) struct Session {
    stream: UnixStream,
    decoder: Decoder,
    pub(super) shim_pid: u32,
    pub(super) records: Vec<Record>,
    pub(super) output_bytes: u64,
    /// True while the shim is to say when there is more output.
    is_armed: bool,
    followers: Option<watch::Receiver<usize>>,
    output: Arc<OutputWatch>,
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
            is_armed: false,
            followers: None,
            output: Arc::default(),
        };
        session.say(Order::Hello { proto: version::SHIM, epoch, role: Role::Daemon }).await?;
        if let Some(order) = then {
            session.say(order).await?;
            hook!("daemon.start-sent");
        }
        match session.hear_hello().await? {
            Some(News::Hello { pid, records, output_bytes, .. }) => {
                Ok(Self { shim_pid: pid, records, output_bytes, ..session })
            }
            Some(News::Refused { code: Refusal::StaleEpoch, .. }) => {
                Err(io::Error::other(StaleEpoch))
            }
            Some(other) => Err(io::Error::other(format!("a shim answered Hello with {other:?}"))),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Orders the tree to end, and waits until the shim has gone or has taken too long.
    pub(super) async fn end(&mut self, grace_ms: u64) -> io::Result<()> {
        self.say(Order::Stop { grace_ms }).await?;
        let within = Duration::from_millis(grace_ms) + END_WITHIN;
        tokio::time::timeout(within, async {
            while self.hear().await?.is_some() {}
            Ok(())
        })
        .await?
    }

    /// A shim that has gone cannot be told anything, but may have said how it ended before: what it said is
    /// heard to its end, and the end of the stream says that it has gone.
    pub(super) async fn say(&mut self, order: Order) -> io::Result<()> {
        let frame = Frame::Message(order).encode().map_err(io::Error::other)?;
        match self.stream.write_all(&frame).await {
            Err(error) if is_hung_up(&error) => Ok(()),
            written => written,
        }
    }

    /// The first news. Which protocol it is in is looked at before the rest of it, which we may not know the words of.
    async fn hear_hello(&mut self) -> io::Result<Option<News>> {
        let Some(said) = self.hear_as::<serde_json::Value>().await? else { return Ok(None) };
        if let Some(proto) = said["proto"].as_u64() {
            must_be_spoken(proto, said["build"].as_str().unwrap_or("unknown"))?;
        }
        serde_json::from_value(said).map(Some).map_err(io::Error::other)
    }

    /// The next news; `None` when the shim has gone. Safe to drop halfway.
    async fn hear(&mut self) -> io::Result<Option<News>> {
        self.hear_as().await
    }

    async fn hear_as<T: serde::de::DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
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

fn is_hung_up(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// A daemon of a higher epoch has been with the shim.
#[derive(Debug, thiserror::Error)]
#[error("the shim has met a daemon of a higher epoch")]
struct StaleEpoch;

pub(super) fn is_stale(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<StaleEpoch>)
}

/// Refuses a shim whose protocol this daemon does not speak, by the name of what it is.
fn must_be_spoken(proto: u64, build: &str) -> io::Result<()> {
    let (oldest, newest) = (u64::from(version::OLDEST_SHIM), u64::from(version::SHIM));
    if (oldest..=newest).contains(&proto) {
        return Ok(());
    }
    let how = if proto < oldest { "older" } else { "newer" };
    let message = format!(
        "its shim is of version {build} and speaks protocol {proto}, {how} than this daemon's {newest}; \
         a daemon of that version can talk to it (outlast daemon restart)"
    );
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// How a step is named to its shim: an errand is of turn 0.
pub(super) fn on_the_wire(step: Step) -> (u32, u32) {
    match step {
        Step::Attempt { turn, attempt } => (turn, attempt),
        Step::Errand { errand } => (0, errand),
    }
}

/// What the monitor says, as the shim reads it.
pub(super) fn order(say: Say, step: Step, ground: &Ground) -> Order {
    let epoch = ground.lineage.shim_epoch();
    let (turn, attempt) = on_the_wire(step);
    match say {
        Say::Hello => Order::Hello { proto: version::SHIM, epoch, role: Role::Daemon },
        Say::Start => Order::Start { turn, attempt, epoch },
        Say::Stop { grace_ms } => Order::Stop { grace_ms },
    }
}

/// What comes from a shim, or from a client that wants to know how it is doing.
pub(super) enum Heard {
    News(News),
    Asked,
    End,
    Lost(io::Error),
}

/// The next that is heard; never comes back without a session. Safe to drop halfway.
pub(super) async fn hear(session: &mut Option<Session>) -> Heard {
    match session {
        Some(session) => session.next().await,
        None => std::future::pending().await,
    }
}

impl Session {
    /// From here on the followers of the output hear how much there is.
    pub(super) fn serve(&mut self, output: Arc<OutputWatch>) {
        // A client that looked before the shim was met has not heard of what was written since.
        output.bytes.send_replace(self.output_bytes);
        self.followers = Some(output.followers.subscribe());
        self.output = output;
    }

    /// Has the shim say when there is more output, if a client follows it.
    pub(super) async fn arm(&mut self) -> io::Result<()> {
        let Some(followers) = &mut self.followers else { return Ok(()) };
        if self.is_armed || *followers.borrow_and_update() == 0 {
            return Ok(());
        }
        self.is_armed = true;
        self.say(Order::WatchOutput { after: self.output_bytes }).await
    }

    async fn next(&mut self) -> Heard {
        let (output, mut followers) = (self.output.clone(), self.followers.clone());
        let heard = tokio::select! {
            news = self.hear() => match news {
                Ok(Some(news)) => Heard::News(news),
                Ok(None) => Heard::End,
                Err(error) => Heard::Lost(error),
            },
            () = changed(&mut followers) => Heard::Asked,
            () = output.asked.notified() => Heard::Asked,
        };
        match &heard {
            Heard::News(News::Output { bytes }) => {
                self.is_armed = false;
                self.output_bytes = *bytes;
                output.bytes.send_replace(*bytes);
            }
            Heard::News(News::Refused { code, message }) => {
                tracing::warn!(shim = self.shim_pid, ?code, message, "a shim refused");
            }
            Heard::News(_) | Heard::Asked | Heard::End | Heard::Lost(_) => {}
        }
        if matches!(heard, Heard::Asked) {
            self.followers = followers;
        }
        heard
    }
}

async fn changed(followers: &mut Option<watch::Receiver<usize>>) {
    let is_changed = match followers {
        Some(followers) => followers.changed().await.is_ok(),
        None => false,
    };
    if !is_changed {
        std::future::pending::<()>().await;
    }
}
