//! What the verbs take that are about the program itself: `help`, `completions`, `man`, `version`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Print the help of a command
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast help
  outlast help run
  outlast help schedule add")]
pub(crate) struct Help {
    /// The command, like run or schedule add
    #[arg(value_name = "VERB")]
    pub(crate) verbs: Vec<String>,
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # bash: add this line to ~/.bashrc
  source <(outlast completions bash)
  # zsh: add this line to ~/.zshrc, after compinit
  source <(outlast completions zsh)
  # fish
  outlast completions fish > ~/.config/fish/completions/outlast.fish

Tab completes verbs, options, and the names of runs, sinks, schedules and
triggers. It asks the daemon, and never starts one.")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: Shell,
}

/// Print the manual page, or write all pages to a directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast man | man -l -
  # one page per command, and in man5 one for each of the two files
  outlast man ~/.local/share/man/man1
  man outlast-run")]
pub(crate) struct Man {
    /// Write the pages here; those of section 5 beside a directory named man1
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
