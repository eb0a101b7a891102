//! A run's output, from any byte on, as it stands or as it grows.
//!
//! Read from the attempt's files, so a client's pace is its own affair: nothing waits for it but this.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_engine::{RunId, Time, Tree};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_wire::api::{FRAMES, OutputFrame};
use outlast_wire::codes::Code;
use outlast_wire::output::Stream;
use serde::Deserialize;
use tokio::sync::{mpsc, watch};

use super::Daemon;
use super::extract::{Path, Query};
use crate::lanes::blocking;
use crate::mailbox::Following;
use crate::mailbox::Handle;
use crate::mailbox::Snapshot;
use crate::output::{Piece, Reader};
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::find::resolve;
use crate::runs::heard::Heard;
use crate::supervisor::Supervisor;
use crate::sync::lock;
use crate::world::file_watch::{FileWatch, Heed};
use crate::world::files;

/// After so long a transcript is looked at again, whether or not the kernel has said that it was written to.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OutputQuery {
    /// Only this turn.
    turn: Option<u32>,
    /// Only this attempt of each turn.
    attempt: Option<u32>,
    /// The first byte, within the first attempt that is sent.
    offset: Option<u64>,
    /// Go on until the run has ended.
    follow: Option<bool>,
    /// Only the last lines, of all attempts together.
    tail: Option<u64>,
    /// Only what arrived at this time or later (RFC 3339).
    since: Option<String>,
    /// `stdout` or `stderr`.
    stream: Option<String>,
    /// At most so many bytes; then the answer ends.
    limit: Option<u64>,
}

/// Returns the output of a run, or follows it
///
/// Read from the files of its attempts, from any byte on.
#[utoipa::path(get, operation_id = "read_output", path = "/v1/runs/{run}/output", params(OutputQuery),
    responses((status = 200, description = "the bytes as they were printed; or frames, if `application/vnd.outlast.output` is accepted", content((String = "application/octet-stream"), (String = "application/vnd.outlast.output")))))]
pub(crate) async fn read(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<OutputQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let id = resolve(&supervisor, &run).await?;
    let wanted = Wanted::parse(&query)?;
    stream_of(supervisor, id, wanted, &headers).await
}

/// The bytes that are wanted, as an answer that is written while they are read.
pub(super) async fn stream_of(
    supervisor: Arc<Supervisor>,
    id: RunId,
    wanted: Wanted,
    headers: &HeaderMap,
) -> Answer<Response> {
    let is_framed = headers.get(ACCEPT).is_some_and(|accept| accept == FRAMES);
    let heard = Arc::new(Mutex::new(Heard::default()));
    let attempts = {
        let (supervisor, id, wanted) = (supervisor.clone(), id.clone(), wanted.clone());
        let heard = heard.clone();
        blocking(move || {
            attempts(&supervisor, &id, &wanted, &heard).map_err(|error| {
                let message = format!("the {} of run {id} cannot be read: {error}", wanted.what);
                Refusal::new(Code::OutputUnreadable, message)
            })
        })
        .await?
    };
    if attempts.is_empty() && (wanted.turn.is_some() || wanted.attempt.is_some()) && !wanted.follow
    {
        return Err(Refusal::new(Code::UnknownAttempt, format!("run {id} has no such attempt"))
            .hint(format!("outlast events {id}")));
    }
    let (send, receive) = mpsc::channel(4);
    let left = AtomicU64::new(wanted.limit.unwrap_or(u64::MAX));
    let feed = Feed { supervisor, id, wanted, is_framed, heard, left, send };
    #[expect(clippy::disallowed_methods, reason = "ends when its client goes or the output does")]
    let _feeder = tokio::spawn(feed.run());
    let chunks = stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|chunk| (chunk, receive))
    });
    let kind = if is_framed { FRAMES } else { "application/octet-stream" };
    Ok(([(CONTENT_TYPE, kind)], Body::from_stream(chunks)).into_response())
}

/// Which file of an attempt is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum What {
    #[default]
    Output,
    /// The lines between a driver and its agent.
    Transcript,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Output => "output",
            Self::Transcript => "transcript",
        })
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) what: What,
    pub(super) turn: Option<u32>,
    pub(super) attempt: Option<u32>,
    pub(super) offset: Option<u64>,
    pub(super) follow: bool,
    pub(super) tail: Option<u64>,
    pub(super) since: Option<Time>,
    pub(super) stream: Option<Stream>,
    pub(super) limit: Option<u64>,
}

impl Wanted {
    /// The file that is read, if the attempt has it.
    fn open(&self, dir: &AttemptDir) -> std::io::Result<Option<Reader>> {
        match self.what {
            What::Output => Reader::open(dir),
            What::Transcript => Reader::of_transcript(dir),
        }
    }

    fn parse(query: &OutputQuery) -> Answer<Self> {
        let stream = match query.stream.as_deref() {
            None => None,
            Some("stdout") => Some(Stream::Stdout),
            Some("stderr") => Some(Stream::Stderr),
            Some(other) => {
                return Err(bad_request(format!("{other:?} is neither `stdout` nor `stderr`")));
            }
        };
        let since = match &query.since {
            None => None,
            Some(text) => Some(time(text)?),
        };
        Ok(Self {
            what: What::Output,
            turn: query.turn,
            attempt: query.attempt,
            offset: query.offset,
            follow: query.follow.unwrap_or(false),
            tail: query.tail,
            since,
            stream,
            limit: query.limit,
        })
    }
}

fn time(text: &str) -> Answer<Time> {
    let at: jiff::Timestamp =
        text.parse().map_err(|error| bad_request(format!("{text:?} is not a time: {error}")))?;
    Ok(Time(u64::try_from(at.as_millisecond()).unwrap_or(0)))
}

/// The attempts that have a directory, or have started as the journal says, and are wanted, in order. A directory
/// that cannot be read, for want of a descriptor perhaps, is not one without attempts.
pub(super) fn attempts(
    supervisor: &Supervisor,
    id: &RunId,
    wanted: &Wanted,
    heard: &Mutex<Heard>,
) -> std::io::Result<Vec<(u32, u32)>> {
    let mut heard = lock(heard);
    heard.read_on(&*supervisor.ground.store, id).map_err(std::io::Error::other)?;
    let mut attempts: Vec<(u32, u32)> = files::names(&supervisor.ground.layout.run(id.as_str()).0)?
        .iter()
        .filter_map(|name| AttemptDir::step_of(name.to_str()?))
        .chain(heard.attempts())
        .filter(|(turn, attempt)| {
            wanted.turn.is_none_or(|only| only == *turn)
                && wanted.attempt.is_none_or(|only| only == *attempt)
        })
        .collect();
    attempts.sort_unstable();
    attempts.dedup();
    Ok(attempts)
}

/// Where the last lines begin that are wanted: in the first of the attempts that are left, with so many lines of it.
fn tail_of(
    run: &RunDir,
    wanted: &Wanted,
    mut attempts: VecDeque<(u32, u32)>,
) -> std::io::Result<Beginning> {
    let Some(mut left) = wanted.tail else { return Ok(Beginning { attempts, tail: None }) };
    let (mut first, mut lines) = (attempts.len().saturating_sub(1), left);
    for (index, (turn, attempt)) in attempts.iter().enumerate().rev() {
        (first, lines) = (index, left);
        let found = match wanted.open(&run.attempt(*turn, *attempt))? {
            Some(mut reader) => reader.seek_tail(left, wanted.stream)?,
            None => 0,
        };
        left -= found.min(left);
        if left == 0 {
            break;
        }
    }
    attempts.drain(..first);
    Ok(Beginning { attempts, tail: Some(lines) })
}

/// What is sent first: these attempts, and of the first of them no more than the last lines.
struct Beginning {
    attempts: VecDeque<(u32, u32)>,
    tail: Option<u64>,
}

/// Where the output of an attempt is entered.
#[derive(Debug, Clone, Copy)]
struct Entry {
    is_first: bool,
    tail: Option<u64>,
}

/// The client has gone, cannot be told more, or has as many bytes as it asked for.
struct Gone;

struct Feed {
    supervisor: Arc<Supervisor>,
    id: RunId,
    wanted: Wanted,
    is_framed: bool,
    heard: Arc<Mutex<Heard>>,
    /// Bytes that may still be sent.
    left: AtomicU64,
    send: mpsc::Sender<Result<Bytes, std::io::Error>>,
}

impl Feed {
    async fn run(self) {
        let handle = self.supervisor.handle(&self.id);
        let _following = handle.clone().filter(|_| self.wanted.follow).map(Following::new);
        if self.feed(handle).await.is_ok() || self.left.load(Ordering::Relaxed) == 0 {
            let _gone = self.frame(&OutputFrame::End, &[]).await;
        }
    }

    async fn feed(&self, mut handle: Option<Handle>) -> Result<(), Gone> {
        let mut last = None;
        let Beginning { attempts: mut known, mut tail } = self.beginning().await?;
        loop {
            let is_run_over = handle
                .as_ref()
                .is_none_or(|handle| handle.snapshot.borrow().run.ended_at.is_some());
            if known.is_empty() {
                known = self.attempts_after(last).await?;
            }
            match known.pop_front() {
                Some(attempt) => {
                    let entry = Entry { is_first: last.is_none(), tail: tail.take() };
                    self.attempt(attempt, entry, &mut handle).await?;
                    last = Some(attempt);
                }
                None if is_run_over || !self.wanted.follow => return Ok(()),
                None => {
                    // What comes from now on is wanted whole.
                    tail = None;
                    let handle = handle.as_mut().expect("a run without a conductor is over");
                    let seen = handle.snapshot.borrow_and_update().run.seq();
                    self.until(handle.snapshot.clone(), |snapshot| snapshot.run.seq() > seen)
                        .await?;
                }
            }
        }
    }

    async fn beginning(&self) -> Result<Beginning, Gone> {
        let known = self.attempts_after(None).await?;
        let run = self.supervisor.ground.layout.run(self.id.as_str());
        let wanted = self.wanted.clone();
        self.blocking(move || tail_of(&run, &wanted, known)).await
    }

    /// Looked for only when all that were known are sent: a loop may have had thousands.
    async fn attempts_after(&self, last: Option<(u32, u32)>) -> Result<VecDeque<(u32, u32)>, Gone> {
        let (supervisor, id, wanted) =
            (self.supervisor.clone(), self.id.clone(), self.wanted.clone());
        let heard = self.heard.clone();
        self.blocking(move || {
            let all = attempts(&supervisor, &id, &wanted, &heard)?.into_iter();
            Ok(all.filter(|attempt| last.is_none_or(|last| *attempt > last)).collect())
        })
        .await
    }

    /// All of one attempt.
    async fn attempt(
        &self,
        attempt: (u32, u32),
        entry: Entry,
        handle: &mut Option<Handle>,
    ) -> Result<(), Gone> {
        let (turn, number) = attempt;
        self.frame(&OutputFrame::Attempt { turn, attempt: number }, &[]).await?;
        let mut reader = None;
        // Watched before it is read, so that nothing is written in between unseen.
        let writes = self.writes(attempt);
        loop {
            // Asked before reading: what ended before is whole on disk.
            let is_over = !self.wanted.follow
                || handle.as_ref().is_none_or(|handle| is_past(&handle.snapshot.borrow(), attempt));
            let is_settled =
                handle.as_ref().is_none_or(|it| is_settled(&it.snapshot.borrow(), attempt));
            let mut bytes = handle.as_ref().map(|handle| handle.output.bytes.subscribe());
            reader = match reader {
                Some(reader) => Some(reader),
                None => self.begin(attempt, entry, is_settled).await?,
            };
            if let Some(open) = reader {
                let drained = self.drain(open).await?;
                // What the index does not know by now, it will never know.
                reader = Some(if is_settled { self.drain_rest(drained).await? } else { drained });
            }
            if is_over && (reader.is_none() || is_settled) {
                return self.gone(attempt).await;
            }
            if is_over {
                return Ok(());
            }
            let (Some(handle), Some(bytes)) = (handle.as_mut(), bytes.as_mut()) else {
                return Ok(());
            };
            self.until_more(handle, bytes, writes.as_ref(), attempt).await?;
        }
    }

    /// Opens the output, and says where it was entered: a client that loses us before anything came goes
    /// on from there, and not from wherever the last lines are by then.
    async fn begin(
        &self,
        attempt: (u32, u32),
        entry: Entry,
        is_settled: bool,
    ) -> Result<Option<Reader>, Gone> {
        let reader = self.open(attempt, entry, is_settled).await?;
        if reader.as_ref().is_some_and(Reader::is_damaged) {
            self.damaged().await?;
        }
        let is_narrowed = self.wanted.tail.is_some() || self.wanted.since.is_some();
        if let Some(reader) = reader.as_ref().filter(|_| is_narrowed) {
            let offset = reader.offset();
            self.frame(&OutputFrame::Data { offset, stream: Stream::Stdout, at_ms: 0 }, &[])
                .await?;
        }
        Ok(reader)
    }

    async fn open(
        &self,
        (turn, attempt): (u32, u32),
        entry: Entry,
        is_settled: bool,
    ) -> Result<Option<Reader>, Gone> {
        let dir = self.supervisor.ground.layout.run(self.id.as_str()).attempt(turn, attempt);
        let wanted = self.wanted.clone();
        self.blocking(move || {
            let Some(reader) = wanted.open(&dir)? else { return Ok(None) };
            let mut reader = if is_settled { reader.settled()? } else { reader };
            match wanted {
                Wanted { stream, .. } if let Some(lines) = entry.tail => {
                    reader.seek_tail(lines, stream)?;
                }
                Wanted { since: Some(since), .. } => reader.seek_time(since)?,
                Wanted { offset: Some(offset), .. } if entry.is_first => reader.seek(offset)?,
                _ => {}
            }
            Ok(Some(reader))
        })
        .await
    }

    /// Sends what there is.
    async fn drain(&self, mut reader: Reader) -> Result<Reader, Gone> {
        loop {
            let was_damaged = reader.is_damaged();
            let (back, piece) = self
                .blocking(move || {
                    let piece = reader.next()?;
                    Ok((reader, piece))
                })
                .await?;
            reader = back;
            let is_damaged = reader.is_damaged();
            if is_damaged && !was_damaged {
                self.damaged().await?;
            }
            match piece {
                Piece::End => return Ok(reader),
                Piece::Gap { from, to } => self.gap(from, to).await?,
                Piece::Data { stream, .. }
                    if !is_damaged && self.wanted.stream.is_some_and(|only| only != stream) => {}
                Piece::Data { offset, stream, at, mut bytes } => {
                    let left = self.left.load(Ordering::Relaxed);
                    bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                    self.frame(&OutputFrame::Data { offset, stream, at_ms: at.0 }, &bytes).await?;
                    let left = left.saturating_sub(bytes.len() as u64);
                    self.left.store(left, Ordering::Relaxed);
                    if left == 0 {
                        return Err(Gone);
                    }
                }
            }
        }
    }

    /// Sends what the index has left out.
    async fn drain_rest(&self, mut reader: Reader) -> Result<Reader, Gone> {
        let was_damaged = reader.is_damaged();
        let reader = self
            .blocking(move || {
                reader.finish()?;
                Ok(reader)
            })
            .await?;
        if reader.is_damaged() == was_damaged {
            return Ok(reader);
        }
        self.damaged().await?;
        self.drain(reader).await
    }

    async fn damaged(&self) -> Result<(), Gone> {
        tracing::warn!(run = %self.id, "the index of an output is damaged; its bytes are shown without it");
        self.frame(&OutputFrame::Damaged, &[]).await
    }

    /// Says that there is no log, unless there was nothing in it; or that it is shorter than it was.
    async fn gone(&self, attempt: (u32, u32)) -> Result<(), Gone> {
        let (turn, number) = attempt;
        let dir = self.supervisor.ground.layout.run(self.id.as_str()).attempt(turn, number);
        let what = self.wanted.what;
        let (supervisor, id, heard) =
            (self.supervisor.clone(), self.id.clone(), self.heard.clone());
        let lost = self
            .blocking(move || {
                let mut heard = lock(&heard);
                heard.read_on(&*supervisor.ground.store, &id).map_err(std::io::Error::other)?;
                Ok(match what {
                    What::Output => heard.lost(attempt, &dir.output()),
                    What::Transcript => heard.lacks(attempt, &dir.transcript()).then_some(None),
                })
            })
            .await?;
        let Some(bytes) = lost else { return Ok(()) };
        tracing::error!(run = %self.id, turn, attempt = number, ?bytes, ?what, "an output is gone");
        match self.is_framed {
            true => self.frame(&OutputFrame::Gone { bytes }, &[]).await,
            false => {
                let marker = format!("\n[outlast: the {what} of t{turn}.a{number} is gone]\n");
                self.bytes(marker.into()).await
            }
        }
    }

    async fn gap(&self, from: u64, to: u64) -> Result<(), Gone> {
        if self.is_framed {
            return self.frame(&OutputFrame::Gap { from, to }, &[]).await;
        }
        let marker = format!("\n[outlast: {} bytes not kept (offset {from} to {to})]\n", to - from);
        self.bytes(marker.into()).await
    }

    async fn frame(&self, frame: &OutputFrame, data: &[u8]) -> Result<(), Gone> {
        match self.is_framed {
            true => self.bytes(frame.encode(data).into()).await,
            false if data.is_empty() => Ok(()),
            false => self.bytes(data.to_vec().into()).await,
        }
    }

    async fn bytes(&self, bytes: Bytes) -> Result<(), Gone> {
        self.send.send(Ok(bytes)).await.map_err(|_| Gone)
    }

    /// What the kernel says of a file whose writer says nothing to us.
    fn writes(&self, (turn, attempt): (u32, u32)) -> Option<FileWatch> {
        let dir = self.supervisor.ground.layout.run(self.id.as_str()).attempt(turn, attempt);
        match self.wanted.what {
            What::Transcript if self.wanted.follow => {
                // The whole directory, since the file may not be there yet.
                Some(FileWatch::of(&[(&dir.0, Heed::Words)]))
            }
            What::Output | What::Transcript => None,
        }
    }

    /// Waits for more, or for the attempt's end.
    async fn until_more(
        &self,
        handle: &mut Handle,
        bytes: &mut watch::Receiver<u64>,
        writes: Option<&FileWatch>,
        attempt: (u32, u32),
    ) -> Result<(), Gone> {
        let written = async {
            let Some(writes) = writes else { return std::future::pending().await };
            // A host may have no inotify to spare.
            let _late = tokio::time::timeout(LOOK_AGAIN, writes.changed()).await;
        };
        tokio::select! {
            _ = bytes.changed() => Ok(()),
            () = written => Ok(()),
            gone = self.until(handle.snapshot.clone(), |seen| is_past(seen, attempt)) => gone,
        }
    }

    /// Waits until the run looks so, or its conductor is gone; fails when the client or the daemon goes.
    async fn until(
        &self,
        mut snapshot: watch::Receiver<Snapshot>,
        is: impl Fn(&Snapshot) -> bool,
    ) -> Result<(), Gone> {
        let mut leaving = self.supervisor.ground.leaving();
        tokio::select! {
            _ = snapshot.wait_for(|seen| is(seen)) => Ok(()),
            () = self.send.closed() => Err(Gone),
            _ = leaving.wait_for(Option::is_some) => Err(Gone),
        }
    }

    /// Reads from disk; an error ends the answer, and the client is told that it is no lost connection.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, Gone> {
        match blocking(move || Ok(work()?)).await {
            Ok(value) => Ok(value),
            Err(error) => {
                tracing::error!(run = %self.id, message = error.message, "cannot read output");
                let message = error.message;
                let last = match self.is_framed {
                    true => Ok(OutputFrame::Failed { message }.encode(&[]).into()),
                    false => Err(std::io::Error::other(message)),
                };
                let _gone = self.send.send(last).await;
                Err(Gone)
            }
        }
    }
}

/// True if nothing writes to the attempt's output any more.
fn is_settled(snapshot: &Snapshot, attempt: (u32, u32)) -> bool {
    let is_empty = |current: &outlast_engine::Attempt| current.state.tree == Tree::Empty;
    is_past(snapshot, attempt) && snapshot.run.attempt.as_ref().is_none_or(is_empty)
}

fn is_past(snapshot: &Snapshot, (turn, number): (u32, u32)) -> bool {
    match &snapshot.run.attempt {
        Some(current) => {
            (current.turn, current.number) != (turn, number) || current.state.end.is_some()
        }
        None => false,
    }
}
