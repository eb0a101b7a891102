//! What the verbs take that are about the program itself: `completions`, `man`, `version`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast completions bash > ~/.local/share/bash-completion/completions/outlast
  outlast completions zsh > ~/.zfunc/_outlast
  outlast completions fish > ~/.config/fish/completions/outlast.fish")]
pub(crate) struct Completions {
    /// The shell to make it for
    pub(crate) shell: Shell,
}

/// Print the manual page, or write all pages to a directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast man | man -l -
  outlast man ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// Where to write the pages
    pub(crate) dir: Option<PathBuf>,
}

/// Print the version
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  outlast version\n  outlast version --json")]
pub(crate) struct Version {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
