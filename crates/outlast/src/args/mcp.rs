//! What `mcp` takes: nothing, if the agent that starts it speaks on its streams; or where it listens.

use clap::Args;

/// Serve the tools of this run to its agent over MCP
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Examples:
  # agents that Outlast drives are given this server by themselves;
  # to add it to another agent that runs inside a run:
  my-agent --mcp-server 'outlast mcp'
  # over HTTP on loopback; the first line printed is the address, and the
  # bearer token is $OUTLAST_TOKEN
  outlast mcp --http

The tools start and watch background processes, start child runs, make
steps once, and report the end of the turn. The server belongs to the run
that it is started in, and over HTTP ends with the attempt. See
docs/mcp.md.")]
pub(crate) struct Mcp {
    /// Serve over HTTP on 127.0.0.1 instead of the standard streams, and print the address
    #[arg(long)]
    pub(crate) http: bool,
    /// With --http: the port; default: any that is free
    #[arg(
        long,
        value_name = "N",
        requires = "http",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) port: u16,
}
