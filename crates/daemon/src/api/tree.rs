//! A run and all that belong to it.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use outlast_engine::{DEEPEST, Row};
use outlast_wire::api::RunTree;
use outlast_wire::codes::Code;

use super::Daemon;
use super::runs;
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::refusal::Refusal;
use crate::runs::find::resolve;
use crate::supervisor::Supervisor;
use crate::view;

/// More runs than this are not shown as one tree.
const LARGEST: usize = 10_000;

#[utoipa::path(get, path = "/v1/runs/{run}/tree", params(("run" = String, Path)), responses((status = 200, body = RunTree)))]
pub(crate) async fn tree(
    State(supervisor): Daemon,
    Path(run): Path<String>,
) -> Answer<Json<RunTree>> {
    let id = resolve(&supervisor, &run).await?;
    blocking(move || {
        let row = supervisor.ground.store.row(&id)?;
        let row = row.ok_or_else(|| Refusal::unknown_run(format!("there is no run {id}")))?;
        let mut left = LARGEST;
        Ok(Json(below(&supervisor, row, 0, &mut left)?))
    })
    .await
}

fn below(
    supervisor: &Arc<Supervisor>,
    row: Row,
    depth: usize,
    left: &mut usize,
) -> Answer<RunTree> {
    let Some(fewer) = left.checked_sub(1) else {
        let message = format!("these are more than {LARGEST} runs");
        return Err(Refusal::new(Code::TooMany, message).hint("ask for one of its children"));
    };
    *left = fewer;
    let children =
        if depth < DEEPEST { supervisor.ground.store.children(&row.id)? } else { Vec::new() };
    let children = children
        .into_iter()
        .map(|child| below(supervisor, child, depth + 1, left))
        .collect::<Answer<Vec<_>>>()?;
    let doing = runs::doing(supervisor, &row);
    Ok(RunTree { run: view::row(row, doing), children })
}
