//! What a request has to have before its body is read. Pure.
//!
//! In this order: a `Host` that is exactly one of ours (421), no `Origin` but our own (403), the token of the run (401), our
//! one path (404), POST (405), JSON (415). Other users of the machine reach the port, and so do the pages of a browser: the
//! one has no token, the other says where it comes from.

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use sha2::{Digest, Sha256};

/// The one path.
pub(super) const PATH: &str = "/mcp";

type Hash = [u8; 32];

pub(super) struct Doors {
    /// As a client may call us.
    names: [String; 2],
    token: Hash,
}

impl Doors {
    pub(super) fn new(port: u16, token: &str) -> Self {
        Self {
            names: ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}")),
            token: hash(token),
        }
    }

    /// The status of a refusal, and why.
    pub(super) fn judge(&self, head: &Parts) -> Result<(), (StatusCode, &'static str)> {
        if !self.is_for_us(head) {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "this is not the host that was asked for",
            ));
        }
        if head.headers.contains_key(ORIGIN) && !self.is_from_us(&head.headers) {
            return Err((StatusCode::FORBIDDEN, "pages of a browser are not served"));
        }
        let token = only(&head.headers, &AUTHORIZATION).and_then(|it| it.strip_prefix("Bearer "));
        if !token.is_some_and(|token| is_same(&hash(token), &self.token)) {
            return Err((StatusCode::UNAUTHORIZED, "the bearer token is the run's OUTLAST_TOKEN"));
        }
        if head.uri.path() != PATH {
            return Err((StatusCode::NOT_FOUND, "there is only /mcp"));
        }
        // No stream that a client opens by itself, and no session that it could end.
        if head.method != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "a message is a POST"));
        }
        let kind = only(&head.headers, &CONTENT_TYPE).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, "a message is application/json"));
        }
        Ok(())
    }

    /// A name that another address was given would be in `Host`, and in the address of a request that has a whole one.
    fn is_for_us(&self, head: &Parts) -> bool {
        let ours = |name: &str| self.names.iter().any(|it| it.eq_ignore_ascii_case(name));
        only(&head.headers, &HOST).is_some_and(ours)
            && head.uri.authority().is_none_or(|name| ours(name.as_str()))
    }

    fn is_from_us(&self, headers: &HeaderMap) -> bool {
        let name = only(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        name.is_some_and(|name| self.names.iter().any(|ours| ours == name))
    }
}

/// The value of a header that is there once.
pub(super) fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn hash(secret: &str) -> Hash {
    Sha256::digest(secret.as_bytes()).into()
}

/// Takes the same time wherever the two differ.
fn is_same(one: &Hash, other: &Hash) -> bool {
    one.iter().zip(other).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that is let in, but for what is said.
    fn judged(method: &str, target: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = hyper::Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).expect("a request").into_parts();
        Doors::new(80, "s3cret").judge(&head).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:80");
    const TOKEN: (&str, &str) = ("authorization", "Bearer s3cret");
    const JSON: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn each_door_is_shut_by_itself() {
        let post = |headers: &[(&str, &str)]| judged("POST", "/mcp", headers);
        assert_eq!(post(&[HOST, TOKEN, JSON]), 200);
        assert_eq!(post(&[("host", "LOCALHOST:80"), TOKEN, JSON]), 200);
        let typed = ("content-type", "Application/JSON; charset=utf-8");
        assert_eq!(post(&[HOST, TOKEN, typed, ("origin", "http://localhost:80")]), 200);
        for host in
            ["127.0.0.1", "127.0.0.1:81", "localhost", "evil.example:80", "127.0.0.1:80 ", ""]
        {
            assert_eq!(post(&[("host", host), TOKEN, JSON]), 421, "{host}");
        }
        assert_eq!(post(&[TOKEN, JSON]), 421);
        assert_eq!(post(&[HOST, HOST, TOKEN, JSON]), 421, "two hosts are none");
        assert_eq!(judged("POST", "http://evil.example/mcp", &[HOST, TOKEN, JSON]), 421);
        for origin in [
            "null",
            "http://evil.example",
            "http://127.0.0.1:81",
            "https://127.0.0.1:80",
            "file://",
        ] {
            assert_eq!(post(&[HOST, TOKEN, JSON, ("origin", origin)]), 403, "{origin}");
        }
        for token in [
            "",
            "Bearer ",
            "Bearer s3cre",
            "Bearer s3crets",
            "bearer s3cret",
            "Basic s3cret",
            "s3cret",
        ] {
            assert_eq!(post(&[HOST, ("authorization", token), JSON]), 401, "{token}");
        }
        assert_eq!(post(&[HOST, JSON]), 401);
        assert_eq!(post(&[HOST, TOKEN, TOKEN, JSON]), 401, "two tokens are none");
        for method in ["GET", "DELETE", "PUT", "OPTIONS", "HEAD"] {
            assert_eq!(judged(method, "/mcp", &[HOST, TOKEN]), 405, "{method}");
            assert_eq!(judged(method, "/mcp", &[HOST]), 401, "{method}");
        }
        assert_eq!(judged("POST", "/", &[HOST, TOKEN, JSON]), 404);
        assert_eq!(post(&[HOST, TOKEN, ("content-type", "text/plain")]), 415);
    }
}
