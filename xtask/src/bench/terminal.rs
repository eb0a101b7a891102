//! Output through a terminal, held against dtach, which keeps neither a log nor a screen.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use super::context::Context;
use super::peers::{PEERS, find};
use super::row::{Row, Target, median, shown, timed};
use crate::private::Private;

const ROUNDS: usize = 5;

/// A line as a compiler or a test suite prints it.
const LINE: &[u8] =
    b"\x1b[32mok\x1b[0m the quick brown fox jumps over the \x1b[1mlazy\x1b[0m dog and runs away\n";

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let bytes: usize = if context.is_quick { 32_000_000 } else { 100_000_000 };
    let text = context.scratch.join("text");
    write_lines(&text, bytes)?;
    let outlast = context.outlast()?;
    outlast.start_daemon()?;
    let Some(dtach) = find("dtach") else {
        let ours = context.median_of(ROUNDS, || timed(|| through_run(&outlast, &text)))?;
        let why = format!("{} for us; dtach is neither on PATH nor in ${PEERS}", shown(ours));
        return Ok(vec![Row::skipped("tty", why)]);
    };
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        // In the same moments: the kernel's side of a terminal takes most of the time, and differs from minute to minute.
        let theirs = timed(|| through_dtach(context, &dtach, &text))?;
        let ours = timed(|| through_run(&outlast, &text))?;
        rounds.push((ours, theirs));
    }
    let (ours, theirs) = (
        median(rounds.iter().map(|(ours, _)| *ours).collect()),
        median(rounds.iter().map(|(_, theirs)| *theirs).collect()),
    );
    let ratio = rounds.iter().map(|(ours, theirs)| ours.as_secs_f64() / theirs.as_secs_f64());
    let how = format!(
        "{} MB of coloured lines in {} with the whole log kept, through dtach in {}",
        bytes / 1_000_000,
        shown(ours),
        shown(theirs)
    );
    Ok(vec![Row::ratio("tty", median(ratio.collect()), Target::AtMost(1.3), how)])
}

fn write_lines(path: &Path, bytes: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for _ in 0..bytes / LINE.len() {
        file.write_all(LINE)?;
    }
    Ok(file.flush()?)
}

fn through_run(outlast: &Private, text: &Path) -> Result<()> {
    let text = text.to_str().context("a path of ours is text")?;
    let id = outlast.ask(&["run", "-d", "--tty", "--", "cat", text])?;
    outlast.ask(&["wait", &id, "--timeout", "300s"]).map(drop)
}

fn through_dtach(context: &Context, dtach: &Path, text: &Path) -> Result<()> {
    let done = context.scratch.join("dtach-done");
    let mut command = Command::new(dtach);
    command.arg("-N").arg(context.scratch.join("dtach"));
    command.args(["sh", "-c", "cat \"$0\" && : > \"$1\""]).arg(text).arg(&done);
    // This marks the process as ours, should we die before it.
    command.env("OUTLAST_HOME", &context.scratch);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Its exit status is 1 whenever its program has ended.
    let status = command.status().context("starting dtach")?;
    fs::remove_file(&done).with_context(|| format!("dtach ended early, with {status}"))
}
