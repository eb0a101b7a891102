//! What `web` takes.

use std::net::IpAddr;

use clap::{Args, Subcommand};

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
  # from another machine
  ssh -L 7878:127.0.0.1:7878 build
  ssh build outlast web url

A link opens the page once and within two minutes. The page listens on
loopback unless config.toml allows more ([web] allow_remote, with a
certificate). Its sessions end with it. Ending it stops no run.")]
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
}

impl Web {
    pub(super) fn json(&self) -> bool {
        match &self.command {
            Some(WebCommand::Url { json, .. }) => *json,
            None => self.json,
        }
    }
}
