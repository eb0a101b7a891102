//! Removing what is not needed any longer.

use axum::Json;
use axum::extract::{Query, State};
use outlast_wire::api::GcReport;
use serde::Deserialize;

use super::Daemon;
use crate::lanes::{Lane, in_lane};
use crate::refusal::Answer;
use crate::runs::gc::{Sweep, sweep};

#[derive(Deserialize, utoipa::IntoParams)]
pub(crate) struct GcQuery {
    /// Say what would go, and remove nothing.
    dry_run: Option<bool>,
    /// Instead of the usual retention: everything that ended longer ago than this.
    older_than_ms: Option<u64>,
}

#[utoipa::path(post, path = "/v1/gc", params(GcQuery), responses((status = 200, body = GcReport)))]
pub(crate) async fn collect(
    State(supervisor): Daemon,
    Query(query): Query<GcQuery>,
) -> Answer<Json<GcReport>> {
    let wanted =
        Sweep { dry_run: query.dry_run.unwrap_or(false), older_than_ms: query.older_than_ms };
    in_lane(Lane::Removals, move || Ok(Json(sweep(&supervisor, wanted)?))).await
}
