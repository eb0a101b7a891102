//! How each agent is told of the run's MCP server: for one process, in no file of the user's.

use serde_json::{Value, json};

/// The name that agents know the server by.
const NAME: &str = "outlast";

/// Tools that start nothing and end nothing: an agent needs no permission for these.
const HARMLESS: [&str; 13] = [
    "report_done",
    "report_blocked",
    "ask_human",
    "report_usage",
    "budget_left",
    "note",
    "checkpoint",
    "proc_list",
    "proc_read",
    "proc_wait",
    "run_status",
    "run_result",
    "run_wait",
];

/// What pi loads for one process.
const EXTENSION: &str = include_str!("pi/tools.mjs");

/// Clients give a call of a tool so long at least; one that goes on says so every ten seconds.
const TIMEOUT_MS: u64 = 900_000;

/// A program that speaks MCP on its standard streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub command: String,
    pub args: Vec<String>,
    /// What the server needs of the attempt's environment.
    pub env: Vec<(String, String)>,
}

impl McpServer {
    /// The names under which agents ask for the harmless tools.
    pub fn harmless() -> Vec<String> {
        let names = |tool: &str| {
            [format!("mcp__{NAME}__{tool}"), format!("{NAME}_{tool}"), format!("mcp_{NAME}_{tool}")]
        };
        HARMLESS.into_iter().flat_map(names).collect()
    }

    /// The server gets all of Claude's environment, so that the token is in no command line. `alwaysLoad` shows the
    /// model the tools without a search.
    pub(super) fn for_claude(&self) -> Value {
        let server = json!({
            "type": "stdio",
            "command": self.command,
            "args": self.args,
            "alwaysLoad": true,
            "timeout": TIMEOUT_MS,
        });
        json!({ "mcpServers": { NAME: server } })
    }

    /// Codex starts the server with a clean environment. Without `required` it would go on without the server.
    pub(super) fn for_codex(&self, is_trusted: bool) -> Value {
        let env: serde_json::Map<String, Value> =
            self.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let mut server = json!({
            "command": self.command,
            "args": self.args,
            "env": env,
            "required": true,
            "tool_timeout_sec": TIMEOUT_MS / 1000,
        });
        if is_trusted {
            server["default_tools_approval_mode"] = json!("approve");
        }
        json!({ "mcp_servers": { NAME: server } })
    }

    /// Laid over the user's configuration through the environment.
    pub(super) fn lay_over(&self, config: &mut Value) {
        let command: Vec<&String> = std::iter::once(&self.command).chain(&self.args).collect();
        config["mcp"] = json!({
            NAME: { "type": "local", "command": command, "enabled": true, "timeout": TIMEOUT_MS }
        });
        for tool in HARMLESS {
            config["permission"][format!("{NAME}_{tool}")] = json!("allow");
        }
    }

    /// The extension that offers the tools to pi, which has no MCP. It has no token in it: the server that it starts
    /// gets pi's environment.
    pub(super) fn for_pi(&self) -> String {
        let server = json!({ "command": self.command, "args": self.args });
        EXTENSION.replacen("const SERVER = {};", &format!("const SERVER = {server};"), 1)
    }

    /// What a policy says of a tool of ours, by the name that pi knows it by; `None` of another tool.
    pub(super) fn name_for_pi(allowed: &str) -> Option<String> {
        let starts = [format!("mcp__{NAME}__"), format!("mcp_{NAME}_")];
        let tool = starts.iter().find_map(|start| allowed.strip_prefix(start.as_str()))?;
        Some(format!("{NAME}_{tool}"))
    }

    pub(super) fn for_acp(&self) -> Value {
        let env: Vec<Value> =
            self.env.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect();
        json!({ "name": NAME, "command": self.command, "args": self.args, "env": env })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ApprovalMode, Approvals, Launch, Turn, driven};
    use super::*;

    fn server() -> McpServer {
        let env = vec![("OUTLAST_TOKEN".to_owned(), "secret-token".to_owned())];
        McpServer { command: "/bin/outlast".to_owned(), args: vec!["mcp".to_owned()], env }
    }

    #[test]
    fn the_token_is_in_no_command_line() {
        for kind in super::super::DRIVEN_NAMES {
            let command = vec!["agent".to_owned()];
            let turn = Turn { mcp: Some(server()), command, ..Turn::default() };
            let launch = driven(kind).expect("it is there").adapter(turn).launch();
            assert!(!launch.argv.concat().contains("secret-token"), "{kind}: {launch:?}");
        }
    }

    #[test]
    fn claude_and_opencode_are_told_of_the_server_for_this_process() {
        let told = |kind: &str| {
            let turn = Turn { mcp: Some(server()), ..Turn::default() };
            driven(kind).expect("it is there").adapter(turn).launch()
        };
        let argv = told("claude").argv;
        let at = argv.iter().position(|word| word == "--mcp-config").expect("it is told");
        let config: Value = serde_json::from_str(&argv[at + 1]).expect("JSON");
        assert_eq!(config["mcpServers"]["outlast"]["command"], "/bin/outlast");
        assert_eq!(config["mcpServers"]["outlast"]["alwaysLoad"], true);
        assert!(argv.contains(&"--strict-mcp-config".to_owned()));
        let env = told("opencode").env;
        let (_, config) =
            env.iter().find(|(name, _)| name == "OPENCODE_CONFIG_CONTENT").expect("it");
        let config: Value = serde_json::from_str(config).expect("JSON");
        assert_eq!(config["mcp"]["outlast"]["command"], json!(["/bin/outlast", "mcp"]));
        assert_eq!(config["permission"]["outlast_report_done"], "allow");
        assert_eq!(config["permission"].get("outlast_proc_start"), None, "a person is asked");
    }

    #[test]
    fn pi_is_given_an_extension_for_this_process() {
        let dir = "/runs/k3m/t1.a1".to_owned();
        let approvals = Approvals { allow: McpServer::harmless(), ..Approvals::default() };
        let turn = Turn { mcp: Some(server()), own_dir: Some(dir), approvals, ..Turn::default() };
        let told = |turn: &Turn| driven("pi").expect("it is there").adapter(turn.clone()).launch();
        let Launch { argv, files, .. } = told(&turn);
        let [(path, text)] = files.as_slice() else { panic!("{files:?}") };
        let after = |flag: &str| {
            let at = argv.iter().position(|word| word == flag).expect("it is told");
            argv[at + 1].as_str()
        };
        assert_eq!(
            (after("--extension"), path.as_str()),
            (path.as_str(), "/runs/k3m/t1.a1/pi-tools.mjs")
        );
        assert!(text.contains(r#"const SERVER = {"args":["mcp"],"command":"/bin/outlast"};"#));
        assert!(!text.contains("secret-token"), "the server has it from its environment");
        let tools: Vec<&str> = after("--tools").split(',').collect();
        assert_eq!(tools.iter().filter(|it| **it == "outlast_report_done").count(), 1, "{tools:?}");
        assert!(!tools.contains(&"outlast_proc_start"), "it would be used without a question");
        let allow = vec!["mcp__outlast__proc_start".to_owned()];
        let allowed =
            Turn { approvals: Approvals { allow, ..Approvals::default() }, ..turn.clone() };
        assert!(told(&allowed).argv.concat().contains("outlast_proc_start"));
        let without = told(&Turn { mcp: None, ..turn });
        assert!(without.files.is_empty() && !without.argv.contains(&"--extension".to_owned()));
    }

    #[test]
    fn what_starts_something_is_asked_for_as_everything_else_is() {
        let approvals = Approvals { allow: McpServer::harmless(), ..Approvals::default() };
        assert_eq!(approvals.mode, ApprovalMode::Park);
        assert!(approvals.decide("mcp__outlast__report_done").is_some());
        for tool in ["proc_start", "proc_write", "proc_stop", "run_spawn", "run_stop", "call"] {
            assert_eq!(approvals.decide(&format!("mcp__outlast__{tool}")), None, "{tool}");
        }
    }
}
