//! How long a person or a script waits: a whole turn, and the moment the command begins.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::context::Context;
use super::floor;
use super::row::{Row, Target, ms, shown};
use crate::stamp;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    Ok(vec![turn(context)?, exec(context)?])
}

/// A whole turn of an agent that does nothing, without what it takes to start the client itself.
fn turn(context: &Context) -> Result<Row> {
    let outlast = context.outlast()?;
    outlast.start_daemon()?;
    let fork_exec = floor::fork_exec(context)?;
    let fdatasync = floor::fdatasync(context)?;
    let client = context.median_time(|| outlast.ask(&["version"]).map(drop))?;
    let attached = context.median_time(|| outlast.ask(&["run", "--", "true"]).map(drop))?;
    let turn = attached.saturating_sub(client);
    let floor = 2 * fork_exec + 4 * fdatasync;
    let how = format!(
        "{} attached, of which {} is the client's start; floor {} = 2 × {} fork+exec + 4 × {} fdatasync",
        shown(attached),
        shown(client),
        shown(floor),
        shown(fork_exec),
        shown(fdatasync)
    );
    Ok(Row::ratio("turn", turn.as_secs_f64() / floor.as_secs_f64(), Target::AtMost(2.0), how))
}

/// From the start of the client to the first thing the command does.
fn exec(context: &Context) -> Result<Row> {
    let outlast = context.outlast()?;
    outlast.start_daemon()?;
    let file = outlast.home().join("stamp");
    let child = std::env::current_exe()?;
    let (child, stamped) = (child.to_string_lossy(), file.to_string_lossy());
    let took = context.median_of(context.rounds(), || {
        let begin = stamp::now_ns();
        let id = outlast.start_run(&[&child, "__stamp", &stamped])?;
        outlast.ask(&["wait", &id, "--timeout", "30s"])?;
        let end: u64 = std::fs::read_to_string(&file)?.parse().context("a stamp")?;
        Ok(Duration::from_nanos(end.saturating_sub(begin)))
    })?;
    let how = "from the client's start to the first thing the command does".to_owned();
    Ok(Row::figure("exec", ms(took), "ms", Target::AtMost(10.0), how))
}
