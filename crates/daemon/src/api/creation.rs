//! Making a run, and making one again.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use outlast_wire::api::{CreateRun, Created, LARGEST_STDIN, RerunRun};

use super::Daemon;
use super::extract::Path;
use crate::occasion::Occasion;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::resolve;
use crate::runs::{again, create};

/// A body with the largest standard input, all of which JSON writes as `\u0000`, and room for the rest.
const LARGEST_BODY: usize = 6 * LARGEST_STDIN + (4 << 20);

/// What of a body is read.
pub(super) fn body_limit() -> DefaultBodyLimit {
    DefaultBodyLimit::max(LARGEST_BODY)
}

/// Creates a run
///
/// It is durable before the answer. An `id` or a `key` makes it safe to ask again.
#[utoipa::path(post, operation_id = "create_run", path = "/v1/runs", request_body = CreateRun,
    responses((status = 201, description = "the run is made", body = Created), (status = 200, description = "it was there already", body = Created), (status = 403), (status = 404), (status = 409)))]
pub(crate) async fn create(
    State(supervisor): Daemon,
    caller: Caller,
    body: Result<Json<CreateRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<Created>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    // A child takes from what its parent has.
    if let Some(parent) = &asked.parent
        && let Ok(parent) = resolve(&supervisor, parent).await
    {
        caller.may(&supervisor, Right::Steer, &parent).await?;
    }
    let created = create::make(supervisor, asked, Occasion::Asked).await?;
    let status = if created.existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(created)))
}

/// Starts the same run again, as another one
///
/// The command, directory, limits, labels and loop file are those of the first run; the environment is the one given.
#[utoipa::path(post, operation_id = "rerun_run", path = "/v1/runs/{run}/rerun", request_body = RerunRun,
    responses((status = 201, description = "another run, made as the first was", body = Created), (status = 200, description = "it was there already", body = Created), (status = 409, description = "an open run has its name")))]
pub(crate) async fn rerun(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    body: Result<Json<RerunRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<Created>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let id = resolve(&supervisor, &run).await?;
    let created = again::rerun(supervisor, &id, asked).await?;
    let status = if created.existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(created)))
}
