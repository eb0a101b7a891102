//! What runs that have ended cost: the list of them, and the daemon's memory.

use std::time::Duration;

use anyhow::Result;

use super::context::Context;
use super::made;
use super::row::{Row, Target, ms};
use crate::process::{self, Memory};

pub(super) const ENDED: u32 = 10_000;

/// Enough to fill every cache that the daemon has.
const SOME_ENDED: u32 = 2_000;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let (_, some) = listed(context, SOME_ENDED)?;
    let (list, full) = listed(context, ENDED)?;
    let how = format!("ps -a with {ENDED} ended runs");
    let memory = format!(
        "daemon RSS after lists of them: {full:.1} MiB with {ENDED} ended runs, {some:.1} MiB with {SOME_ENDED}"
    );
    Ok(vec![
        Row::figure("ps-10k", ms(list), "ms", Target::AtMost(50.0), how),
        Row::ratio("memory-10k", full / some, Target::AtMost(1.1), memory),
    ])
}

/// How long a list of so many ended runs takes, and what the daemon's memory is after it.
fn listed(context: &Context, ended: u32) -> Result<(Duration, f64)> {
    let outlast = context.outlast()?;
    made::ended_runs(outlast.home(), ended)?;
    let daemon = outlast.start_daemon()?;
    let list = context.median_time(|| outlast.ask(&["ps", "-a"]).map(drop))?;
    Ok((list, process::memory_mib(daemon, Memory::Now)?))
}
