//! The lines between a driver and its agent, as they were.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use outlast_wire::codes::Code;
use serde::Deserialize;

use super::Daemon;
use super::extract::{Path, Query};
use super::output::{self, Wanted, What};
use crate::activity;
use crate::refusal::{Answer, Refusal};
use crate::runs::find::{resolve, snapshot_of};

#[derive(Debug, Clone, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct TranscriptQuery {
    /// Only this turn.
    turn: Option<u32>,
    /// Only this attempt of each turn.
    attempt: Option<u32>,
    /// The first byte, within the first attempt that is sent.
    offset: Option<u64>,
    /// Go on until the run has ended.
    follow: Option<bool>,
    /// Only the last lines, of all attempts together.
    tail: Option<u64>,
}

/// Returns the lines between a driver and its agent, or follows them
///
/// `transcript.jsonl` of each attempt, one after another: a JSON object a line, with `at_ms`, `dir` (`<` from and `>` to the
/// agent) and `line`.
#[utoipa::path(get, operation_id = "read_transcript", path = "/v1/runs/{run}/transcript", params(TranscriptQuery),
    responses((status = 200, description = "the lines; or frames, if `application/vnd.outlast.output` is accepted", content((String = "application/octet-stream"), (String = "application/vnd.outlast.output")))))]
pub(crate) async fn read(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    Query(query): Query<TranscriptQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let id = resolve(&supervisor, &run).await?;
    let run = snapshot_of(&supervisor, &id).await?.run;
    if !activity::is_driven(&run) {
        let kind = &run.spec.agent.kind;
        let message =
            format!("run {id} has no transcript: its agent, of kind {kind}, is a command");
        let hint = format!("for what it printed, byte for byte:\noutlast logs {id}");
        return Err(Refusal::new(Code::NotDriven, message).hint(hint));
    }
    let wanted = Wanted {
        what: What::Transcript,
        turn: query.turn,
        attempt: query.attempt,
        offset: query.offset,
        follow: query.follow.unwrap_or(false),
        tail: query.tail,
        ..Wanted::default()
    };
    output::stream_of(supervisor, id, wanted, &headers).await
}
