//! What `agents` takes.

use clap::{Args, Subcommand};

/// List the coding agents that Outlast can run, or test one
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  # what is installed, its version, and what it can do
  outlast agents
  # run one real turn, and print what it cost
  outlast agents test claude
  # as JSON, for a script
  outlast agents --json

Agents from [agents.NAME] in config.toml are listed below the built-in ones.
Only `test` can say whether an agent is logged in: it asks the provider.")]
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

/// Run one real turn of an agent in a new directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast agents test claude
  # [agents.mine] in config.toml
  outlast agents test mine")]
pub(crate) struct TestAgent {
    /// A kind of agent that `outlast agents` lists
    pub(crate) kind: String,
}
