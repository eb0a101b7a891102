//! Output at full speed, what it costs in memory, and coming back to much of it.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::context::Context;
use super::live::shim_of;
use super::row::{Row, Target, ms, shown, timed};
use crate::interrupt;
use crate::private::Private;
use crate::process::{self, Memory};

const ROUNDS: usize = 3;
/// A run that writes for longer than this is not measured any more.
const WRITTEN_MAX: Duration = Duration::from_secs(300);

/// Shim and daemon together, whatever is written.
const PEAK_MIB: f64 = 40.0;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let bytes = if context.is_quick { 128 << 20 } else { 1 << 30 };
    let outlast = context.outlast()?;
    let daemon = outlast.start_daemon()?;
    let mut rows = speed(context, &outlast, bytes)?;
    let small = outlast.start_run(&["sh", "-c", "echo here; exec sleep 3600"])?;
    let large =
        outlast.start_run(&["sh", "-c", &format!("head -c {bytes} /dev/zero; exec sleep 3600")])?;
    interrupt::wait_for("the history", WRITTEN_MAX, || has_written(&outlast, &large, bytes))?;
    rows.push(memory(&outlast, daemon, &large, bytes)?);
    let first = context.median_of(context.rounds(), || attach(&outlast, &small))?;
    let late = context.median_of(context.rounds(), || attach(&outlast, &large))?;
    let how = "from the client's start to the first byte".to_owned();
    rows.push(Row::figure("attach", ms(first), "ms", Target::AtMost(20.0), how));
    let how =
        format!("{} with {} of history, {} with one line", shown(late), mib(bytes), shown(first));
    rows.push(Row::ratio(
        "attach-history",
        late.as_secs_f64() / first.as_secs_f64(),
        Target::AtMost(1.5),
        how,
    ));
    Ok(rows)
}

/// Without secrets in the environment, and with ten that are searched for in every byte.
fn speed(context: &Context, outlast: &Private, bytes: u64) -> Result<Vec<Row>> {
    let count = bytes.to_string();
    let plain = context.median_of(ROUNDS, || timed(|| through_cat(context, &count)))?;
    let row = |name: &'static str, flags: &[String]| {
        let ours = context.median_of(ROUNDS, || {
            timed(|| {
                let flags = flags.iter().map(String::as_str);
                let command = ["--", "head", "-c", &count, "/dev/zero"];
                let asked: Vec<&str> =
                    ["run", "-d"].into_iter().chain(flags).chain(command).collect();
                let id = outlast.ask(&asked)?;
                outlast.ask(&["wait", id.trim_end(), "--timeout", "300s"]).map(drop)
            })
        })?;
        let how =
            format!("{} in {}, through cat > file in {}", mib(bytes), shown(ours), shown(plain));
        let ratio = plain.as_secs_f64() / ours.as_secs_f64();
        Ok::<Row, anyhow::Error>(Row::ratio(name, ratio, Target::AtLeast(0.7), how))
    };
    let variable =
        |number| format!("--env=B{number}_TOKEN=sk-{number}-0123456789abcdefghij-{number}");
    let secrets: Vec<String> = (0..10).map(variable).collect();
    Ok(vec![row("output", &[])?, row("output-secrets", &secrets)?])
}

fn through_cat(context: &Context, count: &str) -> Result<()> {
    let path = context.scratch.join("cat");
    let mut head =
        Command::new("head").args(["-c", count, "/dev/zero"]).stdout(Stdio::piped()).spawn()?;
    let pipe = head.stdout.take().context("head has a pipe")?;
    let status = Command::new("cat").stdin(pipe).stdout(File::create(&path)?).status()?;
    ensure!(status.success() && head.wait()?.success(), "head | cat ended with {status}");
    Ok(std::fs::remove_file(path)?)
}

fn has_written(outlast: &Private, id: &str, bytes: u64) -> Result<Option<()>> {
    Ok((outlast.show(id)?["output_bytes"].as_u64() >= Some(bytes)).then_some(()))
}

fn memory(outlast: &Private, daemon: u32, id: &str, bytes: u64) -> Result<Row> {
    let shim = process::memory_mib(shim_of(outlast, id)?, Memory::Peak)?;
    let daemon = process::memory_mib(daemon, Memory::Peak)?;
    let how = format!(
        "peak RSS of the shim {shim:.1} MiB and of the daemon {daemon:.1} MiB while {} went by",
        mib(bytes)
    );
    Ok(Row::figure("output-memory", shim + daemon, "MiB", Target::AtMost(PEAK_MIB), how))
}

/// Until the first byte of what the run has written.
fn attach(outlast: &Private, id: &str) -> Result<Duration> {
    let begin = Instant::now();
    let mut client = outlast.open(&["attach", id])?;
    let mut byte = [0];
    let read = client.stdout.take().context("attach has a pipe")?.read_exact(&mut byte);
    let took = begin.elapsed();
    client.kill().context("ending attach")?;
    client.wait().context("ending attach")?;
    read.context("attach has shown nothing")?;
    Ok(took)
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
