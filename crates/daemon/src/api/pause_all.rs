//! `pause --all` and `resume --all`, and the orders to the daemon itself that it remembers.
//!
//! Each has an id and counts once: one that comes again is answered with what it was, and undoes nothing that another
//! client has ordered since. Of two different orders the later holds, and neither is refused for the other's sake: a
//! person who pauses everything must not lose to a script.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use outlast_engine::{self as engine, By, Input};
use outlast_wire::api::{HoldView, OrderView, PauseAll, ResumeAll};
use tokio::sync::oneshot;

use super::orders::given;
use super::{Daemon, to_the_end};
use crate::lanes::blocking;
use crate::mailbox::Message;
use crate::order_book::{Taken, Verb};
use crate::refusal::Answer;
use crate::runs::callers::Caller;
use crate::runs::tell::order_id;
use crate::supervisor::Supervisor;
use crate::view;

/// How long runs may take to follow `pause --all`. The pause holds whether or not they have: it is durable.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(10);

type Done = Answer<(StatusCode, Json<HoldView>)>;

/// Pauses every run
///
/// Every run rests after the turn it is at, and every new one before its first, until it is taken back.
#[utoipa::path(post, operation_id = "pause_all", path = "/v1/daemon/pause", request_body(content = Option<PauseAll>, description = "may be left out"),
    responses((status = 202, description = "this order is durable", body = HoldView), (status = 403), (status = 409, description = "the id is another order's")))]
pub(crate) async fn pause_all(
    State(supervisor): Daemon,
    caller: Caller,
    body: Result<Option<Json<PauseAll>>, JsonRejection>,
) -> Done {
    let asked = given(body)?;
    let verb = if asked.now { Verb::PauseAllNow } else { Verb::PauseAll };
    order(supervisor, caller, verb, asked.id).await
}

/// Resumes every run that was paused with all
///
/// A run that was paused by itself, or that is blocked, rests on.
#[utoipa::path(post, operation_id = "resume_all", path = "/v1/daemon/resume", request_body(content = Option<ResumeAll>, description = "may be left out"),
    responses((status = 202, description = "this order is durable", body = HoldView), (status = 403), (status = 409, description = "the id is another order's")))]
pub(crate) async fn resume_all(
    State(supervisor): Daemon,
    caller: Caller,
    body: Result<Option<Json<ResumeAll>>, JsonRejection>,
) -> Done {
    order(supervisor, caller, Verb::ResumeAll, given(body)?.id).await
}

/// Lists the last orders to the daemon itself, the oldest first
///
/// Orders to a run are in its events.
#[utoipa::path(get, operation_id = "list_orders", path = "/v1/orders", responses((status = 200, description = "the orders", body = [OrderView])))]
pub(crate) async fn list(State(supervisor): Daemon) -> Json<Vec<OrderView>> {
    Json(supervisor.orders.views())
}

async fn order(
    supervisor: Arc<Supervisor>,
    caller: Caller,
    verb: Verb,
    id: Option<String>,
) -> Done {
    let by = caller.may_steer_all(&supervisor, "pause or resume all runs").await?;
    let id = order_id(id)?;
    let view = to_the_end(take(supervisor, verb, id, by)).await?;
    Ok((StatusCode::ACCEPTED, Json(view)))
}

/// Takes the order, unless it was taken before, and has the runs follow it if it is the one that holds.
async fn take(
    supervisor: Arc<Supervisor>,
    verb: Verb,
    id: String,
    by: Option<By>,
) -> Answer<HoldView> {
    let turn = supervisor.orders.turn().await;
    let existed = supervisor.orders.find(&id, verb, None, None)?.is_some();
    let held_before = supervisor.held_since().map(view::rfc3339);
    if !existed {
        let wanted =
            if verb == Verb::ResumeAll { engine::PauseAll::Off } else { engine::PauseAll::On };
        let at_ms = supervisor.ground.world.now().0;
        let taken =
            Taken { id: id.clone(), verb, trigger: None, trigger_id: None, by, at_ms, said: None };
        tracing::info!(
            order = id,
            verb = verb.word(),
            given = taken.when_and_who(),
            "for all runs"
        );
        let page = turn.page_with(taken);
        let (setter, next) = (supervisor.clone(), page.clone());
        blocking(move || Ok(setter.set_pause_all(wanted, &next)?)).await?;
        turn.turn_to(page);
    }
    drop(turn);
    let superseded = supervisor.orders.last_word().filter(|word| word.id != id);
    // Also after an order that was taken before: its daemon may have died before the runs were told.
    let runs = match superseded {
        None if verb == Verb::PauseAllNow => followed(&supervisor, &Input::PauseAllNow).await,
        None => followed(&supervisor, &Input::Woke).await,
        Some(_) => 0,
    };
    let held_since = supervisor.held_since().map(view::rfc3339);
    let superseded = superseded.map(|word| word.view());
    Ok(HoldView { held_since, held_before, runs, order: Some(id), existed, superseded })
}

/// How many runs have followed the word that holds.
async fn followed(supervisor: &Arc<Supervisor>, news: &Input) -> u64 {
    let mut runs = 0;
    let followed = async {
        // Told all of them first, so that they write together.
        let mut told = Vec::new();
        for (_, handle) in supervisor.handles() {
            let has_ended = handle.snapshot.borrow().run.has_ended();
            let (done, answer) = oneshot::channel();
            let message = Message::Input { input: news.clone(), done: Some(done) };
            if !has_ended && handle.mailbox.send(message).await.is_ok() {
                told.push(answer);
            }
        }
        for answer in told {
            runs += u64::from(answer.await.is_ok());
        }
    };
    // One that cannot follow yet does so with its next news.
    let _late = tokio::time::timeout(FOLLOWED_WITHIN, followed).await;
    runs
}
