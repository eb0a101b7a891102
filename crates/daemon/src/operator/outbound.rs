//! One HTTP request to somebody else, within a time.
//!
//! Plain `http://` only: a TLS client is carried where notices are sent, and `https://` belongs behind the same
//! door once it is here.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use outlast_wire::version;
use tokio::net::TcpStream;

/// Where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    host: String,
    port: u16,
    authority: String,
    path: String,
}

impl Target {
    /// The target of a URL, or why there is none.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("not a URL: {error}"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err("https is not spoken here; use http to a local relay".to_owned());
            }
            _ => return Err("it must begin with http://".to_owned()),
        }
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err("a name and a password in it are not sent".to_owned());
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or("it names no host")?;
        let port = uri.port_u16().unwrap_or(80);
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host: bare, port, authority: format!("{host}:{port}"), path })
    }

    /// The same with something more at the end of its path.
    #[cfg(feature = "otlp")]
    pub(super) fn below(mut self, more: &str) -> Self {
        self.path = format!("{}{more}", self.path.trim_end_matches('/'));
        self
    }
}

/// What a request says.
pub(super) enum Say {
    Get,
    #[cfg(feature = "otlp")]
    PostJson(Vec<u8>),
}

/// The status that the other side answered with, or why there is none. The body is not read.
pub(super) async fn send(target: &Target, say: Say, within: Duration) -> Result<u16, String> {
    match tokio::time::timeout(within, exchange(target, say)).await {
        Ok(answer) => answer,
        Err(_elapsed) => Err(format!("no answer within {} s", within.as_secs())),
    }
}

async fn exchange(target: &Target, say: Say) -> Result<u16, String> {
    let told = |error: &dyn std::error::Error| error.to_string();
    let stream = TcpStream::connect((target.host.as_str(), target.port))
        .await
        .map_err(|error| told(&error))?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| told(&error))?;
    let request = request(target, say)?;
    let ask = async move {
        let answer = sender.send_request(request).await;
        answer.map(|response| response.status().as_u16())
    };
    // The connection moves the bytes, and ends once the sender and the answer are gone.
    let (answer, _moved) = tokio::join!(ask, connection);
    answer.map_err(|error| told(&error))
}

fn request(target: &Target, say: Say) -> Result<Request<Full<Bytes>>, String> {
    let (method, body) = match say {
        Say::Get => (Method::GET, Bytes::new()),
        #[cfg(feature = "otlp")]
        Say::PostJson(body) => (Method::POST, body.into()),
    };
    let mut request = Request::builder()
        .method(method)
        .uri(&target.path)
        .header(HOST, &target.authority)
        .header(USER_AGENT, user_agent())
        .header(CONNECTION, "close");
    if !body.is_empty() {
        request = request.header(CONTENT_TYPE, "application/json");
    }
    request.body(Full::new(body)).map_err(|error| error.to_string())
}

fn user_agent() -> String {
    format!("outlast/{}", version::BUILD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let target = Target::parse("http://[::1]:4318/a?b=c").expect("a URL");
        assert_eq!(
            (target.host.as_str(), target.port, target.path.as_str()),
            ("::1", 4318, "/a?b=c")
        );
        assert_eq!(Target::parse("http://h").expect("a URL").authority, "h:80");
        for bad in ["https://h/", "ftp://h/", "h", "", "http://", "http://u:p@h/"] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }
}
