//! Making a run.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use outlast_wire::api::{CreateRun, Created};

use super::Daemon;
use crate::occasion::Occasion;
use crate::refusal::{Answer, bad_request};
use crate::runs::create;

#[utoipa::path(post, path = "/v1/runs", request_body = CreateRun,
    responses((status = 201, body = Created), (status = 200, description = "it was there already", body = Created)))]
pub(crate) async fn create(
    State(supervisor): Daemon,
    body: Result<Json<CreateRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<Created>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let created = create::make(supervisor, asked, Occasion::Asked).await?;
    let status = if created.existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(created)))
}
