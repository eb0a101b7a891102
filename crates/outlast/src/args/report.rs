//! What `report` takes.

use clap::Args;

use crate::duration::{self, Since};

/// The morning after: what needs you, what is done, what it cost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # since you last looked, or the last 12 hours
  outlast report
  outlast report --since 7d
  # since the last time it was 22:00 here
  outlast report --since 22:00
  outlast report --json | jq '.needs_you[].commands[0]'

  # every morning at eight, to a sink of config.toml
  outlast schedule add morning --cron '0 8 * * *' --notify phone \\
      -- outlast report --notice

Exits with 1 if something needs a person, with 0 otherwise.")]
pub(crate) struct Report {
    /// Since a time (22:00, yesterday, 2026-11-15), or for the last while (12h, 7d)
    #[arg(long, value_name = "TIME", value_parser = duration::parse_since)]
    pub(crate) since: Option<Since>,
    /// For a scheduled run with --notify: the report becomes the text of its notice, and the exit code is 0
    #[arg(long, conflicts_with = "json")]
    pub(crate) notice: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
