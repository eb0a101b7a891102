//! What every measurement needs: how much of it, where, and with which program.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::row::median;
use crate::interrupt;
use crate::private::Private;

pub(super) struct Context {
    pub(super) is_quick: bool,
    pub(super) scratch: PathBuf,
    pub(super) binary: PathBuf,
    homes: AtomicU32,
}

impl Context {
    pub(super) fn new(is_quick: bool, scratch: &Path, binary: &Path) -> Result<Self> {
        let (scratch, binary) = (std::path::absolute(scratch)?, std::path::absolute(binary)?);
        Ok(Self { is_quick, scratch, binary, homes: AtomicU32::new(0) })
    }

    /// A new Outlast with nothing in it.
    pub(super) fn outlast(&self) -> Result<Private> {
        let number = self.homes.fetch_add(1, Ordering::Relaxed);
        Private::new(&self.binary, self.scratch.join(format!("home{number}")))
    }

    pub(super) fn rounds(&self) -> usize {
        if self.is_quick { 11 } else { 51 }
    }

    /// How long it takes, in the middle of many times.
    pub(super) fn median_time(&self, mut body: impl FnMut() -> Result<()>) -> Result<Duration> {
        self.median_of(self.rounds(), || {
            let begin = Instant::now();
            body()?;
            Ok(begin.elapsed())
        })
    }

    pub(super) fn median_of<T: Copy + PartialOrd>(
        &self,
        rounds: usize,
        mut body: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        // The first time fills caches and counts for nothing.
        body()?;
        let round = |_| {
            interrupt::check()?;
            body()
        };
        Ok(median((0..rounds).map(round).collect::<Result<Vec<_>>>()?))
    }
}
