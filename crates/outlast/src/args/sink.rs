//! What `sink` and its verbs take.

use clap::{Args, Subcommand};

/// See where notices go, and try that out
#[derive(Debug, Args)]
#[command(after_help = "\
Sinks are named in config.toml, as [sinks.NAME]; run --notify takes a name or an address.")]
pub(crate) struct Sink {
    #[command(subcommand)]
    pub(crate) command: SinkCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SinkCommand {
    /// List sinks, what waits for each, and which cannot be told
    #[command(
        after_help = "Examples:\n  outlast sink ls\n  outlast sink ls --json | jq '.[] | select(.pending > 0)'"
    )]
    Ls {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Tell a sink something now, and say what became of it
    #[command(
        after_help = "Examples:\n  outlast sink test phone\n  outlast sink test webhook:https://example.org/hook\n\nExits with 1 if it could not be told. One that could is told what waits for it, too."
    )]
    Test {
        /// Its name in the config, or an address
        sink: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Let a sink be told again that is disabled or left alone for now
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
