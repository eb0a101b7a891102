//! What is around the runs: this program and those of the shims, listeners, what is sent out, the clock.

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use outlast_wire::api::{Finding, Level};
use outlast_wire::version;

use super::finding;
use crate::operator::{listen, ping};
use crate::supervisor::Supervisor;
use crate::world::clock as world_clock;

/// 2024-01-01: a clock that says less has never been set.
const NOT_BEFORE_MS: u64 = 1_704_067_200_000;

/// Which program this is, and whether the live shims are the same one.
pub(super) fn program(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let pid = std::process::id();
    let who = format!(
        "version {}, build {}, pid {pid}, since {}",
        version::BUILD,
        supervisor.ground.build,
        supervisor.ground.started_at
    );
    let mut findings = vec![finding(Level::Ok, "daemon", who, None)];
    let own = identity("self");
    if own.is_some() && own != on_disk(supervisor) {
        findings.push(finding(
            Level::Warning,
            "daemon",
            format!("{} is another program than the one this daemon runs", supervisor.ground.exe.display()),
            Some("after an upgrade, restart it; runs keep running meanwhile:\noutlast daemon restart"),
        ));
    }
    let handles = supervisor.handles();
    let pids = handles.iter().filter_map(|(_, it)| it.snapshot.borrow().shim_pid);
    // One that is gone by now is none.
    let shims: Vec<Identity> = pids.filter_map(|pid| identity(&pid.to_string())).collect();
    let others = shims.iter().filter(|theirs| own.is_some_and(|own| own != **theirs)).count();
    if !shims.is_empty() {
        let told = match others {
            0 => format!("{} live, all of this version", shims.len()),
            _ => format!(
                "{} live, {others} of them of another build, which this daemon understands",
                shims.len()
            ),
        };
        findings.push(finding(Level::Ok, "shims", told, None));
    }
    findings
}

type Identity = (u64, u64);

fn identity(pid: &str) -> Option<Identity> {
    let metadata = std::fs::metadata(format!("/proc/{pid}/exe")).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

fn on_disk(supervisor: &Supervisor) -> Option<Identity> {
    // The kernel says so of a program whose file was replaced under it.
    let path = supervisor.ground.exe.to_string_lossy();
    let path = path.strip_suffix(" (deleted)").unwrap_or(&path);
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

/// Says so if the operator wants everything as it is.
pub(super) fn secrets(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    if supervisor.ground.settings.secret_rules().redact {
        return Vec::new();
    }
    let message =
        "values of secret variables are kept and shown as they are, for runs that start now";
    let hint = "secrets.redact = false in config.toml says so; without it they are hidden";
    vec![finding(Level::Warning, "secrets", message, Some(hint))]
}

pub(super) fn listener(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    use listen::ListenerStatus;

    let found = match supervisor.operator.listening.status() {
        ListenerStatus::Off => return unheard_webhooks(supervisor),
        ListenerStatus::On { address, is_remote: false } => {
            finding(Level::Ok, "listener", format!("probes are answered on http://{address}"), None)
        }
        ListenerStatus::On { address, is_remote: true } => finding(
            Level::Warning,
            "listener",
            format!(
                "probes are answered on http://{address}, for other machines too, and without TLS"
            ),
            Some("a proxy in front of 127.0.0.1 can do that better"),
        ),
        ListenerStatus::Refused { why, hint } => {
            finding(Level::Problem, "listener", why, Some(hint))
        }
        ListenerStatus::Failing { address, error, tries } => finding(
            Level::Problem,
            "listener",
            format!("cannot listen on {address}: {error} ({tries} tries)"),
            Some("free the port, or name another in [listen]"),
        ),
    };
    vec![found]
}

/// Webhooks that no sender on another machine can reach, since nothing listens.
fn unheard_webhooks(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let webhooks = supervisor.triggers.table.webhooks();
    if webhooks.is_empty() {
        return Vec::new();
    }
    let (count, names) = (webhooks.len(), webhooks.join(", "));
    let message = match count {
        1 => format!("trigger {names} is a webhook, and nothing listens on TCP"),
        count => format!("{count} triggers are webhooks, and nothing listens on TCP: {names}"),
    };
    let hint = "set address = \"127.0.0.1:7070\" in [listen]:\noutlast config edit";
    vec![finding(Level::Warning, "listener", message, Some(hint))]
}

/// Pings and traces. Sinks have their place here, too.
pub(super) fn outbound(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    use ping::PingStatus;

    let pings = match supervisor.operator.pinging.status() {
        PingStatus::Off => None,
        PingStatus::Answered { at } => {
            Some(finding(Level::Ok, "ping", format!("answered at {at}"), None))
        }
        PingStatus::Failing { since, error } => Some(finding(
            Level::Problem,
            "ping",
            format!("has had no good answer since {since}: {error}"),
            Some("the service that waits for it is about to raise an alarm; look at [ping]"),
        )),
    };
    pings.into_iter().chain(traces(supervisor)).collect()
}

#[cfg(not(feature = "otlp"))]
fn traces(supervisor: &Supervisor) -> Option<Finding> {
    let is_wanted = supervisor.ground.settings.current().is_ok_and(|config| config.otlp.is_some());
    is_wanted.then(|| {
        finding(
            Level::Warning,
            "otlp",
            "the config names a collector, and this build sends no traces",
            Some("build it with --features otlp"),
        )
    })
}

#[cfg(feature = "otlp")]
fn traces(supervisor: &Supervisor) -> Option<Finding> {
    let status = supervisor.operator.traces();
    let is_wanted = supervisor.ground.settings.current().is_ok_and(|config| config.otlp.is_some());
    is_wanted.then(|| match status.trouble {
        None => {
            let told = format!("{} spans sent, {} lost", status.sent, status.lost);
            finding(Level::Ok, "otlp", told, None)
        }
        Some(why) => finding(
            Level::Warning,
            "otlp",
            format!("{} spans sent, {} lost: {why}", status.sent, status.lost),
            Some("look at [otlp] and at the collector; runs are not held up by it"),
        ),
    })
}

pub(super) fn clock(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let wall = world_clock::wall();
    // Has the clock looked at.
    let _now = supervisor.ground.world.now();
    if wall.0 < NOT_BEFORE_MS {
        let told = "the machine's clock has not been set";
        return vec![finding(Level::Warning, "clock", told, Some("set it, or let NTP do so"))];
    }
    let Some(off_ms) = supervisor.ground.world.clock().doubt_ms() else { return Vec::new() };
    let by_s = off_ms.unsigned_abs() / 1000;
    let way = if off_ms < 0 { "back" } else { "forward" };
    let told = format!(
        "the machine's clock was set {way} by {by_s} s; limits, delays and schedules go on as before"
    );
    let hint = "if it stays so for ten minutes it is believed";
    vec![finding(Level::Warning, "clock", told, Some(hint))]
}
