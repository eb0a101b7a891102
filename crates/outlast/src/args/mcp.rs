//! What `mcp` takes: nothing. The agent that starts it speaks on its streams.

use clap::Args;

/// Serve the tools of this run to its agent over MCP
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # agents that Outlast drives are given this server by themselves;
  # to add it to another agent that runs inside a run:
  my-agent --mcp-server 'outlast mcp'

The tools start and watch background processes, start child runs, make
steps once, and report the end of the turn. The server belongs to the run
that it is started in. See docs/mcp.md.")]
pub(crate) struct Mcp {}
