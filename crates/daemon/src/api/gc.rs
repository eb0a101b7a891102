//! Removing what is not needed any longer.

use axum::Json;
use axum::extract::State;
use outlast_wire::api::GcReport;
use serde::Deserialize;

use super::Daemon;
use super::extract::Query;
use crate::lanes::{Lane, in_lane};
use crate::refusal::Answer;
use crate::runs::callers::Caller;
use crate::runs::gc::{Sweep, Workspaces, sweep};

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct GcQuery {
    /// Say what would go, and remove nothing.
    dry_run: Option<bool>,
    /// Instead of the usual retention: everything that ended longer ago than this.
    older_than_ms: Option<u64>,
}

/// Removes ended runs that are past their retention
///
/// A run whose workspace holds work that would be lost is kept, and is named in the answer.
#[utoipa::path(post, operation_id = "collect_garbage", path = "/v1/gc", params(GcQuery), responses((status = 200, description = "what was removed and what was kept", body = GcReport), (status = 403)))]
pub(crate) async fn collect(
    State(supervisor): Daemon,
    Query(query): Query<GcQuery>,
    caller: Caller,
) -> Answer<Json<GcReport>> {
    let dry_run = query.dry_run.unwrap_or(false);
    if !dry_run {
        caller.may_steer_all(&supervisor, "remove the runs of others").await?;
    }
    let wanted = Sweep { dry_run, older_than_ms: query.older_than_ms, workspaces: Workspaces::Go };
    in_lane(Lane::Removals, move || Ok(Json(sweep(&supervisor, wanted)?))).await
}
