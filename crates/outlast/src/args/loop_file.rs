//! What the verbs take that read a loop file and run nothing: `check`, `import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Check a loop file and config.toml without running anything
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # ./WORKFLOW.md
  outlast check
  # every unknown key is an error
  outlast check nightly.md --strict
  # every setting, its value and where the value comes from
  outlast check --explain
  # JSON Schema of the front matter, for editors
  outlast check --schema workflow

Exit codes: 0 the file is valid, 2 it has problems.")]
pub(crate) struct Check {
    /// The loop file; default: ./WORKFLOW.md
    pub(crate) file: Option<PathBuf>,
    /// Treat every unknown key as an error
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print every setting with its value and where it comes from
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the JSON Schema of a file instead of checking one
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "strict", "explain", "json"])]
    pub(crate) schema: Option<Schema>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Schema {
    Workflow,
    Config,
}

/// Convert another runner's file to a loop file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # print the loop file
  outlast import symphony WORKFLOW.md
  # write it to a file that does not exist yet
  outlast import ace ACE_WORKFLOW.md -o WORKFLOW.md

Keys that have no equivalent in Outlast are listed with their line and why.

Exit codes: 0 imported, 2 refused.")]
pub(crate) struct Import {
    /// The runner that the file was written for
    #[arg(value_enum)]
    pub(crate) from: ImportFrom,
    /// The file to convert
    pub(crate) file: PathBuf,
    /// Write the loop file here; must not exist
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFrom {
    Symphony,
    Ace,
}
