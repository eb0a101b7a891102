//! The terminal of a run, over a WebSocket: its screen as rows of text, and keys if the ticket is for that.
//!
//! The daemon is asked to let this connection watch, so a browser neither sizes the terminal nor answers its program.
//! A ticket for keys has the daemon write down first who is going to type.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::http::header::HeaderMap;
use axum::response::{IntoResponse, Response};
use outlast_client::ask::{Ask, run_path};
use outlast_client::connection::Duplex;
use outlast_client::session::Session;
use outlast_wire::api::TTY_UPGRADE;
use outlast_wire::shim::{Decoder, Frame, News, Order};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout};

use crate::access::Seat;
use crate::asked::{checked, place};
use crate::doors;
use crate::keys::Typed;
use crate::people::{Caller, Role};
use crate::refusal::Refusal;
use crate::screen::Screen;
use crate::state::Web;

/// The protocol of the socket.
const PROTOCOL: &str = "outlast-tty";
/// A screen is sent at most this often.
const BETWEEN: Duration = Duration::from_millis(50);
/// A silent socket is asked whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// How long a browser may leave what was sent to it unread.
const READS_WITHIN: Duration = Duration::from_secs(30);
/// What a page may send at once, in bytes.
const MOST_MESSAGE: usize = 64 * 1024;

#[derive(Deserialize)]
struct Wanted {
    run: String,
    /// To type, not only to look.
    #[serde(default)]
    keys: bool,
}

/// A ticket for the terminal of a run: once, within half a minute.
pub(crate) async fn ticket(
    State(web): State<Arc<Web>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let wanted: Wanted = serde_json::from_slice(&body).map_err(|error| {
        let message = format!("the request cannot be read: {error}");
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", &message)
    })?;
    let secret = doors::bearer(&headers).unwrap_or_default();
    if wanted.keys {
        caller.need(Role::Admin)?;
    }
    let ticket = web.ticket(secret, checked(&wanted.run)?, wanted.keys, &caller)?;
    Ok(Json(json!({ "ticket": ticket })).into_response())
}

/// Opens the socket, for a ticket that is good.
pub(crate) async fn open(
    State(web): State<Arc<Web>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Refusal> {
    let seat = doors::ticket(&headers).and_then(|ticket| web.redeem(ticket, &run));
    let Some(seat) = seat else {
        let message = "the ticket was used, is too old, or is for another run";
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "wrong_ticket", message));
    };
    // Who has a session because a proxy named them is that person only while the proxy says so.
    let is_theirs = seat.via == Caller::owner().via()
        || web.named(&headers)?.is_some_and(|caller| caller.via() == seat.via);
    if !is_theirs {
        let message = "the ticket is another person's";
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "wrong_ticket", message));
    }
    let upgrade = upgrade.map_err(|rejection| {
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", &rejection.body_text())
    })?;
    let place = place(&web)?;
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(MOST_MESSAGE);
    Ok(upgrade.on_upgrade(move |socket| serve(web, seat, socket, place)))
}

async fn serve(web: Arc<Web>, seat: Seat, mut socket: WebSocket, _place: OwnedSemaphorePermit) {
    let over = tokio::select! {
        over = talk(&web, &seat, &mut socket) => over,
        () = web.ended(seat.session) => json!({ "code": "no_session", "message": "the session has ended" }),
    };
    // A browser that is gone needs no farewell.
    if send(&mut socket, Message::text(json!({ "over": over }).to_string())).await {
        send(&mut socket, Message::Close(None)).await;
    }
}

/// Carries the terminal until either side goes; says why it is over.
async fn talk(web: &Web, seat: &Seat, socket: &mut WebSocket) -> serde_json::Value {
    let ask = Ask::get(&run_path(&seat.run, "/attach")).query("watch", true);
    let ask = if seat.keys { ask.query("keys", true) } else { ask };
    let ask = ask.upgrade(TTY_UPGRADE).via(&seat.via);
    let reply = match Session::again(&web.world).open(&ask).await {
        Ok(reply) => reply,
        Err(problem) => return Refusal::from(problem).as_json(),
    };
    let gone = json!({ "code": "gone", "message": "the terminal is gone" });
    let Some(mut terminal) = reply.upgraded().await else { return gone };
    // Not before: now the journal says who types, and the page may say it, too.
    let opened = json!({ "opened": { "keys": seat.keys } });
    if !send(socket, Message::text(opened.to_string())).await {
        return gone;
    }
    let (mut screen, mut decoder) = (Screen::new(), Decoder::default());
    let mut chunk = vec![0; 64 << 10];
    let mut due: Option<Instant> = None;
    loop {
        let next = due.unwrap_or_else(|| Instant::now() + KEEP_ALIVE);
        tokio::select! {
            read = terminal.read(&mut chunk) => match read {
                Ok(count) if count > 0 => {
                    decoder.feed(&chunk[..count]);
                    if take(&mut decoder, &mut screen).is_err() {
                        return gone;
                    }
                    due.get_or_insert_with(|| Instant::now() + BETWEEN);
                }
                Ok(_) | Err(_) => {
                    let _last = say(socket, &mut screen).await;
                    return gone;
                }
            },
            said = socket.recv() => match said {
                Some(Ok(Message::Text(text))) if seat.keys => {
                    if press(&mut terminal, &text, &screen).await.is_err() {
                        return gone;
                    }
                }
                Some(Ok(Message::Text(_))) => {
                    return json!({ "code": "not_allowed", "message": "this page only watches" });
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_))) => {}
                Some(Ok(Message::Close(_)) | Err(_)) | None => return gone,
            },
            () = sleep_until(next) => {
                let is_there = match due.take() {
                    Some(_) => say(socket, &mut screen).await,
                    None => send(socket, Message::Ping(Bytes::new())).await,
                };
                if !is_there {
                    return gone;
                }
            }
        }
    }
}

/// Takes what the shim sent.
fn take(decoder: &mut Decoder, screen: &mut Screen) -> Result<(), outlast_wire::shim::FrameError> {
    while let Some(frame) = decoder.next::<News>()? {
        match frame {
            Frame::Bytes(bytes) => screen.take(&bytes),
            Frame::Message(News::Window { window }) => screen.resize(window),
            Frame::Message(_) => {}
        }
    }
    Ok(())
}

/// Sends what is new on the screen; false if the browser is gone.
async fn say(socket: &mut WebSocket, screen: &mut Screen) -> bool {
    let Some(news) = screen.news() else { return true };
    send(socket, Message::text(news.to_string())).await
}

/// False for a browser that is gone, or does not read.
async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(timeout(READS_WITHIN, socket.send(message)).await, Ok(Ok(())))
}

/// Presses what a person typed. What no terminal sends is nothing.
async fn press(terminal: &mut Duplex, text: &str, screen: &Screen) -> std::io::Result<()> {
    let typed: Option<Typed> = serde_json::from_str(text).ok();
    let Some(bytes) = typed.and_then(|typed| typed.bytes(screen)) else { return Ok(()) };
    let frame: Frame<Order> = Frame::Bytes(bytes);
    terminal.write_all(&frame.encode().map_err(std::io::Error::other)?).await?;
    terminal.flush().await
}
