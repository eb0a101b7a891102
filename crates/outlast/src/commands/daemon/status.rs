//! `outlast daemon status`: whether the daemon runs. Never starts it.

use jiff::Timestamp;
use outlast_client::connect::meet;
use outlast_client::problem::UNREACHABLE;
use outlast_home::address;
use outlast_home::holder;
use outlast_home::layout::Layout;
use outlast_home::lock::{self, Lock};
use outlast_wire::api::{DaemonStatus, Holding, Mode, ServiceStatus};

use super::{Heard, ask_status, does_answer};
use crate::args::DaemonStatus as DaemonStatusArgs;
use crate::builds;
use crate::commands::config;
use crate::output::printable;
use crate::output::time::both;
use crate::service;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn status(world: &World, args: &DaemonStatusArgs) -> Answer {
    let layout = world.client.layout()?;
    let mut status = match meet(&world.client).await? {
        Some(mut connection) => match does_answer(&mut connection).await? {
            Heard::Something => ask_status(&mut connection).await?,
            Heard::Nothing => absent(layout),
        },
        None => absent(layout),
    };
    let service = service::status(world, args.manager).await;
    if args.json {
        status.service = Some(service);
        status.config = Some(config::status(world)?);
        output::print_json(&status)?;
    } else if status.running {
        let config = format!("{:<11}{}\n", "config", config::state(world)?);
        output::print(&(page(&status, world.now()) + &config + &service_page(&service)))?;
    } else {
        output::say(&absence(layout))?;
        if service.installed || (service.unit.is_some() && service.problem.is_some()) {
            output::print(&service_page(&service))?;
        }
    }
    if status.running {
        builds::mention(world);
    }
    Ok(if status.running { 0 } else { UNREACHABLE })
}

/// No daemon answers. The status still says which process holds the lock, if one does.
fn absent(layout: &Layout) -> DaemonStatus {
    let holder = holder::current(&layout.daemon_lock());
    DaemonStatus {
        running: false,
        pid: holder.as_ref().map(|holder| holder.pid),
        version: holder.as_ref().map(|holder| holder.version.clone()),
        build: holder.as_ref().and_then(|holder| holder.build.clone()),
        epoch: holder.as_ref().and_then(|holder| holder.epoch),
        started_at: holder.map(|holder| holder.started_at),
        home: layout.state.display().to_string(),
        socket: address::socket(layout).unwrap_or_else(|| layout.socket()).display().to_string(),
        runs: None,
        holding: None,
        journal: None,
        mode: None,
        service: None,
        held_since: None,
        held_by: None,
        config: None,
    }
}

fn absence(layout: &Layout) -> String {
    let lock = layout.daemon_lock();
    match (lock::probe(&lock), holder::current(&lock)) {
        (Lock::Free, _) => "not running".to_owned(),
        (Lock::Held, None) => "not answering: a daemon holds the lock".to_owned(),
        (Lock::Held, Some(holder)) => {
            let state = if holder.is_frozen() { ", is frozen" } else { "" };
            let pid = holder.pid;
            format!("not answering: pid {pid} holds the lock{state}; outlast daemon stop ends it")
        }
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
        ("build", text(status.build.clone())),
        ("started", text(status.started_at.as_deref().map(|at| both(at, now)))),
        ("home", status.home.clone()),
        ("socket", status.socket.clone()),
        ("runs", text(runs)),
        ("mode", text(status.mode.map(mode))),
    ];
    let holding = status.holding.as_ref().map(|holding| {
        let Holding { until, why, runs } = holding;
        ("holding", format!("resumes runs {}, {runs} waiting: {why}", both(until, now)))
    });
    let held = status.held_since.as_deref().map(|since| {
        let by = status.held_by.as_ref().map(|by| format!(", by {by}")).unwrap_or_default();
        let words = format!("paused since {}{by}; outlast resume --all", both(since, now));
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
