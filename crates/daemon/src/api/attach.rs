//! A terminal, carried: the client's bytes to the shim and the shim's to the client, untouched.

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use outlast_wire::api::TTY_UPGRADE;
use outlast_wire::codes::Code;
use outlast_wire::shim::{Frame, Order, Role, Window};
use outlast_wire::version;
use serde::Deserialize;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::Daemon;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::find::{resolve, snapshot_of};
use outlast_home::socket::ShortPath;

#[derive(Deserialize, utoipa::IntoParams)]
pub(crate) struct AttachQuery {
    rows: u16,
    cols: u16,
}

#[utoipa::path(get, path = "/v1/runs/{run}/attach", params(("run" = String, Path), AttachQuery),
    responses((status = 101, description = "upgraded to `outlast-tty`: frames of the shim protocol in both directions")))]
pub(crate) async fn attach(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<AttachQuery>,
    request: Request,
) -> Answer<Response<Body>> {
    let id = resolve(&supervisor, &run).await?;
    if request.headers().get(UPGRADE).is_none_or(|to| to != TTY_UPGRADE) {
        return Err(bad_request(format!("attaching needs `Upgrade: {TTY_UPGRADE}`")));
    }
    let seen = snapshot_of(&supervisor, &id).await?;
    let live = seen.run.live().filter(|_| seen.run.spec.tty.is_some());
    let Some(live) = live else {
        let refusal = Refusal::new(
            Code::NoTerminal,
            format!("run {id} has no terminal to attach to just now"),
        );
        return Err(refusal.hint(format!("`outlast logs {id}` shows what it printed")));
    };
    let socket = supervisor.ground.layout.run(id.as_str()).attempt(live.turn, live.number).socket();
    let window = Window { rows: query.rows.max(1), cols: query.cols.max(1) };
    let mut shim =
        dial(&socket, supervisor.ground.lineage.shim_epoch(), window).await.map_err(|error| {
            Refusal::new(
                Code::NoTerminal,
                format!("the terminal of run {id} does not answer: {error}"),
            )
            .hint("try again in a moment")
        })?;
    let upgrade = hyper::upgrade::on(request);
    #[expect(clippy::disallowed_methods, reason = "ends when either side does")]
    let _carrier = tokio::spawn(async move {
        match upgrade.await {
            Ok(client) => {
                let carried =
                    tokio::io::copy_bidirectional(&mut TokioIo::new(client), &mut shim).await;
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

/// A connection to the shim on which the screen is already on its way.
async fn dial(socket: &std::path::Path, epoch: u64, window: Window) -> std::io::Result<UnixStream> {
    let short = ShortPath::of(socket)?;
    let mut stream = UnixStream::connect(short.path()).await?;
    for order in
        [Order::Hello { proto: version::SHIM, epoch, role: Role::Viewer }, Order::Attach { window }]
    {
        let frame = Frame::Message(order).encode().map_err(std::io::Error::other)?;
        stream.write_all(&frame).await?;
    }
    Ok(stream)
}
