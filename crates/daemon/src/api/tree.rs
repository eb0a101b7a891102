//! A run and all that belong to it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use outlast_engine::{DEEPEST, Row};
use outlast_wire::api::{ChildView, RunTree};
use outlast_wire::codes::Code;

use super::Daemon;
use super::extract::Path;
use super::runs;
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::refusal::Refusal;
use crate::runs::find::resolve;
use crate::runs::spawn;
use crate::supervisor::Supervisor;
use crate::view;

/// More runs than this are not shown as one tree.
const LARGEST: usize = 10_000;

/// Lists a run and its descendants
///
/// As rows that hold the rows of their children, the oldest first.
#[utoipa::path(get, operation_id = "show_tree", path = "/v1/runs/{run}/tree", responses((status = 200, description = "the run and those below it", body = RunTree)))]
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

/// Lists the children of a run
///
/// As the run's journal knows them, in the order in which they were asked for; `cursor` is the order in which their
/// ends were delivered.
#[utoipa::path(get, operation_id = "list_children", path = "/v1/runs/{run}/children", responses((status = 200, description = "what the run knows of its children", body = Vec<ChildView>)))]
pub(crate) async fn children(
    State(supervisor): Daemon,
    Path(run): Path<String>,
) -> Answer<Json<Vec<ChildView>>> {
    let id = resolve(&supervisor, &run).await?;
    Ok(Json(spawn::children_of(&supervisor, &id).await?))
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
    // An open run knows whether it has any.
    let is_leaf =
        supervisor.handle(&row.id).is_some_and(|it| it.snapshot.borrow().run.children.is_empty());
    let children = match depth < DEEPEST && !is_leaf {
        true => supervisor.ground.store.children(&row.id)?,
        false => Vec::new(),
    };
    let children = children
        .into_iter()
        .map(|child| below(supervisor, child, depth + 1, left))
        .collect::<Answer<Vec<_>>>()?;
    // A tree has many runs, and shows no output of them.
    let budget = supervisor.handle(&row.id).and_then(|it| view::pots(&it.snapshot.borrow().run));
    let doing = runs::doing(supervisor, &row);
    Ok(RunTree { run: view::row(row, doing), budget, children })
}
