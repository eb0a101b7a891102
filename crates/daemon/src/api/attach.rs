//! A terminal, carried: the client's bytes to the shim and the shim's to the client, untouched.
//!
//! Who watches gives the terminal no size and answers no question of its program; the shim sees to that. Who wants to
//! type besides is written down first.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{Response, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use outlast_engine::{Input, RunId};
use outlast_wire::api::TTY_UPGRADE;
use outlast_wire::codes::Code;
use outlast_wire::shim::{Decoder, Frame, News, Order, Role, Window};
use outlast_wire::version;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Daemon;
use super::extract::{Path, Query};
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::{resolve, snapshot_of};
use crate::runs::tell::{not_taken, tell};
use crate::supervisor::Supervisor;
use outlast_home::socket::ShortPath;

/// How long a shim may take to say what it is.
const HELLO_WITHIN: Duration = Duration::from_secs(10);

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct AttachQuery {
    /// The height of the client's terminal; needed unless it watches.
    rows: Option<u16>,
    /// The width of it.
    cols: Option<u16>,
    /// Only looks: neither sizes the terminal nor answers what its program asks it, and presses no key.
    #[serde(default)]
    watch: bool,
    /// As `watch`, and may press keys. The journal has it first (`TerminalOpened`); a person's only.
    #[serde(default)]
    keys: bool,
}

/// Attaches to the terminal of a run
///
/// Needs `Upgrade: outlast-tty`.
#[utoipa::path(get, operation_id = "attach", path = "/v1/runs/{run}/attach", params(AttachQuery),
    responses((status = 101, description = "upgraded to `outlast-tty`: frames of the shim protocol in both directions"), (status = 403, description = "`keys` for a caller that is no person")))]
pub(crate) async fn attach(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<AttachQuery>,
    caller: Caller,
    request: Request,
) -> Answer<Response<Body>> {
    let id = resolve(&supervisor, &run).await?;
    if request.headers().get(UPGRADE).is_none_or(|to| to != TTY_UPGRADE) {
        return Err(bad_request(format!("attaching needs `Upgrade: {TTY_UPGRADE}`")));
    }
    let order = order(&query)?;
    let (turn, attempt) = terminal_of(&supervisor, &id).await?;
    let socket = supervisor.ground.layout.run(id.as_str()).attempt(turn, attempt).socket();
    let no_answer = |error: std::io::Error| {
        let message = format!("the terminal of run {id} does not answer: {error}");
        Refusal::new(Code::NoTerminal, message).hint("try again in a moment")
    };
    let epoch = supervisor.ground.lineage.shim_epoch();
    let mut shim = dial(&socket, epoch).await.map_err(no_answer)?;
    // What the shim has said until now is the client's to read, too.
    let mut said = Vec::new();
    if let Order::Watch { keys } = order {
        if !watches(&mut shim, &mut said).await.map_err(no_answer)? {
            let message =
                format!("the shim of run {id} is of an older build and knows no watching");
            return Err(
                Refusal::new(Code::NoTerminal, message).hint(format!("outlast attach {id}"))
            );
        }
        if keys {
            written_down(&supervisor, caller, &id, (turn, attempt)).await?;
        }
    }
    say(&mut shim, order).await.map_err(no_answer)?;
    let upgrade = hyper::upgrade::on(request);
    #[expect(clippy::disallowed_methods, reason = "ends when either side does")]
    let _carrier = tokio::spawn(async move {
        match upgrade.await {
            Ok(client) => {
                let carried = carry(TokioIo::new(client), shim, &said).await;
                tracing::debug!(?carried, "a terminal was detached");
            }
            Err(error) => tracing::warn!(%error, "a client left while attaching"),
        }
    });
    let switching = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, TTY_UPGRADE);
    switching.body(Body::empty()).map_err(|error| bad_request(error.to_string()))
}

async fn carry(
    mut client: TokioIo<Upgraded>,
    mut shim: UnixStream,
    said: &[u8],
) -> std::io::Result<(u64, u64)> {
    client.write_all(said).await?;
    tokio::io::copy_bidirectional(&mut client, &mut shim).await
}

/// What the shim is asked for.
fn order(query: &AttachQuery) -> Answer<Order> {
    match (query.rows, query.cols) {
        _ if query.watch || query.keys => Ok(Order::Watch { keys: query.keys }),
        (Some(rows), Some(cols)) => {
            Ok(Order::Attach { window: Window { rows: rows.max(1), cols: cols.max(1) } })
        }
        _ => Err(bad_request("attaching needs `rows` and `cols`, or `watch=true`".to_owned())),
    }
}

/// The live attempt of a run that has a terminal.
async fn terminal_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<(u32, u32)> {
    let seen = snapshot_of(supervisor, id).await?;
    let live = seen.run.live().filter(|_| seen.run.spec.tty.is_some());
    live.map(|live| (live.turn, live.number)).ok_or_else(|| {
        let message = format!("run {id} has no terminal to attach to just now");
        let hint = format!("for what it printed:\noutlast logs {id}");
        Refusal::new(Code::NoTerminal, message).hint(hint)
    })
}

/// Has the journal say who is going to type, before any key gets through.
async fn written_down(
    supervisor: &Arc<Supervisor>,
    caller: Caller,
    id: &RunId,
    (turn, attempt): (u32, u32),
) -> Answer<()> {
    let by = caller.may(supervisor, Right::Answer, id).await?;
    let before = snapshot_of(supervisor, id).await?.run.seq();
    let after = tell(supervisor, id, Input::TerminalAsked { turn, attempt, by }).await?;
    let is_live = after.live().is_some_and(|live| live.is(turn, attempt));
    if is_live && after.seq() > before { Ok(()) } else { Err(not_taken(id)) }
}

/// A connection to the shim, as a viewer.
async fn dial(socket: &std::path::Path, epoch: u64) -> std::io::Result<UnixStream> {
    let short = ShortPath::of(socket)?;
    let mut stream = UnixStream::connect(short.path()).await?;
    say(&mut stream, Order::Hello { proto: version::SHIM, epoch, role: Role::Viewer }).await?;
    Ok(stream)
}

async fn say(shim: &mut UnixStream, order: Order) -> std::io::Result<()> {
    let frame = Frame::Message(order).encode().map_err(std::io::Error::other)?;
    shim.write_all(&frame).await
}

/// Reads the shim's introduction, which is the first that it says: whether it lets a viewer only watch.
async fn watches(shim: &mut UnixStream, said: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut decoder = Decoder::default();
    let read = async {
        let mut chunk = [0; 4096];
        loop {
            let count = shim.read(&mut chunk).await?;
            if count == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            decoder.feed(&chunk[..count]);
            said.extend_from_slice(&chunk[..count]);
            match decoder.next::<News>().map_err(std::io::Error::other)? {
                Some(Frame::Message(News::Hello { watches, .. })) => return Ok(watches),
                Some(Frame::Message(News::Refused { message, .. })) => {
                    return Err(std::io::Error::other(message));
                }
                Some(_) | None => {}
            }
        }
    };
    timeout(HELLO_WITHIN, read)
        .await
        .map_err(|_| std::io::Error::from(std::io::ErrorKind::TimedOut))?
}
