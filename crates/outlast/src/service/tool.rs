//! Asking a service manager's tool, within a time, and hearing what it says.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::Child;

use super::Shortfall;
use crate::output::printable;
use crate::world::World;

/// More than any answer that we ask for; what is beyond it is not read.
const MOST: u64 = 256 * 1024;

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
