//! How long a person or a script waits: a whole turn, and the moment the command begins.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::context::Context;
use super::floor;
use super::row::{Row, Target, ms, shown};
use crate::stamp;

/// Long enough that the client's own start does not count.
const TURNS: u32 = 50;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    Ok(vec![turn(context)?, exec(context)?])
}

/// A whole turn of an agent that does nothing, as a loop takes it: tried again and again without a delay, so
/// that the end of one and the start of the next are one append.
fn turn(context: &Context) -> Result<Row> {
    let outlast = context.outlast()?;
    outlast.start_daemon()?;
    let fork_exec = floor::fork_exec(context)?;
    let fdatasync = floor::fdatasync(context)?;
    let retry = (TURNS - 1).to_string();
    let loop_time = context.median_time(|| {
        let id =
            outlast.ask(&["run", "-d", "--retry", &retry, "--backoff", "0ms", "--", "false"])?;
        outlast.output(&["wait", &id]).map(drop)
    })?;
    let turn = loop_time / TURNS;
    let floor = 2 * fork_exec + 4 * fdatasync;
    let how = format!(
        "{} a turn, {TURNS} in a row; floor {} = 2 × {} fork+exec + 4 × {} fdatasync",
        shown(turn),
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
