//! Rebuilding runs that the journal has forgotten, or stands behind.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use outlast_engine::RunId;
use outlast_wire::api::{RecoverItem, RecoverReport, RecoverRuns};
use outlast_wire::codes::Code;

use super::Daemon;
use crate::recovery::recovered_before;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::runs::callers::{Caller, Right};
use crate::runs::find::{resolve, snapshot_of};

/// Rebuilds runs that the journal lacks
///
/// From the directories of the runs, which the journal has forgotten or stands behind.
#[utoipa::path(post, operation_id = "recover_runs", path = "/v1/recover", request_body = RecoverRuns,
    responses((status = 200, description = "what was rebuilt, and what is kept as it is", body = RecoverReport), (status = 403), (status = 404), (status = 409)))]
pub(crate) async fn recover(
    State(supervisor): Daemon,
    caller: Caller,
    body: Result<Json<RecoverRuns>, JsonRejection>,
) -> Answer<Json<RecoverReport>> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let forgotten = supervisor.forgotten();
    let mut wanted: BTreeSet<RunId> = BTreeSet::new();
    let mut before: Vec<RecoverItem> = Vec::new();
    for text in &asked.runs {
        let id = match supervisor.strays.resolve(text) {
            Some(stray) => stray,
            None => resolve(&supervisor, text).await?,
        };
        if !forgotten.contains(&id) {
            // Asked again after a lost answer, it is no failure.
            let run = snapshot_of(&supervisor, &id).await?.run;
            if let Some(item) = recovered_before(&run) {
                before.push(item);
                continue;
            }
            let refusal = Refusal::new(
                Code::NothingToRecover,
                format!("the journal knows run {id} as it is"),
            );
            return Err(refusal.hint(format!("outlast show {id}")));
        }
        wanted.insert(id);
    }
    let ids = if asked.runs.is_empty() { forgotten } else { wanted.into_iter().collect() };
    if !asked.dry_run {
        for id in &ids {
            caller.clone().may(&supervisor, Right::Steer, id).await?;
        }
    }
    let mut report = supervisor.recover_all(ids, asked.dry_run).await;
    report.runs.extend(before);
    Ok(Json(report))
}
