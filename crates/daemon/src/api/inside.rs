//! What an agent inside a run notes, and the tools that its loop file declares for it.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use outlast_wire::api::{Sent, TakeNote, ToolView};

use super::extract::Path;
use super::{Daemon, to_the_end};
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::Caller;
use crate::runs::inside;

/// Takes a note of the live attempt
///
/// The next attempt and the next turn are told. Only the attempt itself may, by its token.
#[utoipa::path(post, operation_id = "take_note", path = "/v1/runs/{run}/notes", request_body = TakeNote,
    responses((status = 202, description = "the note is durable", body = Sent), (status = 403), (status = 409)))]
pub(crate) async fn note(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<TakeNote>, JsonRejection>,
) -> Answer<(StatusCode, Json<Sent>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let taken = to_the_end(async move { inside::note(&supervisor, &caller, &run, asked).await });
    Ok((StatusCode::ACCEPTED, Json(taken.await?)))
}

/// Lists the tools that the loop file declares
///
/// With what each runs, for the live attempt of the run, by its token.
#[utoipa::path(get, operation_id = "list_tools", path = "/v1/runs/{run}/tools",
    responses((status = 200, description = "the tools that may be used", body = Vec<ToolView>), (status = 403)))]
pub(crate) async fn tools(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
) -> Answer<Json<Vec<ToolView>>> {
    Ok(Json(inside::tools(&supervisor, &caller, &run).await?))
}
