//! Budgets that runs share.

use axum::Json;
use axum::extract::State;
use outlast_engine::Exceeded;
use outlast_store::Amount;
use outlast_wire::api::{BudgetView, Spent};

use super::Daemon;
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::view;
use outlast_conduct::budgets::BudgetStatus;

#[utoipa::path(get, path = "/v1/budgets", responses((status = 200, body = [BudgetView])))]
pub(crate) async fn list(State(supervisor): Daemon) -> Answer<Json<Vec<BudgetView>>> {
    let standing = blocking(move || {
        // The person who looks has perhaps just changed them.
        let _holds = supervisor.config();
        Ok(supervisor.budgets())
    });
    Ok(Json(standing.await?.iter().map(budget).collect()))
}

fn budget(standing: &BudgetStatus) -> BudgetView {
    let BudgetStatus { rule, used, reserved, resets_at } = standing;
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
