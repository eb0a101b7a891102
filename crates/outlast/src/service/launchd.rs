//! Driving launchd: `launchctl` in the domain of the user's graphical session. Tested against a stand-in only.

use std::time::Duration;

use outlast_wire::api::{Mode, ServiceStatus};
use tokio::time::{Instant, sleep};

use super::tool::{self, Said};
use super::{Service, Shortfall, answering, file};
use crate::output::printable;

pub(super) const LABEL: &str = "dev.outlast.daemon";

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// For a service that was told to go to be gone, and for one that was told to come to be known and to run.
const GONE_WITHIN: Duration = Duration::from_secs(20);
const START_WITHIN: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// The session that agents are started in, and the service within it.
fn domain() -> String {
    format!("gui/{}", rustix::process::getuid().as_raw())
}

fn target() -> String {
    format!("{}/{LABEL}", domain())
}

pub(super) fn steps(service: &Service<'_>) -> Vec<String> {
    let (domain, target, file) = (domain(), target(), service.file.display());
    vec![
        format!("launchctl bootout {target}"),
        format!("launchctl enable {target}"),
        format!("launchctl bootstrap {domain} {file}"),
    ]
}

pub(super) async fn install(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    must_have_session(service).await?;
    let loaded = print(service, status).await?;
    let is_new = service.is_to_be_written()?;
    let (domain, target, path) = (domain(), target(), service.file.display().to_string());
    if is_new && loaded.is_some() {
        // What is loaded keeps what it was told until it is gone, so it goes before the file changes.
        bootout(service, status).await?;
    }
    make_log_dir(service)?;
    service.settle_file(status)?;
    let mut told = None;
    if is_new || loaded.is_none() {
        // One that a person has disabled would be loaded and never run.
        order(service, status, &["enable", &target]).await?;
        order(service, status, &["bootstrap", &domain, &path]).await?;
        told = Some(Instant::now());
    }
    await_start(service, status, told).await
}

pub(super) async fn uninstall(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    let is_there = service.is_to_be_removed()?;
    let loaded = match service.must_have_tool() {
        Err(_nobody_has_it) => None,
        Ok(()) => print(service, status).await?,
    };
    if loaded.is_some() {
        bootout(service, status).await?;
    }
    if is_there && file::remove(&service.file)? {
        status.done.push(format!("removed {}", service.file.display()));
    }
    Ok(())
}

pub(super) async fn look(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    match print(service, status).await? {
        Some(printed) => printed.must_be_read(service),
        None => Err(Shortfall::new(format!("launchd does not know {LABEL}"))
            .hint("in a session at the screen:\noutlast daemon install")),
    }
}

pub(super) async fn start(service: &Service<'_>) -> bool {
    let asked = ctl(service, &["kickstart", &target()], ANSWER_WITHIN).await;
    asked.is_ok_and(|said| said.is_success)
}

pub(super) async fn restart(service: &Service<'_>) -> bool {
    let asked = ctl(service, &["kickstart", "-k", &target()], ANSWER_WITHIN).await;
    asked.is_ok_and(|said| said.is_success)
}

/// What launchd says of the service.
struct Printed(Said);

impl Printed {
    /// Its own lines come first, those of what belongs to it are further in.
    fn value(&self, name: &str) -> Option<&str> {
        self.0.stdout.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(" = "))
    }

    fn is_running(&self) -> bool {
        self.value("state") == Some("running")
    }

    fn pid(&self) -> Option<u32> {
        self.value("pid")?.parse().ok()
    }

    fn must_be_read(&self, service: &Service<'_>) -> Result<(), Shortfall> {
        let path = self.value("path").unwrap_or("no file");
        if path == service.file.to_string_lossy() {
            return Ok(());
        }
        Err(Shortfall::new(format!("launchd has {LABEL} from {}", printable(path))))
    }
}

/// Asks, and notes what is so; `None` if launchd does not know it.
async fn print(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<Option<Printed>, Shortfall> {
    let said = ctl(service, &["print", &target()], ANSWER_WITHIN).await?;
    let printed = said.is_success.then_some(Printed(said));
    let is_ours = printed.as_ref().is_some_and(|printed| printed.must_be_read(service).is_ok());
    status.installed = is_ours && service.file.exists();
    status.enabled = Some(is_ours);
    status.active = Some(printed.as_ref().is_some_and(Printed::is_running));
    status.state = printed.as_ref().and_then(|printed| printed.value("state")).map(printable);
    status.pid = printed.as_ref().and_then(Printed::pid);
    Ok(printed)
}

/// Over ssh there may be no session that agents belong to.
async fn must_have_session(service: &Service<'_>) -> Result<(), Shortfall> {
    let said = ctl(service, &["print", &domain()], ANSWER_WITHIN).await?;
    if said.is_success {
        return Ok(());
    }
    Err(Shortfall::new(format!("launchd has no session of yours: {}", said.reason()))
        .hint("log in at the screen once and install it there; not over ssh"))
}

async fn bootout(service: &Service<'_>, status: &mut ServiceStatus) -> Result<(), Shortfall> {
    order(service, status, &["bootout", &target()]).await?;
    let began = Instant::now();
    while print(service, status).await?.is_some() {
        if began.elapsed() >= GONE_WITHIN {
            return Err(Shortfall::new(format!("launchd still has {LABEL} after its bootout")));
        }
        sleep(PAUSE).await;
    }
    Ok(())
}

/// Looks until the service runs and its daemon answers here. One that does not run is told to, and again if it was
/// just ending when it was told.
async fn await_start(
    service: &Service<'_>,
    status: &mut ServiceStatus,
    mut told: Option<Instant>,
) -> Result<(), Shortfall> {
    let began = Instant::now();
    loop {
        let printed = print(service, status).await?;
        let here = answering(service.world).await;
        if let Some(printed) = &printed {
            printed.must_be_read(service)?;
            if !printed.is_running() && tool::may_tell(told, began) {
                order(service, status, &["kickstart", &target()]).await?;
                told = Some(Instant::now());
                continue;
            }
            let is_it = |pid: Option<u32>| pid.is_some() && pid == printed.pid();
            if printed.is_running() && here.as_ref().is_some_and(|here| is_it(here.pid)) {
                return Ok(());
            }
            let by_hand = here
                .as_ref()
                .filter(|here| printed.is_running() && here.mode == Some(Mode::Foreground));
            if let Some(pid) = by_hand.and_then(|here| here.pid) {
                status.hints.push(format!(
                    "the service waits for the daemon that was started by hand, pid {pid}; end that one with ctrl-c or kill -INT {pid}, and the service takes over"
                ));
                return Ok(());
            }
        }
        let within = if printed.is_some() { START_WITHIN } else { tool::BEGIN_WITHIN };
        if began.elapsed() >= within {
            let state = status.state.as_deref().unwrap_or("not loaded");
            return Err(Shortfall::new(format!(
                "launchd has {LABEL} as {state}, and its daemon does not answer"
            ))
            .hint(format!("launchctl print {}", target())));
        }
        sleep(PAUSE).await;
    }
}

/// launchd opens the log before our daemon could make its directory.
fn make_log_dir(service: &Service<'_>) -> Result<(), Shortfall> {
    let layout = service.world.client.layout()?;
    let made = outlast_home::directory::private_dir(&layout.state);
    made.map_err(|error| Shortfall::new(format!("cannot make {}: {error}", layout.state.display())))
}

async fn order(
    service: &Service<'_>,
    status: &mut ServiceStatus,
    args: &[&str],
) -> Result<(), Shortfall> {
    tool::order(service.world, status, "launchctl", args).await
}

async fn ctl(service: &Service<'_>, args: &[&str], within: Duration) -> Result<Said, Shortfall> {
    tool::run(service.world, "launchctl", args, within).await
}
