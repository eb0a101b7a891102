//! The few things that may be asked over TCP. The control API is not among them and never will be.
//!
//! Probes, and what comes in by webhooks, each signed with its own secret.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use outlast_wire::codes::Code;

use super::{error, hooks, probes};
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;

/// What the TCP listener serves. `/metrics` wants the token if there is one.
pub(crate) fn router(supervisor: Arc<Supervisor>, token: Option<String>) -> Router {
    let metrics = async move |state: State<Arc<Supervisor>>, headers: HeaderMap| -> Response {
        match token.as_deref() {
            Some(token) if !bears(&headers, token) => unauthorized(),
            _ => probes::metrics(state).await.into_response(),
        }
    };
    Router::new()
        .route("/healthz", get(probes::healthz))
        .route("/readyz", get(probes::readyz))
        .route("/metrics", get(metrics))
        .route("/hooks/{trigger}", post(hooks::receive))
        .fallback(nothing_else)
        .method_not_allowed_fallback(error::wrong_method)
        .with_state(supervisor)
}

fn bears(headers: &HeaderMap, token: &str) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.split_once(' '));
    given.is_some_and(|(scheme, given)| {
        scheme.eq_ignore_ascii_case("bearer") && is_same(given.trim().as_bytes(), token.as_bytes())
    })
}

/// Takes as long for a token that is almost right as for any other of its length.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    given.len() == token.len()
        && given.iter().zip(token).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

fn unauthorized() -> Response {
    let refusal = Refusal::new(Code::Unauthorized, "this needs the token of listen.token")
        .hint("send it as `Authorization: Bearer TOKEN`");
    ([(WWW_AUTHENTICATE, "Bearer")], refusal).into_response()
}

async fn nothing_else(uri: axum::http::Uri) -> Refusal {
    let message = format!("there is no {} here", uri.path());
    let hint = "runs are looked at and ordered about over the unix socket only";
    Refusal::new(Code::UnknownPath, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_opens() {
        let bears_it = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().expect("a header"));
            bears(&headers, "t0ken")
        };
        assert!(bears_it("Bearer t0ken") && bears_it("bearer  t0ken"));
        for wrong in ["Bearer t0ke", "Bearer t0kenn", "Bearer", "Basic t0ken", "t0ken", "Bearer "] {
            assert!(!bears_it(wrong), "{wrong}");
        }
        assert!(!bears(&HeaderMap::new(), "t0ken"));
    }
}
