//! What comes in by webhooks. It is kept before it is answered; the run is made afterwards.
//!
//! A caller without the secret learns nothing here: an unknown name gets the same answer always, and
//! a name that is known says only whether the signature was right.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use outlast_store::{Delivery, Error};
use outlast_wire::api::{Received, TriggerSource};
use outlast_wire::codes::Code;
use serde_json::{Map, Value, json};

use super::Daemon;
use super::extract::Path;
use crate::refusal::Refusal;
use crate::triggers;
use crate::triggers::webhook::{self, Proof};

const LARGEST_BODY: usize = 1024 * 1024;
/// Deliveries of one trigger that may wait for their runs.
const MOST_WAITING: u64 = 10_000;
/// For a place among those whose body is being read, and for the body itself.
const ROOM_WITHIN: Duration = Duration::from_secs(5);
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// Of a delivery's head, what its run is told.
const TOLD: [&str; 4] = ["content-type", "user-agent", "x-github-event", "x-gitlab-event"];

/// Takes a delivery for a webhook trigger
///
/// Signed with the secret of the trigger. It is kept before it is answered; the run is made afterwards.
#[utoipa::path(post, operation_id = "receive_delivery", path = "/hooks/{trigger}", request_body(content = Object, description = "up to 1 MiB of anything; JSON is what filters and tasks can look into"),
    responses((status = 202, description = "it is stored, and starts a run", body = Received), (status = 401), (status = 404), (status = 408), (status = 413), (status = 503, description = "nothing was kept; `retry-after` says when to send it again")))]
pub(crate) async fn receive(
    State(supervisor): Daemon,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(entry) = supervisor.triggers.table.entry(&name) else { return unknown() };
    let TriggerSource::Webhook { secret, id_header, equal_bodies, .. } = &entry.brief.source else {
        return unknown();
    };
    let claimed = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    if claimed.is_some_and(|length| length > LARGEST_BODY as u64) {
        return too_large();
    }
    if entry.waiting >= MOST_WAITING {
        return later("too many deliveries are waiting", 60);
    }
    let Ok(Ok(_room)) =
        tokio::time::timeout(ROOM_WITHIN, supervisor.triggers.table.bodies.acquire()).await
    else {
        return later("too many deliveries at once", 5);
    };
    let body = match tokio::time::timeout(BODY_WITHIN, to_bytes(body, LARGEST_BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => return too_large(),
        Err(_) => return refuse(Code::Timeout, "the body did not arrive in time"),
    };
    let header = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
    let now = supervisor.ground.world.now();
    let secret = secret.as_deref().unwrap_or_default();
    let proof = webhook::proof(secret, &header, &body, supervisor.ground.world.now());
    let Some(proof) = proof.filter(|_| !secret.is_empty()) else {
        let message = "not signed with the secret of this trigger";
        return refuse(Code::BadSignature, message);
    };
    let mark = (proof == Proof::OfBody && !equal_bodies).then(|| webhook::body_mark(&body));
    let id = webhook::delivery_id(id_header.as_deref(), &header, &body);
    let item: Value = serde_json::from_slice(&body)
        .unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
    if !entry.filters.iter().all(|filter| filter.holds(&item)) {
        supervisor.triggers.table.with(&name, |entry| entry.filtered += 1);
        return accepted(Received { delivery: id, filtered: true, duplicate: false });
    }
    let told: Map<String, Value> =
        TOLD.iter().filter_map(|name| Some(((*name).to_owned(), header(name)?.into()))).collect();
    let body = json!({ "item": item, "headers": told }).to_string();
    let delivery = Delivery { id: id.clone(), at: now, body };
    let kept = match mark {
        Some(mark) => {
            triggers::keep_unless_marked(&supervisor.triggers, &name, delivery, mark).await
        }
        None => triggers::keep(&supervisor.triggers, &name, vec![delivery], None).await,
    };
    match kept {
        Ok(new) => accepted(Received { delivery: id, duplicate: new == 0, filtered: false }),
        Err(Error::UnknownTrigger { .. }) => unknown(),
        Err(error) => {
            tracing::error!(trigger = name, %error, "a delivery could not be stored");
            later("the delivery could not be stored", 30)
        }
    }
}

fn accepted(received: Received) -> Response {
    (StatusCode::ACCEPTED, Json(received)).into_response()
}

fn unknown() -> Response {
    refuse(Code::UnknownHook, "there is no such webhook")
}

fn too_large() -> Response {
    refuse(Code::TooLarge, "a delivery has at most 1 MiB")
}

/// Nothing was kept: the sender has to send it again.
fn later(message: &str, seconds: u32) -> Response {
    let refused = refuse(Code::Overloaded, message);
    ([(RETRY_AFTER, seconds.to_string())], refused).into_response()
}

fn refuse(code: Code, message: &str) -> Response {
    Refusal::new(code, message).into_response()
}
