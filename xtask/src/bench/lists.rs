//! What runs that have ended cost: the list of them, and the daemon's memory.

use anyhow::Result;

use super::context::Context;
use super::made;
use super::row::{Row, Target, ms};
use crate::process::{self, Memory};

pub(super) const ENDED: u32 = 10_000;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let empty = context.outlast()?;
    let alone = process::memory_mib(empty.start_daemon()?, Memory::Now)?;
    drop(empty);
    let outlast = context.outlast()?;
    made::ended_runs(outlast.home(), ENDED)?;
    let daemon = outlast.start_daemon()?;
    let full = process::memory_mib(daemon, Memory::Now)?;
    let list = context.median_time(|| outlast.ask(&["ps", "-a"]).map(drop))?;
    let listed = process::memory_mib(daemon, Memory::Now)?;
    let memory = format!(
        "{full:.1} MiB with {ENDED} ended runs, {alone:.1} MiB with none; {listed:.1} MiB once listed"
    );
    Ok(vec![
        Row::figure(
            "ps-10k",
            ms(list),
            "ms",
            Target::AtMost(50.0),
            format!("ps -a with {ENDED} ended runs"),
        ),
        Row::ratio("memory-10k", full / alone, Target::AtMost(1.1), memory),
    ])
}
