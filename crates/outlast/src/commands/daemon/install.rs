//! `outlast daemon install`: have a service manager start the daemon by itself.
//!
//! An install that did not achieve what it says exits with 1, and says what to do instead.

use outlast_wire::api::ServiceStatus;

use crate::args::DaemonInstall;
use crate::service::{self, Linger, Preview, With};
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn install(world: &World, args: DaemonInstall) -> Answer {
    let with = if args.web { With::Page } else { With::Nothing };
    if args.print {
        return output::print(&service::preview(world, args.manager, with)?.text).map(|()| 0);
    }
    if args.dry_run {
        return preview(&service::preview(world, args.manager, with)?, args.json);
    }
    let linger = if args.linger { Linger::Enable } else { Linger::Explain };
    let status = service::install(world, args.manager, linger, with).await;
    if args.json {
        output::print_json(&status)?;
    } else {
        tell(&status)?;
    }
    Ok(u8::from(!status.installed))
}

fn preview(preview: &Preview, json: bool) -> Answer {
    if json {
        let file = preview.file.display().to_string();
        output::print_json(&serde_json::json!({
            "unit": file, "text": preview.text, "steps": preview.steps,
        }))?;
    } else {
        for step in &preview.steps {
            output::print_line(step)?;
        }
    }
    Ok(0)
}

fn tell(status: &ServiceStatus) -> Result<(), outlast_client::problem::Problem> {
    match &status.problem {
        None => output::say(&installed(status))?,
        Some(problem) => output::tell(&format!("outlast: the service is not installed: {problem}")),
    }
    tell_hints(status);
    Ok(())
}

fn installed(status: &ServiceStatus) -> String {
    let unit = status.unit.as_deref().unwrap_or_default();
    let what = if status.done.is_empty() { "already installed" } else { "installed" };
    match status.pid {
        Some(pid) => format!("{what}: {unit}, pid {pid}"),
        None => format!("{what}: {unit}"),
    }
}

pub(super) fn tell_hints(status: &ServiceStatus) {
    for hint in &status.hints {
        output::tell_hint(hint);
    }
}
