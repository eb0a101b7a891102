//! The rest of a minute, for an agent that cannot go on with a conversation in the minute in which the conversation began.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::record::Record;
use crate::screen;

/// Between two looks at whether the attempt is to end.
const LOOK: Duration = Duration::from_millis(500);

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Through,
    /// The attempt is to end.
    Stopped,
}

/// Waits until the minute is over in which the conversation began, if it is not. The agent counts as at work meanwhile.
pub(crate) fn wait(record: &Record, kind: &str) -> io::Result<Waited> {
    let began = record.began_ms().map(|ms| ms / 60_000);
    if began != Some(minute()) {
        return Ok(Waited::Through);
    }
    screen::say(&format!("[outlast: {kind} goes on with a conversation from the next minute on]"));
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, is_stopped.clone())?;
    }
    while Some(minute()) == began {
        if is_stopped.load(Ordering::Relaxed) {
            return Ok(Waited::Stopped);
        }
        record.beat();
        thread::sleep(LOOK);
    }
    Ok(Waited::Through)
}

#[expect(clippy::disallowed_methods, reason = "the agent goes by the wall clock")]
fn minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 60
}
