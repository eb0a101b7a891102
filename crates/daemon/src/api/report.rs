//! What the lists do not have of a night: the daemon's own diary, by the daemon's clock.

use axum::Json;
use axum::extract::State;
use outlast_engine::Time;
use outlast_wire::api::NightView;
use serde::Deserialize;

use super::Daemon;
use super::extract::Query;
use crate::refusal::{Answer, bad_request};

/// Without either parameter.
const HALF_A_DAY_MS: u64 = 12 * 3_600_000;

#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ReportQuery {
    /// RFC 3339; 12 hours ago when absent.
    since: Option<String>,
    /// The same as a length of time before the daemon's now.
    ago_ms: Option<u64>,
}

/// Says what happened to the daemon since a time
///
/// Starts of daemons, reboots and missed times of schedules. `outlast report` puts it beside the lists of runs, budgets and sinks.
#[utoipa::path(get, operation_id = "report_night", path = "/v1/report", params(ReportQuery), responses((status = 200, description = "what the daemon's diary has", body = NightView)))]
pub(crate) async fn night(
    State(supervisor): Daemon,
    Query(query): Query<ReportQuery>,
) -> Answer<Json<NightView>> {
    let now = supervisor.ground.world.now();
    let since = match (&query.since, query.ago_ms) {
        (Some(text), None) => time(text)?,
        (None, ago_ms) => Time(now.0.saturating_sub(ago_ms.unwrap_or(HALF_A_DAY_MS))),
        (Some(_), Some(_)) => {
            return Err(bad_request("since and ago_ms are the same thing; give one"));
        }
    };
    Ok(Json(supervisor.ground.diary.since(since, now)))
}

fn time(text: &str) -> Answer<Time> {
    let at: jiff::Timestamp = text.parse().map_err(|_| {
        bad_request(format!("since={text:?} is no time")).hint("write 2026-11-15T20:50:00Z")
    })?;
    Ok(Time(u64::try_from(at.as_millisecond()).unwrap_or(0)))
}
