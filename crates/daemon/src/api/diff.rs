//! What turns changed in the workspace.

use axum::Json;
use axum::extract::State;
use outlast_wire::api::DiffView;
use serde::Deserialize;

use super::Daemon;
use super::extract::{Path, Query};
use crate::lanes::{Lane, in_lane};
use crate::refusal::Answer;
use crate::runs::diff::{self, Asked};
use crate::runs::find::resolve;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// `3` is what turn 3 changed, `1..4` from the end of turn 1 to that of turn 4, `2..now` up to the workspace as it
    /// is; absent is all that the run has done.
    turns: Option<String>,
    /// Paths below the workspace, one to a line.
    paths: Option<String>,
    /// Whether to answer with the diff itself beside the list of files.
    patch: Option<bool>,
}

/// Says what turns changed in the workspace
///
/// Compares two snapshots of the run, or one with the workspace as it is.
#[utoipa::path(get, operation_id = "diff_run", path = "/v1/runs/{run}/diff", params(DiffQuery), responses((status = 200, description = "the difference", body = DiffView)))]
pub(crate) async fn diff(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<DiffQuery>,
) -> Answer<Json<DiffView>> {
    let id = resolve(&supervisor, &run).await?;
    let asked = Asked::read(query.turns.as_deref())?;
    let lines = query.paths.as_deref().unwrap_or_default().lines();
    let paths: Vec<String> = lines.filter(|path| !path.is_empty()).map(str::to_owned).collect();
    let wants_patch = query.patch.unwrap_or(false);
    in_lane(Lane::Folders, move || {
        Ok(Json(diff::diff(&supervisor, &id, &asked, &paths, wants_patch)?))
    })
    .await
}
