//! The links of notices: what one is about, and the answer that it gives.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outlast_engine::{Decision, Input, Run, Verb};
use outlast_wire::api::LinkView;
use outlast_wire::codes::Code;

use super::Daemon;
use super::extract::Path;
use crate::answer_links::AnswerLink;
use crate::refusal::{Answer, Refusal};
use crate::runs::callers::Caller;
use crate::runs::find::snapshot_of;
use crate::runs::orders::{Given, refuse_answer, said};
use crate::supervisor::Supervisor;
use crate::view;

/// Returns what the link of a notice is about
///
/// Changes nothing, however often it is asked.
#[utoipa::path(get, operation_id = "show_link", path = "/v1/links/{token}",
    responses((status = 200, description = "what it would do, or why it does nothing more", body = LinkView), (status = 404, description = "it was not made here, or is too old")))]
pub(crate) async fn show(
    State(supervisor): Daemon,
    Path(token): Path<String>,
) -> Answer<Json<LinkView>> {
    let link = checked(&supervisor, &token)?;
    Ok(Json(shown(&supervisor, &link).await?))
}

/// Answers a question with the link of its notice
///
/// Counts once; the second time it says what was answered, and by whom. Refused if the answer is another's.
#[utoipa::path(post, operation_id = "press_link", path = "/v1/links/{token}",
    responses((status = 202, description = "this answer is in the journal, as `over` says", body = LinkView), (status = 403), (status = 409, description = "it was answered otherwise, or is asked no longer"), (status = 404, description = "it was not made here, or is too old")))]
pub(crate) async fn press(
    State(supervisor): Daemon,
    Path(token): Path<String>,
    caller: Caller,
) -> Answer<(StatusCode, Json<LinkView>)> {
    let link = checked(&supervisor, &token)?;
    let caller = Caller { via: Some(link.via()), ..caller };
    let decision = link.decision;
    let text = if decision == Decision::Approve { "approved" } else { "denied" };
    // The same link is the same order; its proof is no part of the journal.
    let id = format!("link-{}", supervisor.ground.tokens.digest(&token)?);
    let message = Some((id.clone(), text.to_owned()));
    let said = said(&supervisor, &(link.seq, text))?;
    let given = Given { id, seq: Some(link.seq), verb: Verb::Answer(decision), said };
    let refuse = move |run: &Run, seq| refuse_answer(run, decision, seq);
    let input = |order| Input::Answered { decision, message, order };
    given.give(&supervisor, caller, &link.run, refuse, input).await?;
    Ok((StatusCode::ACCEPTED, Json(shown(&supervisor, &link).await?)))
}

/// The link, if it was made here and is not too old.
fn checked(supervisor: &Supervisor, token: &str) -> Answer<AnswerLink> {
    let now = supervisor.ground.world.now();
    let link = AnswerLink::read(token, &supervisor.ground.tokens)?;
    link.filter(|link| i128::from(now.0) < i128::from(link.until_ms)).ok_or_else(|| {
        let message = "this link was not made here, or is older than a day";
        Refusal::new(Code::BadLink, message.to_owned()).hint("outlast web url")
    })
}

async fn shown(supervisor: &Arc<Supervisor>, link: &AnswerLink) -> Answer<LinkView> {
    let run = snapshot_of(supervisor, &link.run).await?.run;
    let over = refuse_answer(&run, link.decision, Some(link.seq)).err();
    let decision = if link.decision == Decision::Approve { "approve" } else { "deny" };
    let question = over.is_none().then(|| question(&run)).flatten();
    Ok(LinkView {
        run: run.id.0.clone(),
        name: run.spec.name.clone(),
        decision: decision.to_owned(),
        question,
        over: over.map(|refusal| refusal.message),
    })
}

/// What the run asks now.
fn question(run: &Run) -> Option<String> {
    let asked = run.open_question().map(|open| open.text.clone());
    asked.or_else(|| view::blocked(run)?.question)
}
