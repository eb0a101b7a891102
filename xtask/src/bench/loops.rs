//! What a loop's turns cost: one after another, many loops at once, and after ten thousand.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::context::Context;
use super::floor;
use super::live::time_of;
use super::row::{Row, Target, shown};
use crate::interrupt;
use crate::private::Private;
use crate::process::{self, Memory};

/// Long enough that the client's own start does not count.
const TURNS: u32 = 50;

/// What is answered, and the least that can be run to answer it.
const ANSWER: &str = r#"printf '{"status":"continue"}' > "$OUTLAST_RESPONSE_FILE""#;

/// The cost of late turns against that of early ones: nothing but noise.
const GROWTH: f64 = 1.25;

/// Of the daemon, in MiB, over ten thousand turns.
const MEMORY_GROWTH_MIB: f64 = 4.0;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let one = one_loop(context)?;
    let mut rows = vec![loop_turn(context, one)?, many_loops(context, one)?];
    rows.extend(long_loop(context)?);
    Ok(rows)
}

/// The time of one turn of a loop that nothing else runs beside.
fn one_loop(context: &Context) -> Result<Duration> {
    let outlast = with_loop(context, TURNS)?;
    let time = context.median_of(context.rounds().min(15), || {
        let begin = Instant::now();
        run_to_end(&outlast)?;
        Ok(begin.elapsed())
    })?;
    Ok(time / TURNS)
}

fn with_loop(context: &Context, turns: u32) -> Result<Private> {
    let outlast = context.outlast()?;
    let file = format!(
        "---\nagent: {{ kind: exec, max_turns: {turns}, command: '{}' }}\nlimits: {{ no_progress_turns: 0, run_timeout_ms: 0 }}\n---\nGo on\n",
        ANSWER.replace('\'', "''")
    );
    std::fs::write(outlast.home().join("WORKFLOW.md"), file).context("a loop file")?;
    outlast.start_daemon()?;
    Ok(outlast)
}

/// All its turns used is how such a loop ends.
fn run_to_end(outlast: &Private) -> Result<String> {
    let id = outlast.ask(&["run", "-d", "-f", "WORKFLOW.md"])?;
    let waited = outlast.output(&["wait", &id])?;
    ensure!(waited.status.code() == Some(4), "the loop ended with {}", waited.status);
    Ok(id)
}

fn loop_turn(context: &Context, turn: Duration) -> Result<Row> {
    let fork_exec = floor::fork_exec(context)?;
    let fdatasync = floor::fdatasync(context)?;
    let agent = agent_floor(context)?;
    let floor = fork_exec + agent + 4 * fdatasync;
    let how = format!(
        "{} a turn of a loop, {TURNS} in a row; floor {} = {} fork+exec + {} the agent alone + 4 × {} fdatasync",
        shown(turn),
        shown(floor),
        shown(fork_exec),
        shown(agent),
        shown(fdatasync)
    );
    let ratio = turn.as_secs_f64() / floor.as_secs_f64();
    Ok(Row::ratio("loop-turn", ratio, Target::AtMost(2.0), how))
}

/// The agent without Outlast.
fn agent_floor(context: &Context) -> Result<Duration> {
    let file = context.scratch.join("answer");
    context.median_time(|| {
        let mut agent = Command::new("sh");
        agent.args(["-c", ANSWER]).env("OUTLAST_RESPONSE_FILE", &file).stdin(Stdio::null());
        let status = agent.status().context("starting sh")?;
        ensure!(status.success(), "the agent ended with {status}");
        Ok(())
    })
}

/// As many loops at once as the journal is measured with: turns in a second against those of one alone.
fn many_loops(context: &Context, alone: Duration) -> Result<Row> {
    let (loops, turns) = if context.is_quick { (64, 4) } else { (512, 8) };
    let outlast = with_loop(context, turns)?;
    let begin = Instant::now();
    let ids = (0..loops)
        .map(|_| {
            interrupt::check()?;
            outlast.ask(&["run", "-d", "-f", "WORKFLOW.md"])
        })
        .collect::<Result<Vec<_>>>()?;
    for id in &ids {
        interrupt::check()?;
        let waited = outlast.output(&["wait", id])?;
        ensure!(waited.status.code() == Some(4), "loop {id} ended with {}", waited.status);
    }
    let turn = begin.elapsed() / (loops * turns);
    let how = format!(
        "{} a turn with {loops} loops of {turns} turns at once, their starts among it; {} alone",
        shown(turn),
        shown(alone)
    );
    let ratio = alone.as_secs_f64() / turn.as_secs_f64();
    Ok(Row::ratio("loops-512", ratio, Target::AtLeast(1.0), how))
}

/// The cost of the last tenth of the turns against the first tenth, and what the daemon grew by.
fn long_loop(context: &Context) -> Result<Vec<Row>> {
    let turns: u32 = if context.is_quick { 500 } else { 10_000 };
    let outlast = with_loop(context, turns)?;
    let daemon = outlast.daemon_pid()?.context("the daemon was started")?;
    let id = outlast.ask(&["run", "-d", "-f", "WORKFLOW.md"])?;
    let tenth = u64::from(turns / 10);
    let committed = |least: u64| {
        let outlast = &outlast;
        let id = &id;
        move || {
            let turn = outlast.show(id)?["turns_committed"].as_u64().unwrap_or(0);
            Ok((turn >= least).then_some(()))
        }
    };
    let patience = Duration::from_secs(600);
    interrupt::wait_for("the first tenth of the turns", patience, committed(tenth))?;
    let before = process::memory_mib(daemon, Memory::Now)?;
    let waited = outlast.output(&["wait", &id])?;
    ensure!(waited.status.code() == Some(4), "the long loop ended with {}", waited.status);
    let grown = process::memory_mib(daemon, Memory::Now)? - before;
    let (early, late) = tenths(&outlast, &id, turns / 10)?;
    let how = format!(
        "{} a turn of the last tenth of {turns}, {} of the first",
        shown(late),
        shown(early)
    );
    let ratio = late.as_secs_f64() / early.as_secs_f64();
    let memory = format!("what the daemon grew by from turn {} to turn {turns}", turns / 10);
    Ok(vec![
        Row::ratio("loop-10k", ratio, Target::AtMost(GROWTH), how),
        Row::figure("loop-10k-memory", grown, "MiB", Target::AtMost(MEMORY_GROWTH_MIB), memory),
    ])
}

fn tenths(outlast: &Private, id: &str, tenth: u32) -> Result<(Duration, Duration)> {
    let events = outlast.events(id)?;
    let times = events.iter().filter(|event| event["kind"] == "TurnCommitted").map(time_of);
    let times = times.collect::<Result<Vec<_>>>()?;
    let tenth = usize::try_from(tenth)?;
    let (first, last) = (times.get(..=tenth), times.get(times.len().saturating_sub(tenth + 1)..));
    let (first, last) = first.zip(last).context("turns enough")?;
    let each = |part: &[Duration]| -> Result<Duration> {
        let (begin, end) = part.first().zip(part.last()).context("turns enough")?;
        Ok(end.saturating_sub(*begin) / u32::try_from(part.len() - 1)?)
    };
    Ok((each(first)?, each(last)?))
}
