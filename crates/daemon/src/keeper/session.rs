//! A conversation with a living shim, from Hello until the stream ends.

use std::io;
use std::path::Path;
use std::time::Duration;

use outlast_engine::{Custody, Input, Step, StopMode};
use outlast_wire::codes::Code;
use outlast_wire::hook;
use outlast_wire::shim::{Decoder, Frame, News, Order, Record, Refusal, Role};
use outlast_wire::version;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::GRACE_MS;
use super::pulse::{ANSWER_WITHIN_MS, Do, Pulse};
use super::{Work, orphan, records};
use crate::mailbox::Message;
use crate::world::process::Who;
use outlast_home::socket::ShortPath;

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

/// Why a shim is asked whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asker {
    Client,
    Order,
}

/// How a shim was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tended {
    Well,
    TakenOver,
}

pub(super) const NO_ANSWER: &str = "its shim is alive and does not answer";

impl Work {
    /// Talks with the shim until it is gone, or has to be done without.
    pub(super) async fn meet(&mut self, mut session: Session) {
        self.silent_since_ms = None;
        self.say_no_trouble().await;
        if let Err(error) = self.converse(&mut session).await
            && !records::is_over(&session.records)
        {
            tracing::warn!(run = %self.task.run.id, %error, "lost the shim");
        }
    }

    /// What is to be stopped is not started first.
    pub(super) fn start_order(&self) -> Option<Order> {
        let ((turn, attempt), epoch) =
            (on_the_wire(self.task.step), self.ground.lineage.shim_epoch());
        self.stop.borrow().is_none().then_some(Order::Start { turn, attempt, epoch })
    }

    async fn converse(&mut self, session: &mut Session) -> io::Result<()> {
        let (step, epoch) = (self.task.step, self.ground.epoch);
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
        self.remember(&session.records);
        // What a shim could not end by itself is news as long as nobody has ordered anything.
        let is_ordered = self.stop.borrow().is_some();
        let mut stops_before = if is_ordered { records::failed_stops(&session.records) } else { 0 };
        self.report(Custody::Shim, &session.records, stops_before).await;
        let mut pulse = Pulse::new(self.ground.world.awake_ms());
        self.order(session, &mut pulse, &mut stops_before).await?;
        // Whoever looked before the shim was met has not heard of what was written since.
        self.handle.output.bytes.send_replace(session.output_bytes);
        let mut followers = self.handle.output.followers.subscribe();
        let output = self.handle.output.clone();
        let mut is_armed = false;
        loop {
            if *followers.borrow_and_update() > 0 && !is_armed {
                session.say(Order::WatchOutput { after: session.output_bytes }).await?;
                is_armed = true;
            }
            let overdue = self.overdue(&session.records);
            if self.tend(session, &mut pulse, overdue.is_some()).await? == Tended::TakenOver {
                self.taken_over = Some(overdue.flatten());
                return Ok(());
            }
            let look_in = self.look_in(&pulse, &session.records);
            tokio::select! {
                news = session.hear() => match self.heard(news?, &mut pulse).await {
                    None => return Ok(()),
                    Some(News::Output { bytes }) => {
                        is_armed = false;
                        session.output_bytes = bytes;
                        self.handle.output.bytes.send_replace(bytes);
                    }
                    Some(News::Record { record }) => {
                        session.records.push(record);
                        self.remember(&session.records);
                        self.report(Custody::Shim, &session.records, stops_before).await;
                    }
                    Some(News::Disk { problem: Some(problem) }) => self.say_trouble(Code::DiskFull.word(), problem).await,
                    Some(News::Disk { problem: None }) => self.say_no_trouble().await,
                    Some(News::Refused { code, message }) => {
                        return Err(io::Error::other(format!("refused ({code:?}): {message}")));
                    }
                    Some(News::Hello { .. }) => {}
                },
                changed = self.stop.changed() => match changed {
                    Ok(()) => self.order(session, &mut pulse, &mut stops_before).await?,
                    Err(_let_go) => return Ok(()),
                },
                _ = followers.changed() => self.ask(session, &mut pulse, Asker::Client).await?,
                () = output.asked.notified() => self.ask(session, &mut pulse, Asker::Client).await?,
                () = orphan::after(look_in) => {}
            }
        }
    }

    /// Notes that the shim has said something: one that had been called unreachable is no longer.
    async fn heard(&self, news: Option<News>, pulse: &mut Pulse) -> Option<News> {
        if news.is_some() && pulse.heard(self.ground.world.awake_ms()) {
            self.say_no_trouble().await;
        }
        news
    }

    /// Has the shim say that it is there: it answers each Hello.
    async fn ask(&self, session: &mut Session, pulse: &mut Pulse, asker: Asker) -> io::Result<()> {
        if pulse.wants_to_know(self.ground.world.awake_ms(), asker == Asker::Order) {
            self.greet_again(session).await?;
        }
        Ok(())
    }

    async fn greet_again(&self, session: &mut Session) -> io::Result<()> {
        let epoch = self.ground.lineage.shim_epoch();
        session.say(Order::Hello { proto: version::SHIM, epoch, role: Role::Daemon }).await
    }

    /// Does what the shim's silence asks for.
    async fn tend(
        &mut self,
        session: &mut Session,
        pulse: &mut Pulse,
        is_due: bool,
    ) -> io::Result<Tended> {
        while let Some(what) = pulse.due(self.ground.world.awake_ms(), is_due) {
            match what {
                Do::Ask => self.greet_again(session).await?,
                Do::SayUnreachable => self.say_trouble("unreachable", NO_ANSWER).await,
                Do::Wake => orphan::wake(&self.marks(None)),
                Do::TakeOver => return Ok(Tended::TakenOver),
            }
        }
        Ok(Tended::Well)
    }

    /// When to look at the shim again, if nothing happens before: when its silence is to be acted on, or when a
    /// limit is reached that it should have ended the step for.
    fn look_in(&self, pulse: &Pulse, records: &[Record]) -> Option<Duration> {
        let (now, awake_ms) = (self.ground.world.steady(), self.ground.world.awake_ms());
        let is_due = self.overdue(records).is_some();
        let pulse_in = pulse.wake_at(is_due).map(|at_ms| at_ms.saturating_sub(awake_ms));
        let limit_in = self.limit_due(records).filter(|_| !is_due);
        let limit_in = limit_in.map(|(at, _)| at.ms_since(now).max(1));
        pulse_in.into_iter().chain(limit_in).min().map(Duration::from_millis)
    }

    /// Keeps what the shim has told, and notes its main process beside the step's directory.
    fn remember(&mut self, records: &[Record]) {
        let is_new = records::identity(&self.told).is_none() && self.journalled_process().is_none();
        self.told = records.to_vec();
        let main = records::identity(records).filter(|_| is_new);
        let main = main.map(|it| Who { pid: it.pid, start: it.start });
        if let Some(error) = main.and_then(|main| self.note_launched(Some(main)).err()) {
            // The journal is about to know it, too.
            tracing::warn!(run = %self.task.run.id, %error, "cannot note the main process of a step");
        }
    }

    /// Passes on the stop that is ordered, if one is.
    async fn order(
        &mut self,
        session: &mut Session,
        pulse: &mut Pulse,
        stops_before: &mut usize,
    ) -> io::Result<()> {
        let grace_ms = match *self.stop.borrow_and_update() {
            None => return Ok(()),
            Some(StopMode::Gracefully) => GRACE_MS,
            Some(StopMode::Now) => 0,
        };
        *stops_before = records::failed_stops(&session.records);
        session.say(Order::Stop { grace_ms }).await?;
        hook!("daemon.stop-sent");
        self.ask(session, pulse, Asker::Order).await
    }
}
