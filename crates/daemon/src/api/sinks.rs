//! Sinks: which there are and how delivery goes, a test of one, and delivery to one that was given up on.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use outlast_store::{Change, SinkState};
use outlast_wire::api::{NamedSink, SinkRow, SinkTested};
use outlast_wire::codes::Code;
use outlast_workflow::notify::{Sink, shown};

use super::Daemon;
use crate::lanes::blocking;
use crate::notify::{self, Outcome};
use crate::refusal::{Answer, Refusal, bad_request};
use crate::supervisor::Supervisor;
use crate::view::rfc3339;

/// Lists the sinks
///
/// Every sink of the config, and every other that something was delivered to or waits for.
#[utoipa::path(get, operation_id = "list_sinks", path = "/v1/sinks", responses((status = 200, description = "the sinks", body = [SinkRow])))]
pub(crate) async fn list(State(supervisor): Daemon) -> Answer<Json<Vec<SinkRow>>> {
    Ok(Json(blocking(move || rows(&supervisor)).await?))
}

/// Every sink of the config, and every other that something was told or is to be told.
fn rows(supervisor: &Supervisor) -> Answer<Vec<SinkRow>> {
    let config = supervisor.config().map_err(|refused| notify::unreadable(&refused))?;
    let states = supervisor.ground.store.sink_states()?;
    let mut states: BTreeMap<String, SinkState> =
        states.into_iter().map(|state| (state.sink.clone(), state)).collect();
    let named = config.sinks.iter().map(|(name, sink)| row(name, Some(sink), states.remove(name)));
    let mut rows: Vec<SinkRow> = named.collect();
    // An address that has nothing waiting and no trouble is a run's business, not the operator's.
    let is_of_interest =
        |state: &SinkState| state.pending > 0 || state.given_up > 0 || state.health.is_some();
    for (name, state) in states.into_iter().filter(|(_, state)| is_of_interest(state)) {
        let sink = Sink::at(&name).and_then(Result::ok);
        rows.push(row(&name, sink.as_ref(), Some(state)));
    }
    Ok(rows)
}

fn row(name: &str, sink: Option<&Sink>, state: Option<SinkState>) -> SinkRow {
    let mut row = SinkRow {
        name: shown(name),
        kind: sink.map(|sink| sink.way.kind().to_owned()),
        level: sink.map(|sink| sink.level.word().to_owned()),
        pending: 0,
        delivered: 0,
        given_up: 0,
        oldest_pending_at: None,
        failing_since: None,
        next_try_at: None,
        problem: None,
        disabled_at: None,
    };
    let Some(state) = state else { return row };
    (row.pending, row.delivered, row.given_up) = (state.pending, state.delivered, state.given_up);
    row.oldest_pending_at = state.oldest_at.map(rfc3339);
    row.failing_since = state.refused_since.map(rfc3339);
    row.problem = state.refusal;
    if let Some(health) = state.health {
        row.failing_since = Some(rfc3339(health.since));
        row.next_try_at = health.next_at.filter(|_| health.disabled_at.is_none()).map(rfc3339);
        row.problem = health.problem.or(row.problem);
        row.disabled_at = health.disabled_at.map(rfc3339);
    }
    row
}

/// Sends a test notice to a sink
///
/// A sink that takes it is used again for everything that waits for it.
#[utoipa::path(post, operation_id = "test_sink", path = "/v1/sinks/test", request_body = NamedSink,
    responses((status = 200, description = "a test was sent; whether it was delivered is in the answer", body = SinkTested), (status = 404)))]
pub(crate) async fn test(
    State(supervisor): Daemon,
    body: Result<Json<NamedSink>, JsonRejection>,
) -> Answer<Json<SinkTested>> {
    let Json(NamedSink { sink, dir }) =
        body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let sink = meant(&supervisor, sink).await?;
    let found = known(&supervisor, &sink)?;
    let (id, outcome) = supervisor.notices.test(&sink, &found, dir.as_deref()).await?;
    let (delivered, detail) = match outcome {
        Outcome::Delivered { said } => (true, said),
        Outcome::Refused { why, .. }
        | Outcome::Failed { why, .. }
        | Outcome::Gone { why }
        | Outcome::Hopeless { why } => (false, why),
    };
    if delivered {
        // It is there again, so nothing needs to wait for it.
        let_go(&supervisor, &sink).await?;
    }
    let kind = found.way.kind().to_owned();
    Ok(Json(SinkTested { sink: shown(&sink), kind, delivered, id, detail }))
}

/// Delivers to a sink again
///
/// Forgets what was wrong with the sink and delivers what waits for it.
#[utoipa::path(post, operation_id = "enable_sink", path = "/v1/sinks/enable", request_body = NamedSink,
    responses((status = 200, description = "what waits for it is delivered", body = SinkRow), (status = 404)))]
pub(crate) async fn enable(
    State(supervisor): Daemon,
    body: Result<Json<NamedSink>, JsonRejection>,
) -> Answer<Json<SinkRow>> {
    let Json(NamedSink { sink, .. }) =
        body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let sink = meant(&supervisor, sink).await?;
    let found = known(&supervisor, &sink)?;
    let_go(&supervisor, &sink).await?;
    let (store, name) = (supervisor.ground.store.clone(), sink.clone());
    let states = blocking(move || Ok(store.sink_states()?)).await?;
    let state = states.into_iter().find(|state| state.sink == name);
    Ok(Json(row(&sink, Some(&found), state)))
}

/// Forgets what was wrong with a sink, and has it told what waits.
async fn let_go(supervisor: &Arc<Supervisor>, sink: &str) -> Answer<()> {
    let (writer, name) = (supervisor.clone(), sink.to_owned());
    blocking(move || {
        let change = Change::Enable { sink: name };
        Ok(writer.ground.store.change_wait(writer.ground.epoch, change)?)
    })
    .await?;
    supervisor.notices.wake([sink]);
    Ok(())
}

/// The address of a sink that is named as lists show it, without what may be secret in it.
async fn meant(supervisor: &Arc<Supervisor>, sink: String) -> Answer<String> {
    if !sink.contains('…') {
        return Ok(sink);
    }
    let (store, wanted) = (supervisor.ground.store.clone(), sink.clone());
    let states = blocking(move || Ok(store.sink_states()?)).await?;
    let mut found =
        states.into_iter().map(|state| state.sink).filter(|address| shown(address) == wanted);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(Refusal::new(
            Code::BadSink,
            format!("{sink} is ambiguous: several addresses are shown so"),
        )
        .hint("write the whole address")),
        (None, _) => Ok(sink),
    }
}

fn known(supervisor: &Supervisor, sink: &str) -> Answer<Sink> {
    let config = supervisor.config().map_err(|refused| notify::unreadable(&refused))?;
    notify::known(&config, sink)
}
