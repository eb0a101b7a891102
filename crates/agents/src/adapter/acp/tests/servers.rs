//! How a session is told of the server that has the tools of the run.

use super::*;
use crate::adapter::McpServer;

fn opened_with(agent: &str, session: Option<&str>) -> Value {
    let env = vec![("OUTLAST_TOKEN".to_owned(), "secret-token".to_owned())];
    let server =
        McpServer { command: "/bin/outlast".to_owned(), args: vec!["mcp".to_owned()], env };
    let session = session.map(str::to_owned);
    let mut talking = Talking::with("acp", Turn { mcp: Some(server), session, ..turn() });
    let mut hello = hello(agent);
    hello["agentCapabilities"]["sessionCapabilities"]["resume"] = json!({});
    talking.answers(hello);
    talking.last()["params"].clone()
}

#[test]
fn an_agent_gets_the_server_as_the_protocol_says() {
    let params = opened_with("unknown", None);
    let [server] = params["mcpServers"].as_array().expect("a list").as_slice() else { panic!() };
    assert_eq!((&server["name"], &server["command"]), (&json!("outlast"), &json!("/bin/outlast")));
    assert_eq!(server["env"], json!([{ "name": "OUTLAST_TOKEN", "value": "secret-token" }]));
    assert!(params.get("_meta").is_none());
}

#[test]
fn claude_shows_its_model_the_tools_without_a_search_and_has_the_token_in_no_command_line() {
    for session in [None, Some("s1")] {
        let params = opened_with("@agentclientprotocol/claude-agent-acp", session);
        let server = &params["_meta"]["claudeCode"]["options"]["mcpServers"]["outlast"];
        assert_eq!(server["alwaysLoad"], true, "{params}");
        assert_eq!(server["command"], "/bin/outlast");
        assert_eq!(params["mcpServers"], json!([]));
        assert!(!params.to_string().contains("secret-token"), "{params}");
    }
}
