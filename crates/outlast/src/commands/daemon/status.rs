//! `outlast daemon status`: whether the daemon runs. Never starts it.

use jiff::Timestamp;
use outlast_wire::api::{DaemonStatus, Holding, Mode, ServiceStatus};
use outlast_wire::layout::Layout;

use super::ask_status;
use crate::args::DaemonStatus as DaemonStatusArgs;
use crate::connect::try_connect;
use crate::lock::{self, Lock};
use crate::output::printable;
use crate::output::time::both;
use crate::problem::UNREACHABLE;
use crate::service;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn status(world: &World, args: &DaemonStatusArgs) -> Answer {
    let layout = world.layout()?;
    let mut status = match try_connect(layout).await? {
        Some(mut connection) => ask_status(&mut connection).await?,
        None => absent(layout),
    };
    let service = service::status(world, args.manager).await;
    if args.json {
        status.service = Some(service);
        output::print_json(&status)?;
    } else if status.running {
        output::print(&(page(&status, world.now()) + &service_page(&service)))?;
    } else {
        output::print_line(absence(lock::probe(&layout.daemon_lock())))?;
        if service.installed || (service.unit.is_some() && service.problem.is_some()) {
            output::print(&service_page(&service))?;
        }
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
        holding: None,
        mode: None,
        service: None,
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
        ("mode", text(status.mode.map(mode))),
    ];
    let holding = status.holding.as_ref().map(|holding| {
        let Holding { until, why, runs } = holding;
        ("holding", format!("goes on {}, {runs} waiting: {why}", both(until, now)))
    });
    let held = status.held_since.as_deref().map(|since| {
        let words = format!("paused since {}; outlast resume --all", both(since, now));
        ("everything", words)
    });
    let lines = lines.into_iter().chain(holding).chain(held);
    lines.map(|(key, value)| format!("{key:<11}{value}\n")).collect()
}

fn mode(mode: Mode) -> String {
    let words = match mode {
        Mode::Service => "service, started by a service manager",
        Mode::Background => "background, started by a command or a shim",
        Mode::Foreground => "foreground, started by hand",
    };
    words.to_owned()
}

fn service_page(service: &ServiceStatus) -> String {
    let manager = service.manager.as_deref().unwrap_or("no service manager");
    let state = service.state.as_deref().unwrap_or("state unknown");
    let what = match (service.installed, &service.problem) {
        (_, Some(problem)) => format!("{manager}: {}", printable(problem)),
        (true, None) => format!("{manager}: installed, {}", printable(state)),
        (false, None) => format!("{manager}: not installed"),
    };
    let mut lines = format!("{:<11}{what}\n", "service");
    if let Some(lingers) = service.linger {
        lines += &format!("{:<11}{}\n", "linger", if lingers { "yes" } else { "no" });
    }
    for hint in &service.hints {
        lines += &format!("{:<11}{}\n", "hint", printable(hint));
    }
    lines
}
