//! One HTTP connection to the daemon, over its unix socket.
//!
//! Sends one question at a time and says what became of the question; whether to ask again is the session's business.

use std::fmt::Display;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use outlast_wire::api::{ErrorBody, ErrorInfo, TOKEN_HEADER, VIA_HEADER};
use outlast_wire::words::{Code, Word};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::ask::Ask;
use crate::problem::Problem;

pub struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// The task that moves the bytes; it ends with the connection.
    _driver: JoinSet<()>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failed {
    /// The connection broke. The daemon may have acted on the question or not.
    Lost(String),
    Answered(Problem),
}

impl Failed {
    fn lost(error: impl Display) -> Self {
        Self::Lost(error.to_string())
    }
}

impl Connection {
    pub(crate) async fn open(stream: UnixStream) -> Result<Self, Failed> {
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(Failed::lost)?;
        let mut driver = JoinSet::new();
        // The caller that awaits the answer sees the broken connection too, and reports it.
        driver.spawn(async move { drop(connection.with_upgrades().await) });
        Ok(Self { sender, _driver: driver })
    }

    /// Sends a question and waits for the head of a good answer.
    pub(crate) async fn send(&mut self, ask: &Ask) -> Result<Response<Incoming>, Failed> {
        let answer = timeout(ask.patience, async {
            self.sender.ready().await?;
            self.sender.send_request(request(ask)).await
        });
        let response = answer.await.map_err(|_| too_slow(ask))?.map_err(Failed::lost)?;
        let status = response.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let body = collect(ask, response).await?;
        let info = error_info(status, &body);
        // A daemon that is leaving did not act on the question; its successor will. An order that timed out is still
        // with its run: asked again, it would wait behind itself.
        if status == StatusCode::SERVICE_UNAVAILABLE && info.code != Code::TimedOut {
            return Err(Failed::Lost(info.message));
        }
        Err(Failed::Answered(Problem::answered(status.as_u16(), info)))
    }

    /// Sends a question and reads the whole of a good answer.
    pub async fn fetch(&mut self, ask: &Ask) -> Result<Bytes, Failed> {
        let response = self.send(ask).await?;
        collect(ask, response).await
    }
}

/// An answer whose body is still being written, and the connection that carries the body.
pub struct Reply {
    connection: Connection,
    response: Response<Incoming>,
}

/// Both directions of a connection that no longer speaks HTTP.
pub type Duplex = TokioIo<Upgraded>;

impl Reply {
    pub(crate) fn new(connection: Connection, response: Response<Incoming>) -> Self {
        Self { connection, response }
    }

    pub fn has_header(&self, name: &str) -> bool {
        self.response.headers().contains_key(name)
    }

    /// The value of a header; `None` if there is none, or it is not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next bytes of the body; `None` when the body is whole.
    pub async fn more(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        let frame = self.response.frame().await?;
        Some(frame.map(|frame| frame.into_data().unwrap_or_default()))
    }

    /// Both directions, once the daemon has switched protocols; `None` if the connection broke before.
    pub async fn upgraded(self) -> Option<Duplex> {
        let upgraded = hyper::upgrade::on(self.response).await.ok();
        drop(self.connection);
        upgraded.map(TokioIo::new)
    }
}

async fn collect(ask: &Ask, response: Response<Incoming>) -> Result<Bytes, Failed> {
    let body = timeout(ask.patience, response.into_body().collect()).await;
    Ok(body.map_err(|_| too_slow(ask))?.map_err(Failed::lost)?.to_bytes())
}

fn too_slow(ask: &Ask) -> Failed {
    let seconds = ask.patience.as_secs();
    let problem = Problem::unreachable(format_args!("no answer within {seconds} s"));
    Failed::Answered(
        problem.hint("read why, or end a daemon that hangs:\noutlast doctor\noutlast daemon stop"),
    )
}

fn request(ask: &Ask) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(&ask.method)
        .uri(&ask.target)
        .header(HOST, "outlast")
        .header(ACCEPT, ask.accept);
    if !ask.body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    if let Some(token) = &ask.token {
        request = request.header(TOKEN_HEADER, token);
    }
    if let Some(via) = &ask.via {
        request = request.header(VIA_HEADER, via);
    }
    if let Some(protocol) = ask.upgrade {
        request = request.header(CONNECTION, "Upgrade").header(UPGRADE, protocol);
    }
    request.body(Full::new(ask.body.clone())).expect("paths and queries are encoded")
}

fn error_info(status: StatusCode, body: &[u8]) -> ErrorInfo {
    serde_json::from_slice::<ErrorBody>(body).map_or_else(
        |_| ErrorInfo {
            code: Word::of("unreadable_answer"),
            message: format!("the daemon answered {status} without saying why"),
            hint: None,
            run: None,
            problems: Vec::new(),
        },
        |body| body.error,
    )
}
