//! Budgets that runs share, and the word for all of them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outlast_engine::{Exceeded, Hold, Input};
use outlast_store::Amount;
use outlast_wire::api::{BudgetView, HoldView, PauseAll, Spent};
use tokio::sync::oneshot;

use super::Daemon;
use super::error::Answer;
use super::runs::blocking;
use crate::budgets::Standing;
use crate::conductor::Message;
use crate::supervisor::Supervisor;
use crate::view;

/// How long runs may take to follow the word for all. It holds whether or not they have: it is durable.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(10);

#[utoipa::path(get, path = "/v1/budgets", responses((status = 200, body = [BudgetView])))]
pub(crate) async fn list(State(supervisor): Daemon) -> Answer<Json<Vec<BudgetView>>> {
    let standing = blocking(move || {
        // Whoever looks has perhaps just changed them.
        let _holds = supervisor.config();
        Ok(supervisor.budgets())
    });
    Ok(Json(standing.await?.iter().map(budget).collect()))
}

fn budget(standing: &Standing) -> BudgetView {
    let Standing { rule, used, reserved, resets_at } = standing;
    let max = Amount {
        tokens: rule.max_tokens.unwrap_or(0),
        cost_usd_micros: rule.max_cost_usd_micros.unwrap_or(0),
    };
    let spent = |amount: Amount| Spent {
        tokens: rule.max_tokens.map(|_| amount.tokens),
        cost_usd: rule.max_cost_usd_micros.map(|_| view::usd(amount.cost_usd_micros)),
    };
    let (used, reserved) = (*used, *reserved);
    BudgetView {
        name: rule.name.clone(),
        label: rule.label.clone(),
        period: rule.per.word().to_owned(),
        on_exceed: match rule.on_exceed {
            Exceeded::Wait => "wait".to_owned(),
            Exceeded::End => "end".to_owned(),
        },
        used: spent(used),
        reserved: spent(reserved),
        max: spent(max),
        left: spent(max.minus(used)),
        resets_at: resets_at.map(view::rfc3339),
    }
}

/// Has every run rest after the turn it is at, and every new one before its first, until it is taken back.
#[utoipa::path(post, path = "/v1/daemon/pause", request_body = PauseAll,
    responses((status = 202, description = "the word is durable", body = HoldView)))]
pub(crate) async fn pause_all(
    State(supervisor): Daemon,
    body: Option<Json<PauseAll>>,
) -> Answer<(StatusCode, Json<HoldView>)> {
    let now = body.is_some_and(|Json(asked)| asked.now);
    set(supervisor, Hold::On, if now { Input::HoldNow } else { Input::Woke }).await
}

/// Lets everything go on that only the word for all has rest.
#[utoipa::path(post, path = "/v1/daemon/resume", responses((status = 202, description = "the word is durable", body = HoldView)))]
pub(crate) async fn resume_all(State(supervisor): Daemon) -> Answer<(StatusCode, Json<HoldView>)> {
    set(supervisor, Hold::Off, Input::Woke).await
}

async fn set(
    supervisor: Arc<Supervisor>,
    hold: Hold,
    news: Input,
) -> Answer<(StatusCode, Json<HoldView>)> {
    let setter = supervisor.clone();
    let since = blocking(move || Ok(setter.set_hold(hold)?)).await?;
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
    let held_since = since.map(view::rfc3339);
    Ok((StatusCode::ACCEPTED, Json(HoldView { held_since, runs })))
}
