//! One request to somebody's web server: bounded in time and in what is read, without redirects.
//!
//! What goes wrong is told without the URL, of which everything but the host may be secret. The machine's
//! roots are read when the first `https` URL is used.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use outlast_engine::Time;
use outlast_workflow::notify::base64;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::{Outcome, text};

/// What is read of an answer.
const LARGEST_ANSWER: usize = 64 << 10;
/// What is told of it.
const MOST_TOLD: usize = 200;
/// Names that are looked up at the same time.
const LOOKUPS: usize = 4;

pub(crate) struct Post<'a> {
    pub(crate) url: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    /// The beginning of it.
    pub(crate) body: String,
}

/// Posts, and answers with what the server says or why nobody does.
pub(crate) async fn post(post: &Post<'_>, within: Duration) -> Result<Answer, String> {
    match tokio::time::timeout(within, exchange(post)).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(format!("no answer within {} ms", within.as_millis())),
    }
}

/// What an answer means for a notice.
pub(super) fn outcome(answer: Result<Answer, String>, now: Time) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return Outcome::failed(why),
    };
    let retry_after_ms = answer.retry_after.as_deref().and_then(|text| retry_after_ms(text, now));
    let said = text::one_line(&text::clipped(&answer.body, MOST_TOLD));
    let why = match said.is_empty() {
        true => format!("it answered {}", answer.status),
        false => format!("it answered {}: {said}", answer.status),
    };
    match answer.status {
        200..=299 => Outcome::Delivered { said: format!("it answered {}", answer.status) },
        300..=399 => Outcome::Failed {
            why: format!("it answered {}: redirects are not followed", answer.status),
            retry_after_ms,
        },
        410 => Outcome::Gone { why },
        408 | 429 => Outcome::Failed { why, retry_after_ms },
        400..=499 => Outcome::Refused { why, retry_after_ms },
        _ => Outcome::Failed { why, retry_after_ms },
    }
}

/// Seconds, or a date.
fn retry_after_ms(text: &str, now: Time) -> Option<u64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds.saturating_mul(1000));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .relaxed_weekday(true)
        .parse_timestamp(text)
        .ok()?;
    let at_ms = u64::try_from(at.as_millisecond()).ok()?;
    Some(at_ms.saturating_sub(now.0))
}

async fn exchange(post: &Post<'_>) -> Result<Answer, String> {
    let uri: Uri = post.url.parse().map_err(|_| "its URL is not one".to_owned())?;
    let host = uri.host().ok_or("its URL has no host")?.to_owned();
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err("its URL is neither http nor https".to_owned()),
    };
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let request = request(post, &uri)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = connect(&bare, port).await?;
    if is_tls {
        let name =
            ServerName::try_from(bare).map_err(|_| format!("{host} is not a name for TLS"))?;
        let connector = TlsConnector::from(trusting().await?);
        let stream = connector
            .connect(name, stream)
            .await
            .map_err(|error| format!("no TLS with {host}: {error}"))?;
        return talk(stream, request).await;
    }
    talk(stream, request).await
}

fn request(post: &Post<'_>, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let authority = uri.authority().ok_or("its URL has no host")?.as_str();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let body = Bytes::from(post.body.clone());
    let mut request = Request::post(target)
        .header(HOST, host)
        .header("user-agent", concat!("outlast/", env!("CARGO_PKG_VERSION")))
        .header("content-type", "application/json")
        .header("connection", "close")
        .header(CONTENT_LENGTH, body.len());
    if let Some(user) = user {
        let basic = format!("Basic {}", base64::encode(unescaped(user).as_slice()));
        request = request.header(AUTHORIZATION, secret(&basic)?);
    }
    for (name, value) in &post.headers {
        let name: HeaderName =
            name.parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
        // One of the operator's own takes the place of ours.
        if let Some(headers) = request.headers_mut() {
            headers.insert(name, secret(value)?);
        }
    }
    request.body(Full::new(body)).map_err(|_| "the request cannot be made".to_owned())
}

/// What is not printed by anybody who prints headers.
fn secret(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| "the value of a header is not one line of text".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

/// `%XX` as the byte it stands for.
fn unescaped(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    plain
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let addresses = match host.parse() {
        Ok(address) => vec![std::net::SocketAddr::new(address, port)],
        Err(_) => lookup(host, port).await?,
    };
    let mut why = format!("{host} has no address");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => why = format!("cannot connect to {host}:{port}: {error}"),
        }
    }
    Err(why)
}

/// On a thread of its own: the resolver blocks for as long as it likes, and must hold up no other reader.
async fn lookup(host: &str, port: u16) -> Result<Vec<std::net::SocketAddr>, String> {
    static ROOM: Semaphore = Semaphore::const_new(LOOKUPS);
    let room = ROOM.acquire().await.map_err(|error| error.to_string())?;
    let (answer, answered) = oneshot::channel();
    let name = host.to_owned();
    let ask = move || {
        use std::net::ToSocketAddrs;
        let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect);
        // Whoever asked may have run out of time; the thread has its room until it ends.
        drop(answer.send(found));
        drop(room);
    };
    let spawned = std::thread::Builder::new().name("lookup".to_owned()).spawn(ask);
    spawned.map_err(|error| format!("no thread to look up {host}: {error}"))?;
    let found: std::io::Result<Vec<_>> =
        answered.await.map_err(|_| format!("looking up {host} died"))?;
    found.map_err(|error| format!("cannot find {host}: {error}"))
}

async fn talk(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answer, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| format!("cannot talk HTTP: {error}"))?;
    let mut connection = pin!(connection);
    let mut asked = pin!(async move {
        let answer =
            sender.send_request(request).await.map_err(|error| format!("no answer: {error}"))?;
        let status = answer.status().as_u16();
        let retry_after = answer.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        // The status is the answer; what follows it is only for people, and may be cut off.
        let body = Limited::new(answer.into_body(), LARGEST_ANSWER).collect().await;
        let body = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
        Ok(Answer { status, retry_after, body: body.unwrap_or_default() })
    });
    tokio::select! {
        biased;
        answer = &mut asked => return answer,
        // A connection may be over before everything it brought has been read.
        _over = &mut connection => {}
    }
    asked.await
}

/// Whom this machine trusts: read once, on a thread that may wait for the disk.
async fn trusting() -> Result<Arc<ClientConfig>, String> {
    static TRUST: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = TRUST.get() {
        return Ok(config.clone());
    }
    let read = tokio::task::spawn_blocking(read_roots).await;
    let config = read.map_err(|error| format!("reading the machine's roots died: {error}"))??;
    Ok(TRUST.get_or_init(|| config).clone())
}

fn read_roots() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("this machine trusts nobody: no root certificates found {why}"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("no TLS: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<&str>) -> Outcome {
        let retry_after = retry_after.map(str::to_owned);
        outcome(Ok(Answer { status, retry_after, body: String::new() }), Time(784_111_777_000))
    }

    #[test]
    fn a_status_says_whose_fault_it_is() {
        assert!(matches!(answer(204, None), Outcome::Delivered { .. }));
        assert!(matches!(answer(302, None), Outcome::Failed { .. }));
        assert!(matches!(answer(400, None), Outcome::Refused { .. }));
        assert!(matches!(answer(410, None), Outcome::Gone { .. }));
        for status in [408, 429, 500, 503] {
            assert!(matches!(answer(status, None), Outcome::Failed { .. }), "{status}");
        }
    }

    #[test]
    fn a_server_may_ask_to_be_left_alone_in_seconds_or_until_a_date() {
        let asked = |text| match answer(503, Some(text)) {
            Outcome::Failed { retry_after_ms, .. } => retry_after_ms,
            other => panic!("{other:?}"),
        };
        assert_eq!(asked("120"), Some(120_000));
        assert_eq!(asked("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60_000));
        assert_eq!(asked("Sun, 06 Nov 1994 08:40:00 GMT"), Some(0));
        assert_eq!(asked("soon"), None);
    }

    #[test]
    fn who_we_are_goes_into_a_header_and_not_onto_the_line() {
        let post = Post {
            url: "https://me:p%40ss@example.org:8443/a?b=c",
            headers: vec![("X-Team", "a".to_owned())],
            body: "{}".to_owned(),
        };
        let request = request(&post, &post.url.parse().unwrap()).unwrap();
        assert_eq!(request.uri(), "/a?b=c");
        assert_eq!(request.headers()[HOST], "example.org:8443");
        let basic = format!("Basic {}", base64::encode(b"me:p@ss"));
        assert_eq!(request.headers()[AUTHORIZATION], basic.as_str());
        assert!(!format!("{request:?}").contains(&basic));
    }
}
