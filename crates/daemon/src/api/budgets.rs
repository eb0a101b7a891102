//! Budgets that runs share, and what was spent day by day.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use jiff::{Timestamp, ToSpan, tz::TimeZone};
use outlast_engine::{Exceeded, Time};
use outlast_store::{Account, Amount, Used, begin_of, slot};
use outlast_wire::api::{BudgetView, SpendDay, SpendView, Spent};
use serde::Deserialize;

use super::Daemon;
use super::extract::Query;
use crate::lanes::blocking;
use crate::refusal::{Answer, bad_request};
use crate::view;
use outlast_conduct::budgets::BudgetStatus;

/// Lists the budgets that runs share
///
/// Reads the config again, so that a change of it shows at once.
#[utoipa::path(get, operation_id = "list_budgets", path = "/v1/budgets", responses((status = 200, description = "the budgets", body = [BudgetView])))]
pub(crate) async fn list(State(supervisor): Daemon) -> Answer<Json<Vec<BudgetView>>> {
    let standing = blocking(move || {
        // The person who looks has perhaps just changed them.
        let _holds = supervisor.config();
        Ok(supervisor.budgets())
    });
    Ok(Json(standing.await?.iter().map(budget).collect()))
}

fn budget(standing: &BudgetStatus) -> BudgetView {
    let BudgetStatus { rule, used, reserved, day, waiting } = standing;
    let max = Amount {
        tokens: rule.max_tokens.unwrap_or(0),
        cost_usd_micros: rule.max_cost_usd_micros.unwrap_or(0),
    };
    let spent = |amount: Amount| Spent {
        tokens: rule.max_tokens.map(|_| amount.tokens),
        cost_usd: rule.max_cost_usd_micros.map(|_| view::usd(amount.cost_usd_micros)),
    };
    let Used { amount, reserved: unreported, unreported: unreported_attempts } = *used;
    BudgetView {
        name: rule.name.clone(),
        label: rule.label.clone(),
        period: rule.per.word().to_owned(),
        on_exceed: match rule.on_exceed {
            Exceeded::Wait => "wait".to_owned(),
            Exceeded::End => "end".to_owned(),
        },
        tz: day.as_ref().map(|day| day.zone.clone()),
        used: spent(amount),
        known: unreported_attempts == 0 && unreported.is_nothing(),
        unreported: spent(unreported),
        unreported_attempts,
        waiting: u64::try_from(*waiting).unwrap_or(u64::MAX),
        reserved: spent(*reserved),
        max: spent(max),
        left: spent(max.minus(amount)),
        resets_at: standing.resets_at().map(view::rfc3339),
    }
}

/// Days that are told, unless others are asked for, and at most.
const DAYS: u16 = 30;
const MOST_DAYS: u16 = 366;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SpendQuery {
    /// So many days up to today; 30 when absent, and never more than 366.
    days: Option<u16>,
    /// A name of the time zone database, in which days begin; UTC when absent.
    tz: Option<String>,
}

/// Says what was used up, day by day and by labels
///
/// From the ledger, which keeps what a run used also after the run was removed.
#[utoipa::path(get, operation_id = "show_spend", path = "/v1/spend", params(SpendQuery), responses((status = 200, description = "the days", body = SpendView)))]
pub(crate) async fn spend(
    State(supervisor): Daemon,
    Query(query): Query<SpendQuery>,
) -> Answer<Json<SpendView>> {
    let tz = query.tz.unwrap_or_else(|| "UTC".to_owned());
    let zone = TimeZone::get(&tz)
        .map_err(|error| bad_request(format!("{tz:?} is not a time zone: {error}")))?;
    let days = query.days.unwrap_or(DAYS).clamp(1, MOST_DAYS);
    let now = supervisor.ground.world.now();
    let since = first_moment(now, &zone, days)
        .map_err(|error| bad_request(format!("{days} days: {error}")))?;
    let store = supervisor.ground.store.clone();
    let accounts = blocking(move || Ok(store.accounts_by_slot(slot(since))?)).await?;
    Ok(Json(SpendView { tz, days: by_day(accounts, &zone) }))
}

/// When the first of so many days begins, the last of which is today.
fn first_moment(now: Time, zone: &TimeZone, days: u16) -> Result<Time, jiff::Error> {
    let today = moment(now)?.to_zoned(zone.clone()).date();
    let first = today.checked_sub((i64::from(days) - 1).days())?.to_zoned(zone.clone())?;
    Ok(Time(u64::try_from(first.timestamp().as_millisecond()).unwrap_or(0)))
}

fn moment(at: Time) -> Result<Timestamp, jiff::Error> {
    Timestamp::from_millisecond(i64::try_from(at.0).unwrap_or(i64::MAX))
}

fn by_day(accounts: Vec<(u64, Account)>, zone: &TimeZone) -> Vec<SpendDay> {
    let mut days: BTreeMap<(String, BTreeMap<String, String>), Used> = BTreeMap::new();
    for (slot, account) in accounts {
        let Ok(at) = moment(begin_of(slot)) else { continue };
        let day = at.to_zoned(zone.clone()).date().to_string();
        let sum = days.entry((day, account.labels)).or_default();
        *sum = sum.plus(account.used);
    }
    let of = |((day, labels), used): ((String, BTreeMap<String, String>), Used)| SpendDay {
        day,
        labels,
        cost_usd: view::usd(used.amount.cost_usd_micros),
        tokens: used.amount.tokens,
        unreported_usd: view::usd(used.reserved.cost_usd_micros),
        unreported_tokens: used.reserved.tokens,
        unreported_attempts: used.unreported,
    };
    days.into_iter().map(of).collect()
}
