//! What is said to a run while it goes on: messages, answers, pause and resume. Durable before it is
//! answered, and safe to say again.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use outlast_engine::{Decision, Input, LONGEST_MESSAGE, Run, RunId, State as RunState};
use outlast_wire::api::{
    Answer as Said, AnswerRun, ReportUsage, RunView, SendMessage, Sent, Usage,
};

use super::Daemon;
use super::error::{Answer, bad_request};
use super::runs::{resolve, snapshot_of, view_of};
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::world;

/// How long news may take to reach a journal that cannot be written.
const DURABLE_WITHIN: Duration = Duration::from_secs(10);

#[utoipa::path(post, path = "/v1/runs/{run}/messages", params(("run" = String, Path)), request_body = SendMessage,
    responses((status = 202, description = "the message is durable", body = Sent)))]
pub(crate) async fn send(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    body: Result<Json<SendMessage>, JsonRejection>,
) -> Answer<(StatusCode, Json<Sent>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let text = check_text(&asked.text)?.to_owned();
    let id = resolve(&supervisor, &run).await?;
    let message = asked.id.map_or_else(made_id, Ok)?;
    let from = match &asked.from {
        Some(from) => format!("run {}", resolve(&supervisor, from).await?),
        None => "user".to_owned(),
    };
    let before = snapshot_of(&supervisor, &id).await?.run;
    let existed = before.inbox.has_had(&message);
    if !existed {
        refuse_ended(&before)?;
        refuse_full(&before)?;
    }
    tell(&supervisor, &id, Input::Sent { message: message.clone(), from, text }).await?;
    let after = snapshot_of(&supervisor, &id).await?.run;
    if !after.inbox.has_had(&message) {
        refuse_ended(&after)?;
        refuse_full(&after)?;
    }
    Ok((StatusCode::ACCEPTED, Json(Sent { message, existed })))
}

#[utoipa::path(post, path = "/v1/runs/{run}/answer", params(("run" = String, Path)), request_body = AnswerRun,
    responses((status = 202, description = "the answer is durable", body = RunView)))]
pub(crate) async fn answer(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    body: Result<Json<AnswerRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<RunView>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let id = resolve(&supervisor, &run).await?;
    let before = snapshot_of(&supervisor, &id).await?.run;
    let (decision, text) = match &asked.answer {
        Said::Approve => (Decision::Approve, "approved"),
        Said::Deny => (Decision::Deny, "denied"),
        Said::Text(text) => (Decision::Reply, check_text(text)?),
    };
    // Whether something is emitted is the host's business; any other question was the agent's.
    let message = match decision {
        Decision::Approve | Decision::Deny if before.needs_decision() => None,
        Decision::Approve | Decision::Deny | Decision::Reply => {
            Some((asked.id.clone().map_or_else(made_id, Ok)?, text.to_owned()))
        }
    };
    let was_given = message.as_ref().is_some_and(|(message, _)| before.inbox.has_had(message));
    if !was_given {
        refuse_answer(&before, decision)?;
        if message.is_some() {
            refuse_full(&before)?;
        }
        supervisor.resumes.free(&id);
        tell(&supervisor, &id, Input::Answered { decision, message }).await?;
    }
    Ok((StatusCode::ACCEPTED, Json(view_of(&supervisor, &id).await?)))
}

#[utoipa::path(post, path = "/v1/runs/{run}/pause", params(("run" = String, Path)),
    responses((status = 202, description = "the order is durable", body = RunView)))]
pub(crate) async fn pause(
    State(supervisor): Daemon,
    Path(run): Path<String>,
) -> Answer<(StatusCode, Json<RunView>)> {
    let id = resolve(&supervisor, &run).await?;
    refuse_ended(&snapshot_of(&supervisor, &id).await?.run)?;
    tell(&supervisor, &id, Input::PauseAsked).await?;
    Ok((StatusCode::ACCEPTED, Json(view_of(&supervisor, &id).await?)))
}

#[utoipa::path(post, path = "/v1/runs/{run}/resume", params(("run" = String, Path)),
    responses((status = 202, description = "the order is durable", body = RunView)))]
pub(crate) async fn resume(
    State(supervisor): Daemon,
    Path(run): Path<String>,
) -> Answer<(StatusCode, Json<RunView>)> {
    let id = resolve(&supervisor, &run).await?;
    let before = snapshot_of(&supervisor, &id).await?.run;
    refuse_ended(&before)?;
    if before.is_held && !before.is_paused && before.state != RunState::Blocked {
        let refusal = Refusal::new("held", format!("run {id} is paused with every other run"));
        return Err(refusal.hint("`outlast resume --all` lets everything go on").into());
    }
    if before.needs_decision() && !before.is_paused {
        return Err(needs_decision(&id).into());
    }
    if !before.may_resume() {
        let state = before.state.name().word();
        let refusal =
            Refusal::new("not_paused", format!("run {id} is {state}, neither paused nor blocked"));
        return Err(refusal.hint("there is nothing to resume").into());
    }
    // A person's word is no resume after a restart.
    supervisor.resumes.free(&id);
    tell(&supervisor, &id, Input::ResumeAsked).await?;
    Ok((StatusCode::ACCEPTED, Json(view_of(&supervisor, &id).await?)))
}

/// More than this, in tokens or in dollars, is a mistake and no report.
const MOST_TOKENS: u64 = 1_000_000_000_000_000;
const MOST_USD_MICROS: u64 = 1_000_000_000_000_000;

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
        return Err(Refusal::new("not_live", message).hint(hint).into());
    };
    tell(&supervisor, &id, Input::UsageReported { turn, attempt, usage }).await?;
    let after = snapshot_of(&supervisor, &id).await?.run;
    Ok((StatusCode::ACCEPTED, Json(crate::view::usage(&after))))
}

fn reported(asked: &ReportUsage) -> Answer<outlast_engine::Usage> {
    let tokens = |count: Option<u64>| match count {
        Some(count) if count > MOST_TOKENS => {
            Err(bad_request(format!("{count} tokens are too many to be true")))
        }
        count => Ok(count),
    };
    let micros = |usd: f64| {
        let text = format!("{usd:.6}");
        let micros = outlast_workflow::micros(&text).filter(|micros| *micros <= MOST_USD_MICROS);
        micros.ok_or_else(|| bad_request(format!("{usd} is not an amount in US dollars")))
    };
    let usage = outlast_engine::Usage {
        input_tokens: tokens(asked.input_tokens)?,
        output_tokens: tokens(asked.output_tokens)?,
        cached_tokens: tokens(asked.cached_tokens)?,
        cost_usd_micros: asked.cost_usd.map(micros).transpose()?,
    };
    if usage == outlast_engine::Usage::default() {
        return Err(bad_request("there is no usage in it".to_owned()));
    }
    Ok(usage)
}

/// Brings news to a run, and waits until the journal has it.
pub(super) async fn tell(supervisor: &Arc<Supervisor>, id: &RunId, input: Input) -> Answer<()> {
    let Some(handle) = supervisor.handle(id) else {
        return if supervisor.resumes.is_lost(id) { Err(nobody(id).into()) } else { Ok(()) };
    };
    match tokio::time::timeout(DURABLE_WITHIN, handle.tell(input)).await {
        Ok(Some(())) => Ok(()),
        // A conductor goes when its run is over. One that died before that has written nothing down.
        Ok(None) if snapshot_of(supervisor, id).await?.run.is_open() => Err(nobody(id).into()),
        Ok(None) => Ok(()),
        Err(_elapsed) => {
            let trouble = supervisor
                .trouble_of(id)
                .map_or_else(|| "it does not answer".to_owned(), |trouble| trouble.message);
            let message = format!("this could not be written to the journal of {id}: {trouble}");
            Err(Refusal::new("disk_full", message)
                .hint("it will be as soon as there is space; look with `outlast show`")
                .into())
        }
    }
}

/// Its conductor has died, or it cannot be read: what is said now would reach no journal.
fn nobody(id: &RunId) -> Refusal {
    Refusal::new("busy", format!("run {id} has nobody just now who could write that down"))
        .hint("ask again; `outlast doctor` shows what is wrong with it")
}

fn made_id() -> Answer<String> {
    Ok(RunId::from_random(world::random()?).0)
}

fn check_text(text: &str) -> Answer<&str> {
    if text.trim().is_empty() {
        return Err(bad_request("a message needs text".to_owned()));
    }
    if text.len() > LONGEST_MESSAGE {
        let refusal = Refusal::new(
            "bad_request",
            format!("a message of {} bytes is longer than {LONGEST_MESSAGE}", text.len()),
        );
        return Err(refusal.hint("put it into a file of the workspace and name that").into());
    }
    Ok(text)
}

fn refuse_ended(run: &Run) -> Answer<()> {
    if !run.has_ended() {
        return Ok(());
    }
    let message = format!("run {} has ended: {}", run.id, run.state.name().word());
    Err(Refusal::new("has_ended", message).hint("start another with `outlast run`").into())
}

fn refuse_full(run: &Run) -> Answer<()> {
    if !run.inbox.is_full() {
        return Ok(());
    }
    let message = format!("the inbox of {} holds {} messages", run.id, run.inbox.unread.len());
    Err(Refusal::new("inbox_full", message).hint("its next turn takes them").into())
}

fn refuse_answer(run: &Run, decision: Decision) -> Answer<()> {
    refuse_ended(run)?;
    if run.state != RunState::Blocked {
        let state = run.state.name().word();
        let refusal =
            Refusal::new("not_blocked", format!("run {} is {state}, not blocked", run.id));
        return Err(refusal.hint("`outlast send` leaves a message for its next turn").into());
    }
    match decision {
        Decision::Reply if run.needs_decision() => Err(needs_decision(&run.id).into()),
        Decision::Reply | Decision::Approve | Decision::Deny => Ok(()),
    }
}

fn needs_decision(id: &RunId) -> Refusal {
    Refusal::new("needs_decision", format!("run {id} waits for a yes or a no"))
        .hint(format!("`outlast answer {id} --approve` or `outlast answer {id} --deny`"))
}
