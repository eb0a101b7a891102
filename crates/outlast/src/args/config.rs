//! What `config` and its verbs take.

use clap::{Args, Subcommand};

/// Find, check, show and edit config.toml
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  outlast config path
  outlast config check
  outlast config edit")]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the path of the file that is used, also if there is none yet
    #[command(after_help = "Examples:\n  outlast config path")]
    Path,
    /// Open the file in $VISUAL or $EDITOR, then check it
    #[command(after_help = "Examples:\n  EDITOR=nano outlast config edit")]
    Edit,
    /// Say whether the file is valid; exits with 2 if it is not
    #[command(after_help = "Examples:\n  outlast config check")]
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print every setting, its value and where it comes from
    #[command(after_help = "\
Examples:
  outlast config show
  outlast config show --json | jq '.[] | select(.from == \"config\")'

Secrets, addresses and tokens are shown as (set). What can be read of a file
that is not valid is shown as well.

Exit codes: 0 valid, 2 not valid.")]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl ConfigCommand {
    pub(super) fn json(&self) -> bool {
        match self {
            Self::Check { json } | Self::Show { json } => *json,
            Self::Path | Self::Edit => false,
        }
    }
}
