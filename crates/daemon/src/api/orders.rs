//! Orders to a run: answer, resume, pause, stop, raise.
//!
//! Each has an id and counts once. 2xx says that this order is in the journal; an order that was not taken is
//! refused with the reason, after the journal was asked and not before.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use outlast_engine::{Decision, Input, Run, StopMode, Verb};
use outlast_wire::api::{Answer as Said, AnswerRun, OrderRun, RaiseRun, RunView, StopRun};

use super::extract::Path;
use super::{Daemon, to_the_end};
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::{resolve, snapshot_of, view_of};
use crate::runs::orders::{
    Given, not_written, refuse_answer, refuse_pause, refuse_resume, said, to_stop,
};
use crate::runs::raise;
use crate::runs::subtree;
use crate::runs::tell::{check_text, order_id, refuse_ended};

type Done = Answer<(StatusCode, Json<RunView>)>;

/// Answers the question of a run
///
/// Releases a run that is blocked on a person, or an agent that waits for a permission.
#[utoipa::path(post, operation_id = "answer_run", path = "/v1/runs/{run}/answer", request_body = AnswerRun,
    responses((status = 202, description = "this answer is in the journal", body = RunView), (status = 403), (status = 409, description = "the question has another answer, or is not the one that is open")))]
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
    let said = said(&supervisor, &(asked.seq, &asked.answer))?;
    let given = Given { id: order, seq: asked.seq, verb: Verb::Answer(decision), said };
    let input = |order| Input::Answered { decision, message, order };
    accepted(given.give(&supervisor, caller, &id, refuse, input).await)
}

/// Resumes a run
///
/// One that is paused, or blocked by something that a person has put right.
#[utoipa::path(post, operation_id = "resume_run", path = "/v1/runs/{run}/resume", request_body(content = Option<OrderRun>, description = "may be left out"),
    responses((status = 202, description = "this order is in the journal", body = RunView), (status = 403), (status = 409, description = "there is nothing to resume that the giver has seen")))]
pub(crate) async fn resume(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Option<Json<OrderRun>>, JsonRejection>,
) -> Done {
    let asked = given(body)?;
    let (id, order) = (resolve(&supervisor, &run).await?, order_id(asked.id)?);
    if asked.tree {
        let by = caller.clone().may(&supervisor, Right::Steer, &id).await?;
        subtree::resume(&supervisor, &id, &order, by).await?;
        let root = snapshot_of(&supervisor, &id).await?.run;
        if !root.is_paused || root.has_ended() {
            return accepted(view_of(&supervisor, &id).await);
        }
    }
    let said = said(&supervisor, &(asked.seq, asked.tree))?;
    let given = Given { id: order, seq: asked.seq, verb: Verb::Resume, said };
    accepted(given.give(&supervisor, caller, &id, refuse_resume, Input::ResumeAsked).await)
}

/// Pauses a run after the turn it is at
///
/// The run rests until it is resumed.
#[utoipa::path(post, operation_id = "pause_run", path = "/v1/runs/{run}/pause", request_body(content = Option<OrderRun>, description = "may be left out"),
    responses((status = 202, description = "this order is in the journal", body = RunView), (status = 403), (status = 409, description = "the run is being ended, or was resumed since")))]
pub(crate) async fn pause(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Option<Json<OrderRun>>, JsonRejection>,
) -> Done {
    let asked = given(body)?;
    let (id, order) = (resolve(&supervisor, &run).await?, order_id(asked.id)?);
    let said = said(&supervisor, &(asked.seq, asked.tree))?;
    let given = Given { id: order.clone(), seq: asked.seq, verb: Verb::Pause, said };
    if !asked.tree {
        return accepted(
            given.give(&supervisor, caller, &id, refuse_pause, Input::PauseAsked).await,
        );
    }
    let by = caller.clone().may(&supervisor, Right::Steer, &id).await?;
    // The run itself first: it makes fewer children then. A command that has no next turn, or a run that has ended,
    // may have children that can be paused.
    let root = given.give(&supervisor, caller, &id, refuse_pause, Input::PauseAsked).await;
    let below = subtree::pause(&supervisor, &id, &order, by).await?;
    if below == 0 {
        return accepted(root);
    }
    accepted(view_of(&supervisor, &id).await)
}

/// Stops a run and everything that it started
///
/// Asks first and kills after the grace time; with `now`, kills at once.
#[utoipa::path(post, operation_id = "stop_run", path = "/v1/runs/{run}/stop", request_body(content = Option<StopRun>, description = "may be left out"),
    responses((status = 202, description = "this order is in the journal", body = RunView), (status = 403), (status = 409, description = "the run has ended, and nothing of it is left")))]
pub(crate) async fn stop(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Option<Json<StopRun>>, JsonRejection>,
) -> Done {
    let asked = given(body)?;
    let mode = if asked.now { StopMode::Now } else { StopMode::Gracefully };
    let (id, order) = (to_stop(&supervisor, &caller, &run, mode).await?, order_id(asked.id)?);
    let said = said(&supervisor, &(asked.now, asked.tree))?;
    let given = Given { id: order.clone(), seq: None, verb: Verb::Stop(mode), said };
    let refuse = |run: &Run, _| if run.is_open() { Ok(()) } else { refuse_ended(run) };
    // Before anything is ended, and again with the order itself.
    let by = caller.clone().may(&supervisor, Right::Steer, &id).await?;
    if asked.tree && !snapshot_of(&supervisor, &id).await?.run.is_open() {
        subtree::stop(&supervisor, &id, &order, by, mode).await?;
        return accepted(view_of(&supervisor, &id).await);
    }
    if let Some(handle) = supervisor.handle(&id) {
        handle.stop_asked.send_replace(Some(mode));
    }
    let input = |order| match asked.tree {
        true => Input::StopTreeAsked { mode, order },
        false => Input::StopAsked { mode, order },
    };
    let given = given.give(&supervisor, caller, &id, refuse, input);
    accepted(given.await.map_err(not_written))
}

/// Raises limits of a run
///
/// A run that goes on has them at once; an exhausted one resumes with its context. A person's order only.
#[utoipa::path(post, operation_id = "raise_run", path = "/v1/runs/{run}/raise", request_body = RaiseRun,
    responses((status = 202, description = "this order is in the journal", body = RunView), (status = 403), (status = 409, description = "the run is being ended, or has ended otherwise")))]
pub(crate) async fn raise(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<RaiseRun>, JsonRejection>,
) -> Done {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let id = resolve(&supervisor, &run).await?;
    accepted(to_the_end(raise::raise(supervisor, caller, id, asked)).await)
}

/// The body of an order that may come without one.
pub(super) fn given<T: Default>(body: Result<Option<Json<T>>, JsonRejection>) -> Answer<T> {
    let body = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    Ok(body.map(|Json(body)| body).unwrap_or_default())
}

fn accepted(given: Answer<RunView>) -> Done {
    Ok((StatusCode::ACCEPTED, Json(given?)))
}
