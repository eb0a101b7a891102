//! Calls under keys: asked for before they are made, and told when they have ended.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use outlast_wire::api::{BeginCall, CallAnswer, CallRow, EndCall, ResolveCall};

use super::extract::Path;
use super::{Daemon, to_the_end};
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::Caller;
use crate::runs::calls;
use crate::runs::find::{resolve as run_of, snapshot_of};

/// Asks whether a call is to be made
///
/// The intent is durable before the answer. A call that has ended is answered with its result.
#[utoipa::path(post, operation_id = "begin_call", path = "/v1/runs/{run}/calls", request_body = BeginCall,
    responses((status = 200, description = "make it, unless its result is there", body = CallAnswer), (status = 403), (status = 409, description = "the key is another call's, the call is being made, or its end was not observed")))]
pub(crate) async fn begin(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<BeginCall>, JsonRejection>,
) -> Answer<Json<CallAnswer>> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let begun =
        to_the_end(async move { calls::begin(&supervisor, &caller, &run, asked).await }).await?;
    Ok(Json(begun))
}

/// Tells how a call ended
///
/// The result is durable before the answer. Telling it again is harmless.
#[utoipa::path(post, operation_id = "end_call", path = "/v1/runs/{run}/calls/result", request_body = EndCall,
    responses((status = 200, description = "the result is in the journal", body = CallAnswer), (status = 403), (status = 409, description = "no such call is open")))]
pub(crate) async fn end(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<EndCall>, JsonRejection>,
) -> Answer<Json<CallAnswer>> {
    let Json(ended) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let ended =
        to_the_end(async move { calls::end(&supervisor, &caller, &run, ended).await }).await?;
    Ok(Json(ended))
}

/// Says what became of a call whose end was not observed
///
/// A person's order: the effect is there, or the call may be made again. It answers one doubt, by its `seq`, and the
/// same `id` is the same order.
#[utoipa::path(post, operation_id = "resolve_call", path = "/v1/runs/{run}/calls/resolve", request_body = ResolveCall,
    responses((status = 200, description = "it is in the journal", body = CallRow), (status = 403), (status = 409)))]
pub(crate) async fn resolve(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<ResolveCall>, JsonRejection>,
) -> Answer<Json<CallRow>> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let id = run_of(&supervisor, &run).await?;
    let row = to_the_end(async move { calls::resolve(&supervisor, caller, &id, asked).await });
    Ok(Json(row.await?))
}

/// Lists the calls of a run under keys
///
/// Those of the turn that is at work or was last, and those whose keys are for the whole run.
#[utoipa::path(get, operation_id = "list_calls", path = "/v1/runs/{run}/calls",
    responses((status = 200, description = "the calls, by their keys", body = Vec<CallRow>)))]
pub(crate) async fn list(
    State(supervisor): Daemon,
    Path(run): Path<String>,
) -> Answer<Json<Vec<CallRow>>> {
    let id = run_of(&supervisor, &run).await?;
    Ok(Json(calls::rows(&snapshot_of(&supervisor, &id).await?.run)))
}
