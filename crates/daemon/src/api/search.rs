//! Where a text stands in the output of a run.

use std::sync::Mutex;

use axum::Json;
use axum::extract::State;
use outlast_wire::api::{OutputFound, OutputPlace};
use serde::Deserialize;

use super::Daemon;
use super::extract::{Path, Query};
use super::output::{Wanted, attempts};
use crate::lanes::{Lane, in_lane};
use crate::refusal::{Answer, bad_request};
use crate::runs::find::resolve;
use crate::runs::heard::Heard;
use crate::search as text_search;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchQuery {
    /// The text, as it was printed, byte by byte.
    q: String,
    /// Only this turn.
    turn: Option<u32>,
    /// Only this attempt of each turn.
    attempt: Option<u32>,
    /// Go on here: `turn` of `next` of the answer before.
    from_turn: Option<u32>,
    /// `attempt` of it.
    from_attempt: Option<u32>,
    /// `offset` of it.
    from_offset: Option<u64>,
}

/// Finds a text in the output of a run
///
/// Looks through a bounded number of bytes, and says where to go on.
#[utoipa::path(get, operation_id = "search_output", path = "/v1/runs/{run}/output/search", params(SearchQuery), responses((status = 200, description = "the places", body = OutputFound)))]
pub(crate) async fn search(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<SearchQuery>,
) -> Answer<Json<OutputFound>> {
    let id = resolve(&supervisor, &run).await?;
    if query.q.is_empty() || query.q.len() > text_search::LONGEST {
        let most = text_search::LONGEST;
        return Err(bad_request(format!("`q` has to have 1 to {most} bytes")));
    }
    let wanted = Wanted { turn: query.turn, attempt: query.attempt, ..Wanted::default() };
    let from = OutputPlace {
        turn: query.from_turn.unwrap_or(0),
        attempt: query.from_attempt.unwrap_or(0),
        offset: query.from_offset.unwrap_or(0),
    };
    in_lane(Lane::Surveys, move || {
        let heard = Mutex::new(Heard::default());
        let attempts = attempts(&supervisor, &id, &wanted, &heard)?;
        let dir = supervisor.ground.layout.run(id.as_str());
        Ok(Json(text_search::search(&dir, &attempts, from, query.q.as_bytes())?))
    })
    .await
}
