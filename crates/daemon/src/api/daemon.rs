//! The daemon itself.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outlast_wire::api::{DaemonStatus, ErrorBody, Mode, RunCounts};
use outlast_wire::codes::Code;
use outlast_wire::version;
use serde::Serialize;

use super::Daemon;
use crate::leaving::Leaving;
use crate::refusal::Answer;
use crate::refusal::Refusal;

#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Version {
    version: &'static str,
    /// Tells builds of one version apart.
    build: &'static str,
    api: u32,
}

#[utoipa::path(get, path = "/v1/version", responses((status = 200, body = Version)))]
pub(crate) async fn version(State(supervisor): Daemon) -> Json<Version> {
    Json(Version { version: version::BUILD, build: supervisor.ground.build, api: version::API })
}

#[utoipa::path(get, path = "/v1/daemon", responses((status = 200, body = DaemonStatus)))]
pub(crate) async fn status(State(supervisor): Daemon) -> Answer<Json<DaemonStatus>> {
    let store = supervisor.ground.store.clone();
    let counts = crate::lanes::blocking(move || Ok(store.counts()?)).await;
    let mut journal = supervisor.ground.lineage.view(&supervisor.forgotten());
    // Who asks how the daemon is must be told also if its journal is the trouble.
    if let Err(refusal) = &counts {
        journal.problem = Some(refusal.message.clone());
    }
    let runs = |counts: outlast_store::Counts| RunCounts {
        live: counts.live,
        resting: counts.resting,
        ended: counts.ended,
    };
    Ok(Json(DaemonStatus {
        running: true,
        pid: Some(std::process::id()),
        version: Some(version::BUILD.to_owned()),
        build: Some(supervisor.ground.build.to_owned()),
        epoch: Some(supervisor.ground.epoch),
        started_at: Some(supervisor.ground.started_at.clone()),
        home: supervisor.ground.layout.home().display().to_string(),
        socket: supervisor.ground.socket().display().to_string(),
        runs: counts.ok().map(runs),
        holding: supervisor.holding(),
        journal: Some(journal),
        mode: Some(supervisor.ground.mode),
        service: None,
        held_since: supervisor.held_since().map(crate::view::rfc3339),
        held_by: supervisor.held_by(),
    }))
}

/// Ends the daemon and leaves every run alive. No shim starts it again.
#[utoipa::path(post, path = "/v1/daemon/stop", responses((status = 202)))]
pub(crate) async fn stop(State(supervisor): Daemon) -> StatusCode {
    supervisor.ground.leave(Leaving::Asked);
    StatusCode::ACCEPTED
}

/// Ends a daemon that was started in the background, for a service manager's or another build's that waits for its
/// place. It was not asked to be down, so shims start one again if the other does not come.
#[utoipa::path(post, path = "/v1/daemon/handover", responses((status = 202), (status = 409, body = ErrorBody)))]
pub(crate) async fn handover(State(supervisor): Daemon) -> Answer<StatusCode> {
    match supervisor.ground.mode {
        Mode::Background => {
            supervisor.ground.leave(Leaving::Replaced);
            Ok(StatusCode::ACCEPTED)
        }
        Mode::Service | Mode::Foreground => {
            let message = "this daemon was not started in the background and makes no room";
            let refusal = Refusal::new(Code::MakesNoRoom, message);
            Err(refusal.hint("`outlast daemon stop` ends it"))
        }
    }
}
