//! What `agents` takes.

use clap::{Args, Subcommand};

/// List the coding agents that can be driven, or try one out
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  outlast agents                 what is installed, its version, and what it can do
  outlast agents --json
  outlast agents test claude     one real turn, and what it cost

An [agents.NAME] of config.toml is listed below those that are built in.
Whether an agent is logged in cannot be told without asking its provider: `test` does.")]
pub(crate) struct Agents {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Option<AgentsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentsCommand {
    Test(TestAgent),
}

/// Have an agent take one real turn, in a directory of its own
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  outlast agents test claude\n  outlast agents test mine       [agents.mine] in config.toml"
)]
pub(crate) struct TestAgent {
    /// A kind that `outlast agents` lists: built in, or an [agents.NAME] of config.toml
    pub(crate) kind: String,
}
