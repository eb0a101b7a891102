//! What probes ask: whether the daemon answers, whether it can take on work, and what it has counted.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use outlast_wire::api::{Alive, Ready, Unready};

use super::Daemon;
use crate::lanes::Lane;
use crate::lanes::{blocking, in_lane};
use crate::operator::metrics;
use crate::refusal::Answer;
use crate::supervisor::Supervisor;

/// Says that the daemon answers
///
/// Looks at nothing else; `/readyz` says whether the daemon can take on work.
#[utoipa::path(get, operation_id = "healthz", path = "/healthz", responses((status = 200, description = "the daemon answers", body = Alive)))]
pub(crate) async fn healthz() -> Json<Alive> {
    Json(Alive { status: "ok".to_owned() })
}

/// Says whether the daemon can take on work
///
/// The reasons name what is in the way, such as a full disk.
#[utoipa::path(get, operation_id = "readyz", path = "/readyz",
    responses((status = 200, description = "nothing is in the way", body = Ready), (status = 503, description = "something is in the way", body = Ready)))]
pub(crate) async fn readyz(State(supervisor): Daemon) -> Answer<Response> {
    let obstacles = blocking(move || Ok(supervisor.obstacles())).await?;
    let (status, word) = match obstacles.is_empty() {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not_ready"),
    };
    let reasons =
        obstacles.into_iter().map(|it| Unready { code: it.code, message: it.message }).collect();
    Ok((status, Json(Ready { status: word.to_owned(), reasons })).into_response())
}

/// Returns counters and gauges
///
/// Over TCP this needs the token of `listen.token`, if there is one.
#[utoipa::path(get, operation_id = "metrics", path = "/metrics",
    responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text"), (status = 401)))]
pub(crate) async fn metrics(State(supervisor): Daemon) -> Answer<Response> {
    let page = in_lane(Lane::Surveys, move || render(&supervisor)).await?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], page).into_response())
}

fn render(supervisor: &Arc<Supervisor>) -> Answer<String> {
    let census = supervisor.ground.store.census()?;
    let waits = |handle: &crate::mailbox::Handle| handle.snapshot.borrow().run.wants_slot();
    let queue_depth = supervisor.handles().iter().filter(|(_, handle)| waits(handle)).count();
    let pending = |state: &outlast_store::SinkState| state.pending;
    let notices_pending = supervisor.ground.store.sink_states()?.iter().map(pending).sum();
    let left = |it: &outlast_conduct::budgets::BudgetStatus| {
        (it.rule.name.clone(), it.left(), it.unreported())
    };
    let budgets = supervisor.budgets().iter().map(left).collect();
    let sight = metrics::Sight { census, queue_depth, notices_pending, budgets };
    Ok(supervisor.operator.metrics.render(&sight))
}
