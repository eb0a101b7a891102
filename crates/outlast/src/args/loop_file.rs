//! What the verbs take that read a loop file and run nothing: `check`, `import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Check a loop file and the operator's config, without running anything
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast check                           ./WORKFLOW.md
  outlast check nightly.md --strict       unknown keys are errors too
  outlast check --explain                 every setting, and who said so
  outlast check --schema workflow         JSON Schema of the front matter, for editors

Exit codes: 0 fine, 2 with problems.")]
pub(crate) struct Check {
    /// The loop file; ./WORKFLOW.md if none is named
    pub(crate) file: Option<PathBuf>,
    /// Treat unknown keys as errors
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

/// Rewrite a file written for another runner as a loop file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast import symphony WORKFLOW.md                    print the loop file
  outlast import ace ACE_WORKFLOW.md -o WORKFLOW.md      write it, unless the file exists

What has no place in a loop file is listed, with its line and why.
Exit codes: 0 imported, 2 refused.")]
pub(crate) struct Import {
    /// What the file was written for
    #[arg(value_enum)]
    pub(crate) from: ImportFrom,
    pub(crate) file: PathBuf,
    /// Write the loop file here, where no file may be
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
