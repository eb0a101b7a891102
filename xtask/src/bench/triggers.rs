//! What it costs to have much that waits: schedules whose time has not come, and runs that rest.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::context::Context;
use super::live::wakeups;
use super::row::{Row, Target};
use crate::interrupt;
use crate::private::Private;
use crate::process::{self, Memory};

const SCHEDULES: u32 = 100;
const RESTED: Duration = Duration::from_secs(300);
/// Of the daemon, in MiB: idle, and with a thousand runs.
const IDLE_MIB: f64 = 12.0;
const THOUSAND_MIB: f64 = 60.0;

/// A loop whose agent has nothing to do until it is told something.
const RESTS: &str = "---\nagent:\n  kind: exec\n  command: |\n    \
    echo '{\"status\":\"continue\",\"wait\":{\"message\":true}}' > \"$OUTLAST_RESPONSE_FILE\"\n---\nRest.\n";

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let runs: u32 = if context.is_quick { 200 } else { 1000 };
    let outlast = context.outlast()?;
    let daemon = outlast.start_daemon()?;
    fs::write(outlast.home().join("WORKFLOW.md"), RESTS).context("writing a loop file")?;
    for n in 0..SCHEDULES {
        interrupt::check()?;
        outlast.ask(&["schedule", "add", &format!("far{n}"), "--every", "30d", "--", "true"])?;
    }
    for _ in 0..runs {
        interrupt::check()?;
        outlast.ask(&["run", "-d", "-f", "WORKFLOW.md"])?;
    }
    interrupt::wait_for("every run to rest", RESTED, || has_rested(&outlast, runs))?;
    let when = format!("with {SCHEDULES} schedules and {runs} resting runs");
    let idle = wakeups("idle-triggers", daemon, &when)?;
    let mib = process::memory_mib(daemon, Memory::Now)?;
    let most = IDLE_MIB + (THOUSAND_MIB - IDLE_MIB) * f64::from(runs) / 1000.0;
    let how = format!("daemon RSS {when}");
    Ok(vec![idle, Row::figure("memory-triggers", mib, "MiB", Target::AtMost(most), how)])
}

fn has_rested(outlast: &Private, runs: u32) -> Result<Option<()>> {
    let waiting = outlast.ask_json(&["ps", "--state", "waiting", "--json"])?;
    let count = waiting.as_array().map_or(0, Vec::len);
    Ok((count >= usize::try_from(runs)?).then_some(()))
}
