//! Asking a service manager's tool, within a time, and hearing what it says.

use std::process::ExitStatus;
use std::time::Duration;

use outlast_program::{Beyond, Bound, Ended, Limits};
use outlast_wire::api::ServiceStatus;
use tokio::time::Instant;

use super::Shortfall;
use crate::output::printable;
use crate::world::World;

/// More than any answer that we ask for; the rest is dropped.
const MOST: usize = 256 * 1024;

/// For what a manager is told to do.
pub(super) const DONE_WITHIN: Duration = Duration::from_secs(30);
/// For a start to be seen to begin, and between two times that it is asked for.
pub(super) const BEGIN_WITHIN: Duration = Duration::from_secs(5);
const TELL_AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Said {
    pub(super) is_success: bool,
    pub(super) stdout: String,
    stderr: String,
    status: ExitStatus,
}

impl Said {
    /// Its own reason, on one line.
    pub(super) fn reason(&self) -> String {
        let said = [&self.stderr, &self.stdout];
        let line =
            said.iter().flat_map(|text| text.lines()).map(str::trim).find(|line| !line.is_empty());
        line.map_or_else(|| self.status.to_string(), printable)
    }

    /// The value of a `NAME=value` line.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.stdout.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Has the manager do something, and notes that it was asked to.
pub(super) async fn order(
    world: &World,
    status: &mut ServiceStatus,
    program: &str,
    args: &[&str],
) -> Result<(), Shortfall> {
    let what = format!("{program} {}", args.join(" "));
    let said = run(world, program, args, DONE_WITHIN).await?;
    if !said.is_success {
        return Err(Shortfall::new(format!("{what}: {}", said.reason())));
    }
    if !status.done.contains(&what) {
        status.done.push(what);
    }
    Ok(())
}

/// Whether to tell a manager to start: once, and now and then while a start would not have been seen yet.
pub(super) fn may_tell(told: Option<Instant>, began: Instant) -> bool {
    told.is_none_or(|at| at.elapsed() >= TELL_AGAIN && began.elapsed() < BEGIN_WITHIN)
}

/// Runs a tool to its end. An exit code that is not 0 is an answer too; no answer in time is a shortfall.
pub(super) async fn run(
    world: &World,
    program: &str,
    args: &[&str],
    within: Duration,
) -> Result<Said, Shortfall> {
    let what = || format!("{program} {}", args.join(" "));
    let mut command = world.tool(program);
    command.args(args).env("LC_ALL", "C").env("SYSTEMD_COLORS", "0").env("SYSTEMD_PAGER", "");
    let limits = Limits { within, most_stdout: MOST, most_stderr: MOST, beyond: Beyond::Dropped };
    let ended = outlast_program::run(command, limits)
        .await
        .map_err(|error| Shortfall::new(format!("cannot run {}: {error}", what())))?;
    match ended {
        Ended::Exited { status, stdout, stderr } => Ok(Said {
            is_success: status.success(),
            stdout: stdout.text(),
            stderr: stderr.text(),
            status,
        }),
        Ended::Stopped { bound: Bound::Time | Bound::Output, trouble: _ } => {
            let seconds = within.as_secs();
            Err(Shortfall::new(format!("{} did not answer within {seconds} s", what())))
        }
    }
}
