//! What a request asks for, checked.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Query;
use axum::http::StatusCode;
use axum::http::header::HeaderMap;
use tokio::sync::OwnedSemaphorePermit;

use crate::doors;
use crate::refusal::Refusal;
use crate::state::Web;

pub(crate) type Asked = Query<BTreeMap<String, String>>;

/// Room for an answer that goes on.
pub(crate) fn place(web: &Web) -> Result<OwnedSemaphorePermit, Refusal> {
    web.streams.clone().try_acquire_owned().map_err(|_| {
        let message = "too many pages are open at once";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_pages", message)
    })
}

/// When an answer that goes on has to end, whatever else there is to say.
pub(crate) type Over = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Returns once the session of this request is over.
pub(crate) fn signed_out(web: &Arc<Web>, headers: &HeaderMap) -> Over {
    let (web, secret) = (web.clone(), doors::bearer(headers).unwrap_or_default().to_owned());
    Box::pin(async move { web.signed_out(&secret).await })
}

/// The id of a run as the page has it: no name, and nothing that leads elsewhere.
pub(crate) fn checked(run: &str) -> Result<&str, Refusal> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&run.len()) && run.bytes().all(is_id) {
        return Ok(run);
    }
    Err(Refusal::new(StatusCode::BAD_REQUEST, "bad_request", "this is no id of a run"))
}

/// The name of a trigger, which becomes a part of a path or of a query.
pub(crate) fn named(trigger: &str) -> Result<&str, Refusal> {
    let is_fine = |c: char| !c.is_control() && !matches!(c, '/' | '?' | '#' | '%' | '&');
    if (1..=200).contains(&trigger.len()) && trigger.chars().all(is_fine) {
        return Ok(trigger);
    }
    Err(Refusal::new(StatusCode::BAD_REQUEST, "bad_request", "this is no name of a trigger"))
}

pub(crate) fn number(asked: &BTreeMap<String, String>, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(text) = asked.get(name) else { return Ok(None) };
    let bad = |_| {
        let message = format!("{name} has to be a number");
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", &message)
    };
    text.parse().map(Some).map_err(bad)
}
