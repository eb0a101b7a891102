//! The page as a second service beside the daemon's: `outlast-web.service`, of systemd only.
//!
//! Ending it ends no run, and no run ends it. It prints no link: what a service prints is kept in a log.

use std::path::PathBuf;
use std::time::Duration;

use outlast_wire::api::ServiceStatus;

use super::description::Description;
use super::{Manager, Service, Shortfall, file, tool, unit};

const UNIT: &str = "outlast-web.service";
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// What an install asks for besides.
pub(super) const STEPS: [&str; 3] = [
    "systemctl --user daemon-reload",
    "systemctl --user enable outlast-web.service",
    "systemctl --user --no-block start outlast-web.service",
];

/// Its file, and what that says.
pub(super) fn described(service: &Service<'_>) -> Result<(PathBuf, String), Shortfall> {
    if service.manager != Manager::Systemd {
        let message = "the page as a service needs systemd";
        return Err(Shortfall::new(message).hint("outlast web serves it until Ctrl-C"));
    }
    let text = unit::page(&Description::of(service.world)?)?;
    Ok((service.file.with_file_name(UNIT), text))
}

pub(super) async fn install(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    let (path, text) = described(service)?;
    let known = file::read(&path)?;
    let is_new = known.as_ref() != Some(&text);
    if let Some(known) = known.filter(|_| is_new) {
        file::refuse_strangers(&path, &known, &text)?;
    }
    if is_new {
        file::write(&path, &text)?;
        status.done.push(format!("wrote {}", path.display()));
        order(service, status, &["daemon-reload"]).await?;
    }
    if !is_enabled(service).await? {
        order(service, status, &["enable", UNIT]).await?;
        if !is_enabled(service).await? {
            let message = format!("systemd was told to enable {UNIT} and did not");
            return Err(Shortfall::new(message).hint(format!("systemctl --user enable {UNIT}")));
        }
    }
    // One that runs already goes on, unless its file says something else by now.
    let verb = if is_new { "restart" } else { "start" };
    order(service, status, &["--no-block", verb, UNIT]).await?;
    status.hints.push("outlast web url prints a link to the page".to_owned());
    Ok(())
}

/// Removes it, if it is there and ours.
pub(super) async fn uninstall(
    service: &Service<'_>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    if service.manager != Manager::Systemd {
        return Ok(());
    }
    let (path, text) = described(service)?;
    let Some(known) = file::read(&path)? else { return Ok(()) };
    file::refuse_strangers(&path, &known, &text)?;
    if service.must_have_tool().is_ok() {
        order(service, status, &["disable", UNIT]).await?;
        order(service, status, &["stop", UNIT]).await?;
    }
    for path in [path.with_file_name("default.target.wants").join(UNIT), path] {
        if file::remove(&path)? {
            status.done.push(format!("removed {}", path.display()));
        }
    }
    Ok(())
}

async fn is_enabled(service: &Service<'_>) -> Result<bool, Shortfall> {
    let args = ["--user", "show", "--property=UnitFileState", UNIT];
    let said = tool::run(service.world, "systemctl", &args, ANSWER_WITHIN).await?;
    Ok(said.value("UnitFileState") == Some("enabled"))
}

async fn order(
    service: &Service<'_>,
    status: &mut ServiceStatus,
    args: &[&str],
) -> Result<(), Shortfall> {
    tool::order(service.world, status, "systemctl", &[&["--user"], args].concat()).await
}
