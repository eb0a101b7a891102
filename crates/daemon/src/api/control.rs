//! What is said to a run while it goes on: messages, and what it has used up. Durable before it is answered,
//! and safe to say again.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outlast_agents::capabilities;
use outlast_engine::{Input, Run, RunId};
use outlast_wire::api::{Reaches, ReportUsage, SendMessage, Sent, Usage};
use outlast_wire::codes::Code;

use super::Daemon;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::Caller;
use crate::runs::find::{resolve, snapshot_of};
use crate::runs::tell::{
    check_text, not_taken, order_id, refuse_ended, refuse_full, reported, tell,
};
use crate::supervisor::Supervisor;

#[utoipa::path(post, path = "/v1/runs/{run}/messages", params(("run" = String, Path)), request_body = SendMessage,
    responses((status = 202, description = "the message is durable", body = Sent)))]
pub(crate) async fn send(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<SendMessage>, JsonRejection>,
) -> Answer<(StatusCode, Json<Sent>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let text = check_text(&asked.text)?.to_owned();
    let id = resolve(&supervisor, &run).await?;
    let message = order_id(asked.id)?;
    let from = match &asked.from {
        Some(from) => format!("run {}", resolve(&supervisor, from).await?),
        None => "user".to_owned(),
    };
    let before = snapshot_of(&supervisor, &id).await?.run;
    if let Some(taken) = before.orders.get(&message) {
        let done = taken.verb.done();
        let why = format!("the id {message:?} has {done} run {id} before, and is no message's");
        let hint = "choose a new id for each message";
        return Err(Refusal::new(Code::IdConflict, why).hint(hint));
    }
    let existed = before.inbox.has_had(&message);
    if !existed {
        refuse_ended(&before)?;
        refuse_full(&before)?;
    }
    let by = caller.who(&supervisor).await?;
    let sent = Input::Sent { message: message.clone(), from, text, by };
    let after = tell(&supervisor, &id, sent).await?;
    if !after.inbox.has_had(&message) {
        refuse_ended(&after)?;
        refuse_full(&after)?;
        return Err(not_taken(&id));
    }
    let reaches = reaches(&supervisor, &id, &message).await?;
    Ok((StatusCode::ACCEPTED, Json(Sent { message, existed, reaches })))
}

/// An agent that is at work takes a message within this time, or after its next step.
const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// Whether the turn that runs takes the message. Only an agent that says so has taken it; a command that is not driven
/// takes none.
async fn reaches(
    supervisor: &Arc<Supervisor>,
    id: &RunId,
    message: &str,
) -> Answer<Option<Reaches>> {
    let seq = |run: &Run| run.inbox.unread.iter().find(|it| it.id == message).map(|it| it.seq);
    // One that waits no longer was taken by a turn that has committed since.
    let is_taken =
        |run: &Run| seq(run).is_none_or(|seq| run.live().is_some_and(|live| live.has_taken(seq)));
    let run = snapshot_of(supervisor, id).await?.run;
    let Some(can) = capabilities(&run.spec) else { return Ok(None) };
    let can_steer = can.steer;
    if can_steer
        && run.live().is_some()
        && let Some(handle) = supervisor.handle(id)
    {
        let mut snapshot = handle.snapshot;
        let taken = snapshot.wait_for(|seen| is_taken(&seen.run) || seen.run.live().is_none());
        // Not taken by then is an answer too.
        let _taken_or_late = tokio::time::timeout(TAKEN_WITHIN, taken).await;
    }
    let run = snapshot_of(supervisor, id).await?.run;
    Ok(Some(match run.live() {
        _ if is_taken(&run) => Reaches::ThisTurn,
        Some(_) if can_steer => Reaches::NextStep,
        _ => Reaches::NextTurn,
    }))
}

#[utoipa::path(post, path = "/v1/runs/{run}/usage", params(("run" = String, Path)), request_body = ReportUsage,
    responses((status = 202, description = "it counts; what makes no difference yet is not written down", body = Usage)))]
pub(crate) async fn usage(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    body: Result<Json<ReportUsage>, JsonRejection>,
) -> Answer<(StatusCode, Json<Usage>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let usage = reported(&asked)?;
    let id = resolve(&supervisor, &run).await?;
    let before = snapshot_of(&supervisor, &id).await?.run;
    let live = before.live().map(|live| (live.turn, live.number)).filter(|(turn, attempt)| {
        asked.turn.is_none_or(|asked| asked == *turn)
            && asked.attempt.is_none_or(|asked| asked == *attempt)
    });
    let Some((turn, attempt)) = live else {
        let message = format!("that attempt of run {id} is not alive");
        let hint = "an attempt that has ended is charged with the usage in its response";
        return Err(Refusal::new(Code::NotLive, message).hint(hint));
    };
    let after = tell(&supervisor, &id, Input::UsageReported { turn, attempt, usage }).await?;
    Ok((StatusCode::ACCEPTED, Json(crate::view::usage(&after))))
}
