//! `outlast daemon uninstall`: the service goes, the runs stay. What was not achieved exits with 1.

use outlast_wire::api::ServiceStatus;

use super::install::tell_hints;
use crate::args::DaemonUninstall;
use crate::service;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn uninstall(world: &World, args: DaemonUninstall) -> Answer {
    let status = service::uninstall(world, args.manager).await;
    if args.json {
        output::print_json(&status)?;
        return Ok(exit(&status));
    }
    match &status.problem {
        Some(problem) => {
            output::tell(&format!("outlast: the service is not uninstalled: {problem}"));
        }
        None if status.done.is_empty() => output::print_line("not installed")?,
        None => output::print_line(
            "uninstalled; runs go on, and the next command starts a daemon for them",
        )?,
    }
    tell_hints(&status);
    Ok(exit(&status))
}

/// What was not done is no success.
fn exit(status: &ServiceStatus) -> u8 {
    u8::from(status.problem.is_some())
}
