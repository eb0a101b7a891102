//! The days around now, for the schedule: what each trigger has made, which of its times passed without a run, what comes.
//!
//! Puts together what the daemon tells about each trigger. A time is called missed only if the daemon's diary has it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use outlast_client::ask::Ask;
use outlast_client::session::Session;
use outlast_wire::api::{NextTimes, NightView, RunRow, TriggerView};
use serde_json::{Value, json};

use crate::pages::row_of;
use crate::refusal::Refusal;
use crate::state::Web;

/// Days before now that the diary is asked for; the page shows three, in any time zone.
const BACK_MS: u64 = 4 * 24 * 3_600_000;
/// Triggers, and of each of them runs and coming times.
const MOST_TRIGGERS: usize = 40;
const MOST_RUNS: usize = 200;
const MOST_NEXT: usize = 200;

pub(crate) async fn week(State(web): State<Arc<Web>>) -> Result<Response, Refusal> {
    let mut session = Session::again(&web.world);
    let triggers: Vec<TriggerView> = session.call(&Ask::get("/v1/triggers")).await?;
    let night: NightView = session.call(&Ask::get("/v1/report").query("ago_ms", BACK_MS)).await?;
    let mut told = Vec::new();
    for trigger in triggers.iter().take(MOST_TRIGGERS) {
        told.push(one(&web, &mut session, trigger, &night).await?);
    }
    Ok(Json(json!({
        "now": night.now,
        "unknown_before": night.unknown_before,
        "more_triggers": triggers.len().saturating_sub(MOST_TRIGGERS),
        "triggers": told,
    }))
    .into_response())
}

async fn one(
    web: &Web,
    session: &mut Session<'_>,
    trigger: &TriggerView,
    night: &NightView,
) -> Result<Value, Refusal> {
    let ask = Ask::get("/v1/runs").query("all", true).query("trigger", &trigger.name);
    let runs: Vec<RunRow> = session.call(&ask.query("limit", MOST_RUNS)).await?;
    // A paused one is asked, too, for its zone. One that was removed meanwhile says so in its place.
    let next = match trigger.missed.is_some() {
        true => session.call(&next_of(&trigger.name)).await,
        false => Ok(NextTimes { tz: String::new(), next: Vec::new() }),
    };
    let (tz, next, problem) = match next {
        Ok(NextTimes { tz, next }) => (Some(tz).filter(|tz| !tz.is_empty()), next, Value::Null),
        Err(problem) => (None, Vec::new(), Refusal::from(problem).as_json()),
    };
    let missed: Vec<_> = night.missed.iter().filter(|it| it.trigger == trigger.name).collect();
    Ok(json!({
        "name": trigger.name,
        "kind": trigger.kind,
        "paused": trigger.paused,
        "tz": tz,
        "problem": problem,
        "more_next": next.len() == MOST_NEXT,
        "next": next,
        "runs": runs.iter().map(|row| row_of(web, row)).collect::<Vec<_>>(),
        "more_runs": runs.len() == MOST_RUNS,
        "missed": missed,
    }))
}

fn next_of(trigger: &str) -> Ask {
    Ask::get("/v1/next").query("trigger", trigger).query("n", MOST_NEXT)
}
