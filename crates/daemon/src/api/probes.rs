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

/// Answers while the event loop does.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Alive)))]
pub(crate) async fn healthz() -> Json<Alive> {
    Json(Alive { status: "ok".to_owned() })
}

#[utoipa::path(get, path = "/readyz", responses((status = 200, body = Ready), (status = 503, body = Ready)))]
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

#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "OpenMetrics text", body = String, content_type = "application/openmetrics-text")))]
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
    let left = |it: &outlast_conduct::budgets::BudgetStatus| (it.rule.name.clone(), it.left());
    let budgets = supervisor.budgets().iter().map(left).collect();
    let sight = metrics::Sight { census, queue_depth, notices_pending, budgets };
    Ok(supervisor.operator.metrics.render(&sight))
}
