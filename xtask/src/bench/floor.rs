//! What the machine itself takes: a process, and a write that is safe.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::context::Context;

/// Starting `true` and seeing it end.
pub(super) fn fork_exec(context: &Context) -> Result<Duration> {
    context.median_time(|| {
        let status = Command::new("true").stdin(Stdio::null()).status().context("starting true")?;
        ensure!(status.success(), "true ended with {status}");
        Ok(())
    })
}

/// One write of a page at the end of a file, and fdatasync.
pub(super) fn fdatasync(context: &Context) -> Result<Duration> {
    let file = File::create(context.scratch.join("floor"))?;
    let mut at = 0;
    context.median_time(|| {
        file.write_all_at(&[7; 4096], at)?;
        at += 4096;
        Ok(file.sync_data()?)
    })
}

/// Writes of as much as a commit writes, each followed by fdatasync, in a second.
pub(super) fn sync_rate(place: &Path, count: u32) -> Result<f64> {
    let file = File::create(place.join("raw"))?;
    let begin = Instant::now();
    for n in 0..count {
        file.write_all_at(&[7; 2 * 4096], u64::from(n) * 8192)?;
        file.sync_data()?;
    }
    Ok(f64::from(count) / begin.elapsed().as_secs_f64())
}
