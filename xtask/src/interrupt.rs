//! Ctrl-c as a flag that long commands look at, so that they clean up before they go.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From here on ctrl-c no longer ends this process.
pub(crate) fn listen() -> Result<()> {
    let flag = ASKED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(flag)).context("listening for ctrl-c")?;
    }
    Ok(())
}

pub(crate) fn is_asked() -> bool {
    ASKED.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

pub(crate) fn check() -> Result<()> {
    if is_asked() {
        bail!("interrupted");
    }
    Ok(())
}

/// Sleeps unless and until a signal asks this process to end.
pub(crate) fn pause(time: Duration) {
    let end = Instant::now() + time;
    while !is_asked() && Instant::now() < end {
        std::thread::sleep(
            end.saturating_duration_since(Instant::now()).min(Duration::from_millis(50)),
        );
    }
}

/// Asks until there is an answer, every so often, for so long at most.
pub(crate) fn wait_for<T>(
    what: &str,
    longest: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let end = Instant::now() + longest;
    loop {
        check()?;
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if Instant::now() >= end {
            bail!("{what}: not after {} s", longest.as_secs());
        }
        pause(Duration::from_millis(20));
    }
}
