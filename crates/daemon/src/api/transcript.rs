//! The lines between a driver and its agent, as they were.

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use outlast_wire::codes::Code;
use serde::Deserialize;

use super::Daemon;
use super::output::{self, Wanted, What};
use crate::activity;
use crate::refusal::{Answer, Refusal};
use crate::runs::find::{resolve, snapshot_of};

#[derive(Debug, Clone, Deserialize, utoipa::IntoParams)]
pub(crate) struct TranscriptQuery {
    turn: Option<u32>,
    attempt: Option<u32>,
    /// The first byte, within the first attempt that is sent.
    offset: Option<u64>,
    /// Go on until the run has ended.
    follow: Option<bool>,
    /// Only the last lines, of the last attempt.
    tail: Option<u64>,
}

#[utoipa::path(get, path = "/v1/runs/{run}/transcript", params(("run" = String, Path), TranscriptQuery),
    responses((status = 200, description = "`transcript.jsonl` of each attempt of a driven agent, one after another: a JSON object a line, with `at_ms`, `dir` (`<` from and `>` to the agent) and `line`; or frames, if `application/vnd.outlast.output` is accepted")))]
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
        let hint = format!("`outlast logs {id}` has what it printed, byte for byte");
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
