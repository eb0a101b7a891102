//! What the driver of a live attempt says and waits for: questions to a person, and messages within the turn.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use outlast_engine::{AgentAnswer, AsksPerson, Decision, Input, Run};
use outlast_wire::api::{Answer as Said, AtTurn, TurnAnswer, TurnMessage, TurnNews};

use super::Daemon;
use super::extract::Path;
use crate::refusal::{Answer, bad_request};
use crate::runs::find::{resolve, snapshot_of};
use crate::runs::tell::tell;

/// A driver that has heard nothing for so long asks again.
const HOLD: Duration = Duration::from_secs(300);

/// More than this an agent does not ask, take or leave at a time.
const MOST: usize = 1024;

/// Says where the driver of a live attempt is, and waits for news
///
/// For the driver of an agent: its questions, and the messages that its agent has taken.
#[utoipa::path(post, operation_id = "at_turn", path = "/v1/runs/{run}/turn", request_body = AtTurn,
    responses((status = 200, description = "what is news for the driver of this attempt", body = TurnNews)))]
pub(crate) async fn at_turn(
    State(supervisor): Daemon,
    Path(run): Path<String>,
    body: Result<Json<AtTurn>, JsonRejection>,
) -> Answer<Json<TurnNews>> {
    let Json(at) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    if at.questions.len().max(at.taken.len()).max(at.left.len()) > MOST {
        return Err(bad_request(format!("more than {MOST} questions or messages")));
    }
    let id = resolve(&supervisor, &run).await?;
    let (turn, attempt) = (at.turn, at.attempt);
    let mut run = snapshot_of(&supervisor, &id).await?.run;
    for asked in &at.questions {
        if is_live(&run, &at) && !has_asked(&run, &asked.id) {
            let (id, tool, text) = (asked.id.clone(), asked.tool.clone(), asked.text.clone());
            let asks = AsksPerson { id, tool, text };
            run = tell(&supervisor, &run.id, Input::Asked { turn, attempt, asks }).await?;
        }
    }
    for question in withdrawn(&run, &at) {
        run = tell(&supervisor, &run.id, Input::Withdrew { turn, attempt, question }).await?;
    }
    let may_take = |seq: &&u64| run.live().is_some_and(|live| live.may_take(**seq));
    let messages: Vec<u64> = at.taken.iter().filter(may_take).copied().collect();
    if is_live(&run, &at) && !messages.is_empty() {
        tell(&supervisor, &run.id, Input::Gave { turn, attempt, messages }).await?;
    }
    let Some(handle) = supervisor.handle(&id).filter(|_| !at.is_last) else {
        return Ok(Json(news(&snapshot_of(&supervisor, &id).await?.run, &at)));
    };
    let (mut snapshot, mut leaving) = (handle.snapshot, supervisor.ground.leaving());
    let is_news = |run: &Arc<Run>| news(run, &at) != TurnNews::default();
    tokio::select! {
        // A conductor that is gone has nothing more to say: the journal has it.
        _ = snapshot.wait_for(|seen| is_news(&seen.run)) => {}
        _ = leaving.wait_for(Option::is_some) => {}
        () = tokio::time::sleep(HOLD) => {}
    }
    Ok(Json(news(&snapshot_of(&supervisor, &id).await?.run, &at)))
}

fn is_live(run: &Run, at: &AtTurn) -> bool {
    run.live().is_some_and(|live| live.is(at.turn, at.attempt))
}

/// What the journal has open and the driver no longer has: it was refused by a policy, or the agent took it back.
fn withdrawn(run: &Run, at: &AtTurn) -> Vec<String> {
    let live = run.live().filter(|live| live.is(at.turn, at.attempt));
    let open = live.into_iter().flat_map(|live| live.asked.iter());
    let is_gone = |id: &String| !at.questions.iter().any(|asked| asked.id == *id);
    open.filter(|it| it.answer.is_none()).map(|it| it.id.clone()).filter(is_gone).collect()
}

fn has_asked(run: &Run, question: &str) -> bool {
    run.live().is_some_and(|live| live.asked.get(question).is_some())
}

/// What the driver does not know yet.
fn news(run: &Run, at: &AtTurn) -> TurnNews {
    let Some(live) = run.live().filter(|live| live.is(at.turn, at.attempt)) else {
        return TurnNews { over: true, ..TurnNews::default() };
    };
    let answer = |id: &String| {
        let answer = said(live.asked.get(id)?.answer.as_ref()?);
        Some(TurnAnswer { question: id.clone(), answer })
    };
    let is_new =
        |seq: u64| live.may_take(seq) && !at.taken.contains(&seq) && !at.left.contains(&seq);
    TurnNews {
        answers: at.questions.iter().filter_map(|asked| answer(&asked.id)).collect(),
        messages: run
            .inbox
            .unread
            .iter()
            .filter(|message| is_new(message.seq))
            .map(|message| TurnMessage {
                seq: message.seq,
                from: message.from.clone(),
                text: message.text.clone(),
            })
            .collect(),
        over: false,
    }
}

fn said(answer: &AgentAnswer) -> Said {
    match (answer.decision, &answer.text) {
        (Decision::Approve, _) => Said::Approve,
        (Decision::Deny, _) | (Decision::Reply, None) => Said::Deny,
        (Decision::Reply, Some(text)) => Said::Text(text.clone()),
    }
}
