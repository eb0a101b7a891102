//! What `init` takes.

use std::path::PathBuf;

use clap::Args;

/// Write a WORKFLOW.md for this directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # asks three questions
  outlast init
  # asks nothing, for scripts
  outlast init --yes --task 'Fix the failing tests'
  outlast init --agent claude --check 'cargo test' port.md

It looks for the git repository, its test command and installed agents. It
never overwrites a file.")]
pub(crate) struct Init {
    /// The file to write [default: WORKFLOW.md]
    pub(crate) file: Option<PathBuf>,
    /// Take what was found, and ask nothing
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The agent: claude, codex, gemini, opencode, pi, or script
    #[arg(long, value_name = "KIND")]
    pub(crate) agent: Option<String>,
    /// The command that says whether the work is done; may be given more than once
    #[arg(long, value_name = "COMMAND")]
    pub(crate) check: Vec<String>,
    /// What the agent has to do
    #[arg(long, value_name = "TEXT")]
    pub(crate) task: Option<String>,
}
