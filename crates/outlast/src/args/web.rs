//! What `web` takes.

use std::net::IpAddr;

use clap::{Args, Subcommand};
use outlast_web::{MOST_SHARE_HOURS, SHARE_HOURS};

/// Watch and steer runs in a browser on this machine
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  # serves the page until Ctrl-C, and prints a link to it
  outlast web
  outlast web --open
  # another link, for another browser or after two minutes
  outlast web url
  # a read-only link to one run, for another person
  outlast web share k3m
  # from another machine
  ssh -L 7878:127.0.0.1:7878 build
  ssh build outlast web url

A link works once, within two minutes. The page listens on loopback unless
config.toml allows more ([web] allow_remote, with a certificate). When
outlast web ends, its sessions end too; runs keep running.")]
pub(crate) struct Web {
    #[command(subcommand)]
    pub(crate) command: Option<WebCommand>,
    /// Listen on this port, or on any if 0; default: 7878 or the next free one
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Listen on this address; others than 127.0.0.1 and ::1 need web.allow_remote
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<IpAddr>,
    /// Open the page in this machine's browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Print no link: what a service prints is kept in a log
    #[arg(long, hide = true, conflicts_with_all = ["json", "qr", "open"])]
    pub(crate) no_link: bool,
    /// Print the link as a QR code, too, for a phone
    #[arg(long, conflicts_with = "json")]
    pub(crate) qr: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WebCommand {
    /// Print another link to the page that outlast web serves
    #[command(after_help = "Examples:\n  outlast web url\n  outlast web url --json | jq -r .url")]
    Url {
        /// Print it as a QR code, too, for a phone
        #[arg(long, conflicts_with = "json")]
        qr: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a read-only link to one run
    #[command(after_help = "\
Examples:
  outlast web share k3m
  outlast web share nightly --hours 2 --no-output

The link shows the state of the run, its turns, what it has used, and its
output. It does not show the task, questions, messages or the environment,
cannot change anything, and leads to no other run. It works until its time
is over, outlast web unshare revokes it, or outlast web ends.")]
    Share {
        #[arg(value_name = "RUN", help = super::RUN)]
        run: String,
        /// How long the link lasts, at most 168
        #[arg(long, value_name = "HOURS", default_value_t = SHARE_HOURS,
            value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SHARE_HOURS)))]
        hours: u32,
        /// Leave out what the run wrote
        #[arg(long)]
        no_output: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List the read-only links that are valid
    #[command(after_help = "Examples:\n  outlast web shares\n  outlast web shares --json")]
    Shares {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a read-only link, or all links to one run
    #[command(
        after_help = "Examples:\n  outlast web unshare 3f9a1c20\n  outlast web unshare k3mx7q9w2r5t"
    )]
    Unshare {
        /// The id that outlast web shares prints, or a run by its name or id
        #[arg(value_name = "ID|RUN")]
        which: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Web {
    pub(super) fn json(&self) -> bool {
        match &self.command {
            Some(
                WebCommand::Url { json, .. }
                | WebCommand::Share { json, .. }
                | WebCommand::Shares { json }
                | WebCommand::Unshare { json, .. },
            ) => *json,
            None => self.json,
        }
    }
}
