//! One HTTP request to another server, for notices, pings and traces. It is bounded in time and in what is read, and
//! follows no redirect.
//!
//! Errors do not contain the URL, because everything but its host may be secret. The machine's root certificates are
//! read when the first `https` URL is used.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use outlast_workflow::notify::base64;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use crate::lanes::Lane;

/// What is read of an answer.
const LARGEST_ANSWER: usize = 64 << 10;
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

/// Posts, and answers with what the server says, or why no server does.
pub(crate) async fn post(post: &Post<'_>, within: Duration) -> Result<Answer, String> {
    bounded(exchange(Method::POST, post), within).await
}

/// Asks for a URL in the same way.
pub(crate) async fn get(url: &str, within: Duration) -> Result<Answer, String> {
    let nothing = Post { url, headers: Vec::new(), body: String::new() };
    bounded(exchange(Method::GET, &nothing), within).await
}

/// Why a URL cannot be asked for, if so.
pub(crate) fn refuse(url: &str) -> Option<String> {
    Target::of(url).err()
}

async fn bounded(
    exchange: impl Future<Output = Result<Answer, String>>,
    within: Duration,
) -> Result<Answer, String> {
    match tokio::time::timeout(within, exchange).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(format!("no answer within {} ms", within.as_millis())),
    }
}

/// Where a URL points.
struct Target {
    uri: Uri,
    host: String,
    port: u16,
    is_tls: bool,
}

impl Target {
    fn of(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|_| "its URL is not one".to_owned())?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or("its URL has no host")?;
        let host = host.to_owned();
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("its URL is neither http nor https".to_owned()),
        };
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { uri, host, port, is_tls })
    }
}

async fn exchange(method: Method, post: &Post<'_>) -> Result<Answer, String> {
    let Target { uri, host, port, is_tls } = Target::of(post.url)?;
    let request = request(method, post, &uri)?;
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

fn request(method: Method, post: &Post<'_>, uri: &Uri) -> Result<Request<Full<Bytes>>, String> {
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let authority = uri.authority().ok_or("its URL has no host")?.as_str();
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let body = Bytes::from(post.body.clone());
    let has_body = method == Method::POST;
    let mut request = Request::builder()
        .method(method)
        .uri(target)
        .header(HOST, host)
        .header("user-agent", concat!("outlast/", env!("CARGO_PKG_VERSION")))
        .header("connection", "close");
    if has_body {
        request =
            request.header("content-type", "application/json").header(CONTENT_LENGTH, body.len());
    }
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

/// A value that is not printed when headers are printed.
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
        // The caller may have run out of time; the thread has its room until it ends.
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
    let read = Lane::Surveys.run(read_roots).await;
    let config = read.map_err(|error| format!("reading the machine's roots died: {error}"))??;
    Ok(TRUST.get_or_init(|| config).clone())
}

fn read_roots() -> Result<Arc<ClientConfig>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map(ToString::to_string).unwrap_or_default();
        return Err(format!("this machine trusts no server: no root certificates found {why}"));
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

    #[test]
    fn who_we_are_goes_into_a_header_and_not_onto_the_line() {
        let post = Post {
            url: "https://me:p%40ss@example.org:8443/a?b=c",
            headers: vec![("X-Team", "a".to_owned())],
            body: "{}".to_owned(),
        };
        let request = request(Method::POST, &post, &post.url.parse().unwrap()).unwrap();
        assert_eq!(request.uri(), "/a?b=c");
        assert_eq!(request.headers()[HOST], "example.org:8443");
        let basic = format!("Basic {}", base64::encode(b"me:p@ss"));
        assert_eq!(request.headers()[AUTHORIZATION], basic.as_str());
        assert!(!format!("{request:?}").contains(&basic));
    }

    #[test]
    fn a_url_that_cannot_be_asked_for_is_refused_before_it_is() {
        for good in ["http://h", "https://h/a?b=c", "http://[::1]:4318/", "https://u:p@h/"] {
            assert_eq!(refuse(good), None, "{good}");
        }
        for bad in ["ftp://h/", "h", "", "http://"] {
            assert!(refuse(bad).is_some(), "{bad:?}");
        }
        let place = Target::of("https://[::1]/").expect("a URL");
        assert_eq!((place.host.as_str(), place.port, place.is_tls), ("[::1]", 443, true));
    }
}
