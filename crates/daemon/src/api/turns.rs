//! The turns of a run, as a list and looked into one by one.

use axum::Json;
use axum::extract::State;
use outlast_wire::api::{TurnRow, TurnView};
use serde::Deserialize;

use super::Daemon;
use super::extract::{Path, Query};
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::runs::find::resolve;
use crate::runs::{turn_list, turns};

/// Describes one turn of a run
///
/// What was asked, what was answered, and what the host did about it.
#[utoipa::path(get, operation_id = "show_turn", path = "/v1/runs/{run}/turns/{turn}", responses((status = 200, description = "the turn", body = TurnView)))]
pub(crate) async fn show(
    State(supervisor): Daemon,
    Path((run, turn)): Path<(String, u32)>,
) -> Answer<Json<TurnView>> {
    let id = resolve(&supervisor, &run).await?;
    blocking(move || Ok(Json(turns::look(&supervisor, &id, turn)?))).await
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TurnsQuery {
    /// Only turns numbered below this: the last turn of a page, for the next page.
    before: Option<u32>,
    /// At most so many; 100 when absent, and never more than 1000.
    limit: Option<u64>,
}

/// Lists the turns of a run, the newest first
///
/// With the times and the outcomes of their attempts, and how much output each attempt has.
#[utoipa::path(get, operation_id = "list_turns", path = "/v1/runs/{run}/turns", params(TurnsQuery), responses((status = 200, description = "the turns", body = [TurnRow])))]
pub(crate) async fn list(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<TurnsQuery>,
) -> Answer<Json<Vec<TurnRow>>> {
    let id = resolve(&supervisor, &run).await?;
    blocking(move || Ok(Json(turn_list::list(&supervisor, &id, query.before, query.limit)?))).await
}
