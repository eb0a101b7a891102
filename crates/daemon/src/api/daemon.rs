//! The daemon itself.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use outlast_wire::api::{DaemonStatus, ErrorInfo, Mode, RunCounts};
use outlast_wire::codes::Code;
use outlast_wire::version;
use serde::Serialize;

use super::Daemon;
use crate::instance;
use crate::leaving::Leaving;
use crate::refusal::Answer;
use crate::refusal::Refusal;
use crate::world::spawn;

#[derive(Serialize, utoipa::ToSchema)]
pub(crate) struct Version {
    version: &'static str,
    /// Tells builds of one version apart.
    build: &'static str,
    api: u32,
}

/// Returns the version of the daemon
///
/// `api` is the number of this API; it rises only when something is renamed or removed.
#[utoipa::path(get, operation_id = "show_version", path = "/v1/version", responses((status = 200, description = "the version", body = Version)))]
pub(crate) async fn version(State(supervisor): Daemon) -> Json<Version> {
    Json(Version { version: version::BUILD, build: supervisor.ground.build, api: version::API })
}

/// Describes the daemon
///
/// Who it is, where its files are, how many runs there are, and whether everything is paused.
#[utoipa::path(get, operation_id = "show_daemon", path = "/v1/daemon", responses((status = 200, description = "the daemon", body = DaemonStatus)))]
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
        config: None,
        held_since: supervisor.held_since().map(crate::view::rfc3339),
        held_by: supervisor.held_by(),
    }))
}

/// Ends the daemon and leaves every run alive
///
/// No shim starts it again. The next client that needs a daemon does.
#[utoipa::path(post, operation_id = "stop_daemon", path = "/v1/daemon/stop", responses((status = 202, description = "the daemon is about to exit")))]
pub(crate) async fn stop(State(supervisor): Daemon) -> StatusCode {
    supervisor.ground.leave(Leaving::Asked);
    // The daemon goes once this is answered, so a daemon that waits for the lock finds it.
    if let Err(error) = instance::mark_stopped_for_all(&supervisor.ground.layout) {
        tracing::error!(%error, "cannot say that this stop is for all daemons; one that waits takes this place");
    }
    StatusCode::ACCEPTED
}

/// Has the daemon start its successor
///
/// For a client inside a run: a daemon that such a client starts is a process of the run and is ended with it. The
/// successor is started from the name that this daemon was started by, looks at the journal and the config, and asks
/// for the place. If it cannot have it, the answer says why, and this daemon stays.
#[utoipa::path(post, operation_id = "restart_daemon", path = "/v1/daemon/restart",
    responses((status = 202, description = "the daemon is about to exit"), (status = 409, description = "the daemon was not started in the background, or its successor cannot do the work")))]
pub(crate) async fn restart(State(supervisor): Daemon) -> Answer<StatusCode> {
    refuse_room(supervisor.ground.mode)?;
    let mut leaving = supervisor.ground.leaving();
    let successor = spawn::successor(&supervisor.ground.exe)?;
    tokio::select! {
        _ = leaving.wait_for(Option::is_some) => Ok(StatusCode::ACCEPTED),
        said = spawn::first_line(successor) => Err(refused(said.as_deref())),
    }
}

/// What a successor has said that did not ask for the place.
fn refused(said: Option<&str>) -> Refusal {
    let told = said.and_then(|line| line.strip_prefix("error "));
    let info = told.and_then(|json| serde_json::from_str::<ErrorInfo>(json).ok());
    let silent = || {
        Refusal::new(Code::DaemonSilent, "the successor ended without a word")
            .hint("read its last words:\noutlast daemon logs --tail 50")
    };
    let Some(info) = info else { return silent() };
    let Some(code) = info.code.known() else { return silent() };
    let refusal = Refusal::new(code, info.message);
    match info.hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

/// Asks the daemon to make room for another
///
/// Ends a daemon that was started in the background, for a service manager's or another build's that waits for its
/// place. It was not asked to be down, so shims start one again if the other does not come.
#[utoipa::path(post, operation_id = "hand_over", path = "/v1/daemon/handover",
    responses((status = 202, description = "the daemon is about to exit"), (status = 409, description = "the daemon was not started in the background")))]
pub(crate) async fn handover(State(supervisor): Daemon) -> Answer<StatusCode> {
    refuse_room(supervisor.ground.mode)?;
    supervisor.ground.leave(Leaving::Replaced);
    Ok(StatusCode::ACCEPTED)
}

/// Only a daemon in the background is replaced by another.
fn refuse_room(mode: Mode) -> Answer<()> {
    match mode {
        Mode::Background => Ok(()),
        Mode::Service | Mode::Foreground => {
            let message = "this daemon was not started in the background and makes no room";
            let refusal = Refusal::new(Code::MakesNoRoom, message);
            Err(refusal.hint("outlast daemon stop"))
        }
    }
}
