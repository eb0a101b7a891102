//! A clock that two processes read alike, and the child that writes it down.

use std::path::Path;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec)
        .expect("the monotonic clock is not negative")
}

pub(crate) fn write(file: &Path, stamp: u64) -> Result<()> {
    std::fs::write(file, stamp.to_string()).with_context(|| format!("writing {}", file.display()))
}
