//! What is said to a run while it goes on: messages, and what it has used up. Durable before it is answered,
//! and safe to say again.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outlast_engine::Input;
use outlast_wire::api::{ReportUsage, SendMessage, Sent, Usage};
use outlast_wire::codes::Code;

use super::Daemon;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::Caller;
use crate::runs::find::{resolve, snapshot_of};
use crate::runs::tell::{
    check_text, not_taken, order_id, refuse_ended, refuse_full, reported, tell,
};

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
    Ok((StatusCode::ACCEPTED, Json(Sent { message, existed })))
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
