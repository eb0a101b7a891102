//! Asking a service manager's tool, within a time, and hearing what it says.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use outlast_wire::api::ServiceStatus;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::Child;
use tokio::time::Instant;

use super::Shortfall;
use crate::output::printable;
use crate::world::World;

/// More than any answer that we ask for; what is beyond it is not read.
const MOST: u64 = 256 * 1024;

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

/// Runs a tool to its end. An exit code that is not 0 is an answer too; one that has none in time is a shortfall.
pub(super) async fn run(
    world: &World,
    program: &str,
    args: &[&str],
    within: Duration,
) -> Result<Said, Shortfall> {
    let what = || format!("{program} {}", args.join(" "));
    let mut command = world.tool(program);
    command.args(args).env("LC_ALL", "C").env("SYSTEMD_COLORS", "0").env("SYSTEMD_PAGER", "");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| Shortfall::new(format!("cannot run {}: {error}", what())))?;
    let group = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    match tokio::time::timeout(within, hear(child)).await {
        Ok(Ok(said)) => Ok(said),
        Ok(Err(error)) => Err(Shortfall::new(format!("cannot hear {}: {error}", what()))),
        Err(_) => {
            // Not waited for yet, so the number is still its own.
            if let Some(group) = group {
                let _gone_already = kill_process_group(group, Signal::KILL);
            }
            let seconds = within.as_secs();
            Err(Shortfall::new(format!("{} did not answer within {seconds} s", what())))
        }
    }
}

async fn hear(mut child: Child) -> std::io::Result<Said> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let out = child.stdout.take().expect("its output is piped");
    let err = child.stderr.take().expect("its errors are piped");
    let (mut out, mut err) = (out.take(MOST), err.take(MOST));
    let (heard_out, heard_err) =
        tokio::join!(out.read_to_end(&mut stdout), err.read_to_end(&mut stderr));
    heard_out.and(heard_err)?;
    let status = child.wait().await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Said { is_success: status.success(), stdout: text(stdout), stderr: text(stderr), status })
}
