//! Driving a systemd user manager: `systemctl --user`, and `loginctl` for lingering.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_wire::api::{Mode, ServiceStatus};
use outlast_wire::version;
use tokio::time::{Instant, sleep};

use super::tool::{self, Said};
use super::{Linger, Service, Shortfall, answering, file};
use crate::output::printable;

pub(super) const UNIT: &str = "outlast.service";

/// What an install asks for, each only where it is needed.
pub(super) const STEPS: [&str; 3] = [
    "systemctl --user daemon-reload",
    "systemctl --user enable outlast.service",
    "systemctl --user --no-block start outlast.service",
];

const SHOWN: &str = "--property=LoadState,UnitFileState,ActiveState,SubState,MainPID,FragmentPath,NeedDaemonReload,Result";

/// For a question, and for an order. A stop takes as long as the unit allows a daemon to leave.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// How long a start may take to be seen at all, and to succeed.
const START_WITHIN: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(100);

/// Up to this one a user's services may be ended in spite of lingering.
const LAST_FAULTY: u32 = 255;

pub(super) async fn install(
    service: &Service<'_>,
    linger: Linger,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    // Before anything is written: without a user manager nothing reads it.
    status.version = Some(manager_version(service).await?);
    let is_new = service.settle_file(status)?;
    let mut shown = show(service, status).await?;
    let was_active = shown.is("ActiveState", "active");
    if is_new || shown.is("NeedDaemonReload", "yes") || !shown.is("LoadState", "loaded") {
        order(service, status, &["daemon-reload"]).await?;
        shown = show(service, status).await?;
    }
    shown.must_be_read(service)?;
    if !shown.is("UnitFileState", "enabled") {
        order(service, status, &["enable", UNIT]).await?;
        shown = show(service, status).await?;
        shown.must_be_enabled()?;
    }
    let mut told = None;
    if is_new && was_active {
        order(service, status, &["--no-block", "restart", UNIT]).await?;
        told = Some(Instant::now());
    }
    await_start(service, status, told).await?;
    compare_versions(service, status).await;
    see_to_linger(service, linger, status).await;
    Ok(())
}

pub(super) async fn uninstall(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    let is_there = service.is_to_be_removed()?;
    let shown = match service.must_have_tool() {
        Err(shortfall) => Err(shortfall),
        Ok(()) => show(service, status).await,
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(_) if !is_there => return Ok(()),
        // Without a manager that answers, no manager runs it either.
        Err(shortfall) => {
            status.hints.push(format!("removed by hand, since {}", shortfall.problem));
            return remove_files(service, status);
        }
    };
    if !is_there && !shown.is_of(&service.file) {
        return Ok(());
    }
    if shown.is("UnitFileState", "enabled") {
        order(service, status, &["disable", UNIT]).await?;
    }
    if !shown.is("ActiveState", "inactive") && !shown.is("ActiveState", "failed") {
        order(service, status, &["stop", UNIT]).await?;
    }
    remove_files(service, status)?;
    order(service, status, &["daemon-reload"]).await?;
    if shown.is("ActiveState", "failed") {
        // It remembers a failure of a unit that is gone; one that it does not is fine.
        drop(ctl(service, &["reset-failed", UNIT], ANSWER_WITHIN).await);
    }
    let left = show(service, status).await?;
    if left.is_of(&service.file) || left.is("ActiveState", "active") {
        let state = left.state();
        return Err(Shortfall::new(format!("systemd still has {UNIT} as {state}"))
            .hint("systemctl --user stop outlast.service"));
    }
    Ok(())
}

/// How things are, asked quickly.
pub(super) async fn look(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    let shown = show(service, status).await?;
    shown.must_be_read(service)?;
    shown.must_be_enabled()?;
    see_to_linger(service, Linger::Explain, status).await;
    Ok(())
}

pub(super) async fn start(service: &Service<'_>) -> bool {
    let asked = ctl(service, &["--no-block", "start", UNIT], ANSWER_WITHIN).await;
    asked.is_ok_and(|said| said.is_success)
}

pub(super) async fn restart(service: &Service<'_>) -> bool {
    let asked = ctl(service, &["--no-block", "restart", UNIT], ANSWER_WITHIN).await;
    asked.is_ok_and(|said| said.is_success)
}

/// What systemd says of the unit.
struct Shown(Said);

impl Shown {
    fn is(&self, name: &str, value: &str) -> bool {
        self.0.value(name) == Some(value)
    }

    fn state(&self) -> String {
        let value = |name| printable(self.0.value(name).unwrap_or("unknown"));
        format!("{} ({})", value("ActiveState"), value("SubState"))
    }

    fn pid(&self) -> Option<u32> {
        self.0.value("MainPID")?.parse().ok().filter(|pid| *pid > 0)
    }

    /// True if systemd has read it from this file.
    fn is_of(&self, file: &Path) -> bool {
        let Some(fragment) = self.0.value("FragmentPath").filter(|path| !path.is_empty()) else {
            return false;
        };
        let fragment = PathBuf::from(fragment);
        fragment == file || real(&fragment).is_some_and(|known| Some(known) == real(file))
    }

    fn must_be_read(&self, service: &Service<'_>) -> Result<(), Shortfall> {
        if self.is("LoadState", "loaded") && self.is_of(&service.file) {
            return Ok(());
        }
        let value = |name| printable(self.0.value(name).unwrap_or_default());
        let (state, from) = (value("LoadState"), value("FragmentPath"));
        let from = if from.is_empty() { "no file".to_owned() } else { from };
        let file = service.file.display();
        Err(Shortfall::new(format!(
            "systemd has not read {file}: it has {UNIT} as {state:?} from {from}"
        ))
        .hint(
            "the user manager may have another XDG_CONFIG_HOME:\nsystemctl --user show-environment",
        ))
    }

    fn must_be_enabled(&self) -> Result<(), Shortfall> {
        if self.is("UnitFileState", "enabled") {
            return Ok(());
        }
        let state = printable(self.0.value("UnitFileState").unwrap_or_default());
        Err(Shortfall::new(format!("systemd does not have {UNIT} as enabled but as {state:?}"))
            .hint("systemctl --user enable outlast.service"))
    }
}

fn real(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok()
}

/// Asks, and notes what is so.
async fn show(service: &Service<'_>, status: &mut ServiceStatus) -> Result<Shown, Shortfall> {
    let said = ctl(service, &["show", UNIT, SHOWN], ANSWER_WITHIN).await?;
    if !said.is_success {
        return Err(unheard(&said));
    }
    let shown = Shown(said);
    let is_enabled = shown.is("UnitFileState", "enabled");
    status.installed = is_enabled && shown.is("LoadState", "loaded") && shown.is_of(&service.file);
    status.enabled = Some(is_enabled);
    status.active = Some(shown.is("ActiveState", "active"));
    status.state = Some(shown.state());
    status.pid = shown.pid();
    Ok(shown)
}

async fn manager_version(service: &Service<'_>) -> Result<String, Shortfall> {
    let said = ctl(service, &["show", "--property=Version"], ANSWER_WITHIN).await?;
    match said.value("Version") {
        Some(version) if said.is_success => Ok(printable(version)),
        _ => Err(unheard(&said)),
    }
}

fn unheard(said: &Said) -> Shortfall {
    Shortfall::new(format!("no systemd user manager answers: {}", said.reason()))
        .hint("it is there after a log-in with a session of its own, as over ssh; not after su or in a container")
}

async fn order(
    service: &Service<'_>,
    status: &mut ServiceStatus,
    args: &[&str],
) -> Result<(), Shortfall> {
    tool::order(service.world, status, "systemctl", &[&["--user"], args].concat()).await
}

async fn ctl(service: &Service<'_>, args: &[&str], within: Duration) -> Result<Said, Shortfall> {
    tool::run(service.world, "systemctl", &[&["--user"], args].concat(), within).await
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
        let shown = show(service, status).await?;
        let is_idle = shown.is("ActiveState", "inactive") || shown.is("ActiveState", "failed");
        if is_idle && tool::may_tell(told, began) {
            order(service, status, &["--no-block", "start", UNIT]).await?;
            told = Some(Instant::now());
            continue;
        }
        let here = answering(service.world).await;
        if shown.is("ActiveState", "active")
            && here.as_ref().is_some_and(|here| here.pid == shown.pid())
        {
            return Ok(());
        }
        let by_hand = here.as_ref().filter(|here| !is_idle && here.mode == Some(Mode::Foreground));
        if let Some(pid) = by_hand.and_then(|here| here.pid) {
            status.hints.push(format!(
                "the service waits for the daemon that was started by hand, pid {pid}; end that one with ctrl-c or kill -INT {pid}, and the service takes over"
            ));
            return Ok(());
        }
        let within = if is_idle { tool::BEGIN_WITHIN } else { START_WITHIN };
        if began.elapsed() >= within {
            let state = shown.state();
            let problem = match here.and_then(|here| here.pid) {
                Some(pid) => format!(
                    "systemd has {UNIT} as {state}, and the daemon that answers is pid {pid}"
                ),
                None => format!("systemd has {UNIT} as {state}, and no daemon answers"),
            };
            return Err(Shortfall::new(problem)
                .hint("read why:\njournalctl --user -u outlast.service\noutlast daemon logs"));
        }
        sleep(PAUSE).await;
    }
}

/// An upgrade in place changes no unit, so its daemon goes on with the old program.
async fn compare_versions(service: &Service<'_>, status: &mut ServiceStatus) {
    let Some(running) = answering(service.world).await.and_then(|here| here.version) else {
        return;
    };
    if running != version::BUILD {
        status.hints.push(format!(
            "the daemon that runs is outlast {running} and this is {}: systemctl --user restart outlast.service",
            version::BUILD
        ));
    }
}

/// Says what there is to say about lingering; that the rest is installed does not depend on it.
async fn see_to_linger(service: &Service<'_>, linger: Linger, status: &mut ServiceStatus) {
    let user = user(service);
    status.linger = lingers(service, &user).await;
    if status.linger == Some(false) && linger == Linger::Enable {
        let args = ["enable-linger", &user];
        match tool::run(service.world, "loginctl", &args, tool::DONE_WITHIN).await {
            Ok(said) if said.is_success => status.done.push(format!("loginctl {}", args.join(" "))),
            Ok(said) => status.hints.push(format!("loginctl enable-linger: {}", said.reason())),
            Err(shortfall) => status.hints.push(shortfall.problem),
        }
        status.linger = lingers(service, &user).await;
    }
    let version = status.version.as_deref().and_then(major);
    match status.linger {
        Some(true) => {
            if let Some(version) = version.filter(|version| *version <= LAST_FAULTY) {
                status.hints.push(format!(
                    "systemd {version} has a fault by which a log-out can end services in spite of lingering; 256.3 has not"
                ));
            }
        }
        Some(false) => status.hints.push(format!(
            "the service ends with your last log-out and does not start with the machine: loginctl enable-linger {user}"
        )),
        None => status.hints.push(format!(
            "whether the service outlives your last log-out cannot be told; it does after: loginctl enable-linger {user}"
        )),
    }
}

async fn lingers(service: &Service<'_>, user: &str) -> Option<bool> {
    let args = ["show-user", user, "--property=Linger"];
    let said = tool::run(service.world, "loginctl", &args, ANSWER_WITHIN).await.ok()?;
    match said.value("Linger")? {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn user(service: &Service<'_>) -> String {
    let named =
        ["USER", "LOGNAME"].into_iter().find_map(|name| service.world.client.var(name)?.to_str());
    // Words of ours are read back by a shell when a person follows a hint.
    let is_plain = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    named
        .filter(is_plain)
        .map_or_else(|| rustix::process::getuid().as_raw().to_string(), str::to_owned)
}

/// `252.38-1~deb12u1`, `v256.3`, `257~rc1`: the number before anything else.
fn major(version: &str) -> Option<u32> {
    let digits = version.trim_start_matches('v');
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

/// The unit, and the link by which it is enabled, which systemd removes by itself if it is asked.
fn remove_files(service: &Service<'_>, status: &mut ServiceStatus) -> Result<(), Shortfall> {
    let link = service.file.with_file_name("default.target.wants").join(UNIT);
    for path in [&link, &service.file] {
        if file::remove(path)? {
            status.done.push(format!("removed {}", path.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_begins_with_its_number() {
        assert_eq!(major("252.38-1~deb12u1"), Some(252));
        assert_eq!(major("v256.3"), Some(256));
        assert_eq!(major("257~rc1"), Some(257));
        assert_eq!(major("unknown"), None);
    }
}
