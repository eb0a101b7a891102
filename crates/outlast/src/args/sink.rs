//! What `sink` and its verbs take.

use clap::{Args, Subcommand};

/// List where notices are sent, and send a test
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast sink ls
  outlast sink test phone

Sinks are named in config.toml, as [sinks.NAME]; to drop one, take its table
out of the file. outlast run --notify takes a name or an address.")]
pub(crate) struct Sink {
    #[command(subcommand)]
    pub(crate) command: SinkCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SinkCommand {
    /// List sinks, their pending notices, and which ones fail
    #[command(
        after_help = "Examples:\n  outlast sink ls\n  outlast sink ls --json | jq '.[] | select(.pending > 0)'"
    )]
    Ls {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Send a test notice now, and print the result
    #[command(after_help = "\
Examples:
  outlast sink test phone
  outlast sink test webhook:https://example.org/hook

A sink that works again also gets its pending notices.

Exit codes: 0 delivered, 1 not delivered.")]
    Test {
        /// Its name in the config, or an address
        sink: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Enable a sink again that is disabled or paused after failures
    #[command(after_help = "Examples:\n  outlast sink enable phone")]
    Enable {
        /// Its name in the config, or an address
        sink: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl SinkCommand {
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Ls { json } | Self::Test { json, .. } | Self::Enable { json, .. } => *json,
        }
    }
}
