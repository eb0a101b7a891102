//! `outlast daemon status`: whether the daemon runs. Never starts it.

use jiff::Timestamp;
use outlast_wire::api::DaemonStatus;
use outlast_wire::layout::Layout;

use super::ask_status;
use crate::connect::try_connect;
use crate::lock::{self, Lock};
use crate::output::time::both;
use crate::problem::UNREACHABLE;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn status(world: &World, json: bool) -> Answer {
    let layout = world.layout()?;
    let status = match try_connect(layout).await? {
        Some(mut connection) => ask_status(&mut connection).await?,
        None => absent(layout),
    };
    if json {
        output::print_json(&status)?;
    } else if status.running {
        output::print(&page(&status, world.now()))?;
    } else {
        output::print_line(absence(lock::probe(&layout.daemon_lock())))?;
    }
    Ok(if status.running { 0 } else { UNREACHABLE })
}

fn absent(layout: &Layout) -> DaemonStatus {
    DaemonStatus {
        running: false,
        pid: None,
        version: None,
        epoch: None,
        started_at: None,
        home: layout.state.display().to_string(),
        socket: layout.socket().display().to_string(),
        runs: None,
        held_since: None,
    }
}

fn absence(lock: Lock) -> &'static str {
    match lock {
        Lock::Free => "not running",
        Lock::Held => "not answering: a daemon holds the lock and does not listen on its socket",
    }
}

fn page(status: &DaemonStatus, now: Timestamp) -> String {
    let text = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let runs = status
        .runs
        .map(|runs| format!("{} live, {} resting, {} ended", runs.live, runs.resting, runs.ended));
    let lines = [
        ("daemon", "running".to_owned()),
        ("pid", text(status.pid.map(|pid| pid.to_string()))),
        ("version", text(status.version.clone())),
        ("epoch", text(status.epoch.map(|epoch| epoch.to_string()))),
        ("started", text(status.started_at.as_deref().map(|at| both(at, now)))),
        ("home", status.home.clone()),
        ("socket", status.socket.clone()),
        ("runs", text(runs)),
    ];
    let held = status.held_since.as_deref().map(|since| {
        let words = format!("paused since {}; outlast resume --all", both(since, now));
        ("everything", words)
    });
    lines.into_iter().chain(held).map(|(key, value)| format!("{key:<11}{value}\n")).collect()
}
