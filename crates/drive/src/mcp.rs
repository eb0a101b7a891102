//! The run's MCP server, for the agent that this driver starts.

use std::ffi::OsString;

use outlast_agents::adapter::McpServer;

/// What the server needs: which attempt it belongs to, and where the daemon's files are.
const NEEDED: [&str; 16] = [
    "OUTLAST_RUN_ID",
    "OUTLAST_TURN",
    "OUTLAST_ATTEMPT",
    "OUTLAST_TOKEN",
    "OUTLAST_SOCKET",
    "OUTLAST_HOME",
    "OUTLAST_WORKSPACE",
    "OUTLAST_KEY_BASE",
    "OUTLAST_REQUEST_FILE",
    "OUTLAST_RESPONSE_FILE",
    "HOME",
    "PATH",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "LANG",
];

/// Set to `off` by a loop whose agent is to go without the server.
const SWITCH: &str = "OUTLAST_MCP";

/// The server, if the attempt has a token and this program has a name that can be started.
pub(crate) fn server(env: &[(OsString, OsString)]) -> Option<McpServer> {
    let var = |name: &str| {
        let (_, value) = env.iter().find(|(known, _)| known == name)?;
        value.to_str().map(str::to_owned)
    };
    if var(SWITCH).is_some_and(|value| value == "off") {
        return None;
    }
    var("OUTLAST_TOKEN")?;
    let program = std::env::current_exe().ok().filter(|path| path.is_file())?;
    let env = NEEDED.iter().filter_map(|name| Some(((*name).to_owned(), var(name)?))).collect();
    let command = program.into_os_string().into_string().ok()?;
    Some(McpServer { command, args: vec!["mcp".to_owned()], env })
}
