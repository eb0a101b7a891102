//! Orders to a run: answer, resume, pause, stop.
//!
//! Each has an id and counts once. 2xx says that this order is in the journal; an order that was not taken is
//! refused with the reason, after the journal was asked and not before.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outlast_engine::{Decision, Input, Run, StopMode, Verb};
use outlast_wire::api::{Answer as Said, AnswerRun, OrderRun, RunView, StopRun};

use super::Daemon;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::resolve;
use crate::runs::orders::{
    Given, not_written, refuse_answer, refuse_pause, refuse_resume, to_stop,
};
use crate::runs::tell::{check_text, order_id, refuse_ended};

type Done = Answer<(StatusCode, Json<RunView>)>;

#[utoipa::path(post, path = "/v1/runs/{run}/answer", params(("run" = String, Path)), request_body = AnswerRun,
    responses((status = 202, description = "this answer is in the journal", body = RunView), (status = 403, description = "the caller is inside a run"), (status = 409, description = "the question has another answer, or is not the one that is open")))]
pub(crate) async fn answer(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<AnswerRun>, JsonRejection>,
) -> Done {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let (decision, text) = match &asked.answer {
        Said::Approve => (Decision::Approve, "approved"),
        Said::Deny => (Decision::Deny, "denied"),
        Said::Text(text) => (Decision::Reply, check_text(text)?),
    };
    let (id, order) = (resolve(&supervisor, &run).await?, order_id(asked.id.clone())?);
    let message = Some((order.clone(), text.to_owned()));
    let refuse = move |run: &Run, seq| refuse_answer(run, decision, seq);
    let given = Given { id: order, seq: asked.seq, verb: Verb::Answer(decision) };
    let input = |order| Input::Answered { decision, message, order };
    accepted(given.give(&supervisor, caller, &id, refuse, input).await)
}

#[utoipa::path(post, path = "/v1/runs/{run}/resume", params(("run" = String, Path)), request_body(content = OrderRun, description = "may be left out"),
    responses((status = 202, description = "this order is in the journal", body = RunView), (status = 403, description = "the caller is inside a run that may not"), (status = 409, description = "there is nothing to resume that the giver has seen")))]
pub(crate) async fn resume(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Option<Json<OrderRun>>, JsonRejection>,
) -> Done {
    let asked = given(body)?;
    let (id, order) = (resolve(&supervisor, &run).await?, order_id(asked.id)?);
    let given = Given { id: order, seq: asked.seq, verb: Verb::Resume };
    accepted(given.give(&supervisor, caller, &id, refuse_resume, Input::ResumeAsked).await)
}

#[utoipa::path(post, path = "/v1/runs/{run}/pause", params(("run" = String, Path)), request_body(content = OrderRun, description = "may be left out"),
    responses((status = 202, description = "this order is in the journal", body = RunView), (status = 409, description = "the run is being ended, or was resumed since")))]
pub(crate) async fn pause(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Option<Json<OrderRun>>, JsonRejection>,
) -> Done {
    let asked = given(body)?;
    let (id, order) = (resolve(&supervisor, &run).await?, order_id(asked.id)?);
    let given = Given { id: order, seq: asked.seq, verb: Verb::Pause };
    accepted(given.give(&supervisor, caller, &id, refuse_pause, Input::PauseAsked).await)
}

#[utoipa::path(post, path = "/v1/runs/{run}/stop", params(("run" = String, Path)), request_body(content = StopRun, description = "may be left out"),
    responses((status = 202, description = "this order is in the journal", body = RunView), (status = 409, description = "the run has ended, and nothing of it is left")))]
pub(crate) async fn stop(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Option<Json<StopRun>>, JsonRejection>,
) -> Done {
    let asked = given(body)?;
    let mode = if asked.now { StopMode::Now } else { StopMode::Gracefully };
    let (id, order) = (to_stop(&supervisor, &caller, &run, mode).await?, order_id(asked.id)?);
    let given = Given { id: order, seq: None, verb: Verb::Stop(mode) };
    let refuse = |run: &Run, _| if run.is_open() { Ok(()) } else { refuse_ended(run) };
    // Before anything is ended, and again with the order itself.
    caller.clone().may(&supervisor, Right::Steer, &id).await?;
    if let Some(handle) = supervisor.handle(&id) {
        handle.stop_asked.send_replace(Some(mode));
    }
    let given =
        given.give(&supervisor, caller, &id, refuse, |order| Input::StopAsked { mode, order });
    accepted(given.await.map_err(not_written))
}

/// The body of an order that may come without one.
pub(super) fn given<T: Default>(body: Result<Option<Json<T>>, JsonRejection>) -> Answer<T> {
    let body = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    Ok(body.map(|Json(body)| body).unwrap_or_default())
}

fn accepted(given: Answer<RunView>) -> Done {
    Ok((StatusCode::ACCEPTED, Json(given?)))
}
