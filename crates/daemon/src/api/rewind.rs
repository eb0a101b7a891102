//! Going back to a turn, starting again from one, and handing the work over.

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use outlast_wire::api::{
    Created, ForkRun, MergeRun, MergedView, PullRequestView, RestoreRun, RestoredView,
};

use super::extract::Path;
use super::orders::given;
use super::{Daemon, to_the_end};
use crate::lanes::{Lane, in_lane};
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::resolve;
use crate::runs::{fork, merge, restore};

/// Puts the workspace back to the end of a turn
///
/// For a run at rest, or one that has ended, whose workspace is its own. What is found is kept as a snapshot first.
/// Answers once it is done. A person's order only.
#[utoipa::path(post, operation_id = "restore_run", path = "/v1/runs/{run}/restore", request_body = RestoreRun,
    responses((status = 200, description = "the workspace is as that turn left it", body = RestoredView), (status = 403), (status = 409, description = "the run is at work, or works where a person does")))]
pub(crate) async fn restore(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<RestoreRun>, JsonRejection>,
) -> Answer<Json<RestoredView>> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let id = resolve(&supervisor, &run).await?;
    Ok(Json(to_the_end(restore::restore(supervisor, caller, id, asked)).await?))
}

/// Makes another run from the end of a turn
///
/// It has the journal up to that turn, a copy of that turn's files in a workspace of its own, and limits of its own. The
/// run that it comes from is not changed.
#[utoipa::path(post, operation_id = "fork_run", path = "/v1/runs/{run}/fork", request_body = ForkRun,
    responses((status = 201, description = "the fork is made", body = Created), (status = 200, description = "it was there already", body = Created), (status = 403), (status = 409, description = "work was open or unknown at that turn")))]
pub(crate) async fn fork(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<ForkRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<Created>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let id = resolve(&supervisor, &run).await?;
    caller.may(&supervisor, Right::Steer, &id).await?;
    let created = fork::fork(supervisor, &id, asked).await?;
    let status = if created.existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(created)))
}

/// Merges what a run has committed into a branch
///
/// Without a checkout. A branch that is checked out is not moved: the answer has the command to type. Conflicts change
/// nothing. Asked again, it is merged already. A person's order only.
#[utoipa::path(post, operation_id = "merge_run", path = "/v1/runs/{run}/merge", request_body(content = Option<MergeRun>, description = "may be left out"),
    responses((status = 200, description = "what became of it", body = MergedView), (status = 403), (status = 409, description = "conflicts, or work that is not committed")))]
pub(crate) async fn merge(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Option<Json<MergeRun>>, JsonRejection>,
) -> Answer<Json<MergedView>> {
    let asked = given(body)?;
    let id = resolve(&supervisor, &run).await?;
    caller.may(&supervisor, Right::Raise, &id).await?;
    in_lane(Lane::Folders, move || Ok(Json(merge::merge(&supervisor, &id, &asked)?))).await
}

/// Says what a pull request of a run is made of
///
/// The branch, its commit, the remote as it was before the first turn, a title and a text. Nothing is pushed.
#[utoipa::path(get, operation_id = "pull_request_of_run", path = "/v1/runs/{run}/pr",
    responses((status = 200, description = "what a pull request needs", body = PullRequestView), (status = 409, description = "the run has no branch of its own")))]
pub(crate) async fn pull_request(
    State(supervisor): Daemon,
    Path(run): Path<String>,
) -> Answer<Json<PullRequestView>> {
    let id = resolve(&supervisor, &run).await?;
    in_lane(Lane::Folders, move || Ok(Json(merge::pull_request(&supervisor, &id)?))).await
}
