//! What `run` takes beside what a run is: when it starts, and what it reads.

use std::time::Duration;

use clap::Args;
use outlast_wire::api::AskedQueue;

use super::Run;
use crate::duration;

/// The heading under which the help lists these.
const START: &str = "Start and input";

// What is typed for `outlast run`; a trigger takes the first part of it. No doc comment: the help is that of `Run`.
#[derive(Debug, Args)]
pub(crate) struct RunNow {
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) start: Start,
}

#[derive(Debug, Args)]
pub(crate) struct Start {
    /// Read standard input to its end and give it to the command; at most 16 MiB
    #[arg(short = 'i', long, conflicts_with_all = ["tty", "file"], help_heading = START)]
    pub(crate) stdin: bool,
    /// Start it once this run has completed; fail if this run ends otherwise
    #[arg(long, value_name = "RUN", help_heading = START)]
    pub(crate) after: Option<String>,
    /// Start it when this run has ended, however it ended
    #[arg(long, value_name = "RUN", conflicts_with = "after", help_heading = START)]
    pub(crate) after_any: Option<String>,
    /// Start it after this long
    #[arg(long, value_name = "DURATION", value_parser = duration::parse_delay, help_heading = START)]
    pub(crate) delay: Option<Duration>,
    /// Start it at this local time: 03:00 (the next), 2026-12-24T18:00
    #[arg(long, value_name = "TIME", conflicts_with = "delay", help_heading = START)]
    pub(crate) at: Option<String>,
}

/// `gpu`, or `gpu:2` for a queue of two slots.
pub(super) fn parse_queue(text: &str) -> Result<AskedQueue, String> {
    let (name, slots) = match text.split_once(':') {
        Some((name, slots)) => (name, Some(slots)),
        None => (text, None),
    };
    let wrong = "write NAME, or NAME:2 for two runs at once";
    let slots =
        slots.map(|slots| slots.parse::<u32>().map_err(|_| wrong.to_owned())).transpose()?;
    if name.is_empty() || slots == Some(0) {
        return Err(wrong.to_owned());
    }
    Ok(AskedQueue { name: name.to_owned(), slots })
}
