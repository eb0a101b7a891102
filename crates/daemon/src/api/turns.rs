//! One turn, looked into afterwards.

use axum::Json;
use axum::extract::{Path, State};
use outlast_wire::api::TurnView;

use super::Daemon;
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::runs::find::resolve;
use crate::runs::turns;

#[utoipa::path(get, path = "/v1/runs/{run}/turns/{turn}", params(("run" = String, Path), ("turn" = u32, Path)),
    responses((status = 200, body = TurnView)))]
pub(crate) async fn show(
    State(supervisor): Daemon,
    Path((run, turn)): Path<(String, u32)>,
) -> Answer<Json<TurnView>> {
    let id = resolve(&supervisor, &run).await?;
    blocking(move || Ok(Json(turns::look(&supervisor, &id, turn)?))).await
}
