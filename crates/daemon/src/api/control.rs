//! What is said to a run while it goes on: messages, and what it has used up. Durable before it is answered,
//! and safe to say again.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use outlast_agents::capabilities;
use outlast_engine::{Input, Run, RunId};
use outlast_wire::api::{Reaches, ReportUsage, SendMessage, Sent, Usage};
use outlast_wire::codes::Code;

use super::Daemon;
use super::extract::Path;
use crate::lanes::blocking;
use crate::redaction;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::{by_name, resolve, snapshot_of};
use crate::runs::orders::reads_no_message;
use crate::runs::tell::{
    check_text, not_taken, order_id, refuse_ended, refuse_full, reported, tell,
};
use crate::supervisor::Supervisor;

/// Sends a message to a run
///
/// The next turn gets it, or the agent that is at work if it can take messages.
#[utoipa::path(post, operation_id = "send_message", path = "/v1/runs/{run}/messages", request_body = SendMessage,
    responses((status = 202, description = "the message is durable", body = Sent), (status = 403), (status = 409, description = "the id is that of another message or order, or the run has ended")))]
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
    let sent = deliver(&supervisor, caller, &id, message, from, text).await;
    let sent = by_name(&supervisor, &id, sent).await?;
    Ok((StatusCode::ACCEPTED, Json(sent)))
}

/// The same message comes once: its id is its own, and its text is the one that came first.
async fn deliver(
    supervisor: &Arc<Supervisor>,
    caller: Caller,
    id: &RunId,
    message: String,
    from: String,
    text: String,
) -> Answer<Sent> {
    let before = snapshot_of(supervisor, id).await?.run;
    if let Some(taken) = before.orders.get(&message) {
        let done = taken.verb.done();
        let why = format!("the id {message:?} has {done} run {id} before, and is no message's");
        let hint = "choose a new id for each message";
        return Err(Refusal::new(Code::IdConflict, why).hint(hint));
    }
    refuse_another(supervisor, &before, &message, &text).await?;
    let existed = before.inbox.has_had(&message);
    if !existed {
        refuse_ended(&before)?;
        refuse_full(&before)?;
        refuse_deaf(&before)?;
    }
    let by = caller.who(supervisor).await?;
    let sent = Input::Sent { message: message.clone(), from, text: text.clone(), by };
    let after = tell(supervisor, id, sent).await?;
    refuse_another(supervisor, &after, &message, &text).await?;
    if !after.inbox.has_had(&message) {
        refuse_ended(&after)?;
        refuse_full(&after)?;
        return Err(not_taken(id));
    }
    let reaches = reaches(supervisor, id, &message).await?;
    Ok(Sent { message, existed, reaches })
}

/// Under one id there is one message. The journal has it without secrets, so they are taken out of this one as well; those
/// of a run that has ended are not known any more.
async fn refuse_another(
    supervisor: &Arc<Supervisor>,
    run: &Arc<Run>,
    message: &str,
    text: &str,
) -> Answer<()> {
    if run.has_ended() || !run.inbox.has_had_another(message, text) {
        return Ok(());
    }
    let (reader, of, said) = (supervisor.clone(), run.clone(), text.to_owned());
    let plain =
        blocking(move || Ok(redaction::without_secrets(&reader.ground, &of, said)?)).await?;
    if !run.inbox.has_had_another(message, &plain) {
        return Ok(());
    }
    let why = format!("the id {message:?} is that of another message to run {}", run.id);
    let unread = run.inbox.unread.iter().find(|it| it.id == message);
    let hint = match unread {
        Some(it) => format!("it says {:?}; choose a new id for each message", short(&it.text)),
        None => "choose a new id for each message".to_owned(),
    };
    Err(Refusal::new(Code::IdConflict, why).hint(hint))
}

/// The start of a text, for a message about it.
fn short(text: &str) -> String {
    outlast_engine::cut(text).unwrap_or_default()
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

/// A plain command reads no messages, neither before it runs nor while it does.
fn refuse_deaf(run: &Run) -> Answer<()> {
    if !reads_no_message(run) {
        return Ok(());
    }
    let why = match run.attempt {
        Some(_) => "has no next turn to read a message",
        None => "reads no messages",
    };
    let message = format!("{} is a command that runs once, and {why}", run.id);
    Err(Refusal::new(Code::NoNextTurn, message).hint(
        "agents of loops read messages; outlast run -t gives a command a terminal to type into",
    ))
}

/// Reports what the live attempt has used so far
///
/// All of it, not the difference to the last report.
#[utoipa::path(post, operation_id = "report_usage", path = "/v1/runs/{run}/usage", request_body = ReportUsage,
    responses((status = 202, description = "it counts; what makes no difference yet is not written down", body = Usage), (status = 403)))]
pub(crate) async fn usage(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    caller: Caller,
    body: Result<Json<ReportUsage>, JsonRejection>,
) -> Answer<(StatusCode, Json<Usage>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let usage = reported(&asked)?;
    let id = resolve(&supervisor, &run).await?;
    // Spend that was not had would end another run at its limit.
    caller.may(&supervisor, Right::Steer, &id).await?;
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
