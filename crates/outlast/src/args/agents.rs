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
#[command(after_help = "Examples:\n  outlast agents test claude\n  outlast agents test codex")]
pub(crate) struct TestAgent {
    /// The kind: claude, codex, gemini, opencode or pi
    pub(crate) kind: String,
}
