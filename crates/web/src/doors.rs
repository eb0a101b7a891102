//! The doors: what every request has to have before any handler sees it, and what every answer carries.
//!
//! In this order: a `Host` that is exactly one of ours (421), an `Origin` from our list if there is one (403), a fetch
//! from our own page (403), and then, for everything below `/api` but the exchange of a code, the secret of a session
//! (401) and a JSON body (415). A read-only link opens the routes below `/api/s` and no other (403).
//! A person whom a proxy names may do what the role allows (403). A WebSocket has to name our origin, and has a
//! ticket instead of the secret. `Origin` is never compared with `Host`: a name that was rebound makes the two equal. There is no cookie, and no answer lets
//! another origin read it.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, REFERRER_POLICY, SEC_WEBSOCKET_PROTOCOL,
};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::access::Who;
use crate::names::only;
use crate::people::{self, Caller};
use crate::refusal::Refusal;
use crate::shares::Grant;
use crate::state::Web;

/// The one route below `/api` that a browser without a session may use.
pub(crate) const EXCHANGE: &str = "/api/session";
/// WebSockets: each needs an origin and a ticket.
pub(crate) const TERMINALS: &str = "/api/tty/";

/// What a read-only link opens: the run is the link's, so no address here names one.
pub(crate) const SHARED: &str = "/api/s/";

/// The pages of links in notices.
const TAPS: &str = "/a/";
const TAP_POLICY: &str = "default-src 'none'; style-src 'self'; base-uri 'none'; \
     form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    (
        "permissions-policy",
        "camera=(), clipboard-read=(), display-capture=(), fullscreen=(), geolocation=(), hid=(), \
         microphone=(), midi=(), payment=(), serial=(), usb=()",
    ),
];

pub(crate) async fn pass(
    State(web): State<Arc<Web>>,
    mut request: Request,
    next: Next,
) -> Response {
    let (is_api, is_tap) = (is_api(&request), request.uri().path().starts_with(TAPS));
    let mut response = match judge(&web, &request) {
        Err(refusal) => refusal.into_response(),
        Ok(standing) => {
            match standing {
                Some(Standing::Holder(grant)) => drop(request.extensions_mut().insert(grant)),
                Some(Standing::Person(caller)) => drop(request.extensions_mut().insert(caller)),
                None => {}
            }
            next.run(request).await
        }
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if is_tap {
        // The page has one form, and no script. Its browser has to say by which origin it was posted.
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(TAP_POLICY));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("strict-origin"));
    }
    if is_api || !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

/// The secret that a request carries.
pub(crate) fn bearer(headers: &HeaderMap) -> Option<&str> {
    only(headers, &AUTHORIZATION)?.strip_prefix("Bearer ")
}

/// The ticket that a WebSocket brings: a name among its protocols, since no address may hold it.
pub(crate) fn ticket(headers: &HeaderMap) -> Option<&str> {
    let mut names = only(headers, &SEC_WEBSOCKET_PROTOCOL)?.split(',').map(str::trim);
    names.find_map(|name| name.strip_prefix("ticket."))
}

/// By what right a request came in.
enum Standing {
    /// The session of a person, who may do what the role allows.
    Person(Caller),
    /// A read-only link to one run.
    Holder(Grant),
}

/// How the request stands; `None` of one that needs nothing to be let in.
fn judge(web: &Web, request: &Request) -> Result<Option<Standing>, Refusal> {
    let headers = request.headers();
    if !web.names.is_for_us(request) {
        return Err(Refusal::silent(StatusCode::MISDIRECTED_REQUEST));
    }
    if !web.names.is_from_us(headers) {
        return Err(Refusal::silent(StatusCode::FORBIDDEN));
    }
    if !is_api(request) {
        return Ok(None);
    }
    let site = HeaderName::from_static("sec-fetch-site");
    if headers.contains_key(&site) && only(headers, &site) != Some("same-origin") {
        return Err(Refusal::silent(StatusCode::FORBIDDEN));
    }
    let path = request.uri().path();
    if path.starts_with(TERMINALS) {
        // A socket is no fetch: the browser lets any page open one, and only says which page it was.
        return match (headers.contains_key(ORIGIN), ticket(headers).is_some()) {
            (false, _) => Err(Refusal::silent(StatusCode::FORBIDDEN)),
            (true, false) => Err(no_session()),
            (true, true) => Ok(None),
        };
    }
    if let Some(proxy) = &web.proxy {
        proxy.refuse_two(headers)?;
    }
    let is_exchange = path == EXCHANGE && request.method() == Method::POST;
    let standing = if is_exchange { None } else { Some(standing(web, request)?) };
    let is_json = only(headers, &CONTENT_TYPE) == Some("application/json");
    if request.method() != Method::GET && !is_json {
        let message = "the body has to be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "bad_request", message));
    }
    Ok(standing)
}

/// A session opens what its person may do, but not the routes of links; a link opens those only.
fn standing(web: &Web, request: &Request) -> Result<Standing, Refusal> {
    let (headers, path) = (request.headers(), request.uri().path());
    let secret = bearer(headers).ok_or_else(no_session)?;
    let is_shared = path.starts_with(SHARED);
    if let Some(grant) = web.grant(secret) {
        let message = "a read-only link shows its run and nothing else";
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "not_shared", message);
        return if is_shared { Ok(Standing::Holder(grant)) } else { Err(refusal) };
    }
    if is_shared {
        let message = "the link is over, or was revoked";
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "no_session", message));
    }
    let caller = match web.admit(secret).ok_or_else(no_session)? {
        Who::Owner => Caller::owner(),
        // The session is the page's; that the person is still the same is the proxy's to say, each time.
        Who::Named(name) => {
            let named = web.named(headers)?.filter(|caller| caller.is(&name));
            named.ok_or_else(no_session)?
        }
    };
    caller.need(people::needed(request.method(), path))?;
    Ok(Standing::Person(caller))
}

fn no_session() -> Refusal {
    Refusal::new(StatusCode::UNAUTHORIZED, "no_session", "this browser has no session")
        .hint("outlast web url prints a link that opens one")
}

/// True of everything that is not the page itself. A path that only looks like ours is no route, whatever this says.
fn is_api(request: &Request) -> bool {
    let path = request.uri().path();
    path == "/api" || path.starts_with("/api/")
}
