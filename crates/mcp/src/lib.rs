//! The MCP server of a run: `outlast mcp`, on standard input and output or over HTTP on loopback, started by the agent that it
//! serves.
//!
//! It answers `initialize`, `server/discover` and `tools/list` without the daemon. Everything else it asks of the daemon with the token of
//! its run, so it sees and touches that run and those below it. It keeps no state: a server that is started again after a
//! crash finds everything in the journal.

// What is spoken: JSON-RPC in lines, the versions of the protocol, and the table of tools.
mod rpc;
mod table;

mod era;

// What the tools do, by their subject.
mod arguments;
mod calls;
mod declared;
mod owner;
mod processes;
mod reports;
mod runs;

mod dispatch;

// What is answered, and the two ways that it is asked: lines on the standard streams, and HTTP.
mod answers;
mod http;
mod server;

pub use http::Http;
pub use owner::Owner;
pub use server::serve;
