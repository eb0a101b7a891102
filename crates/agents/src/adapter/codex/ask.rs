//! What Codex asks, and the form in which each question is answered.
//!
//! Decides nothing: the policy or a person does. No answer lasts longer than the one thing that was asked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::read;
use crate::adapter::Decision;
use crate::adapter::json::{at, brief, list, text};

/// A question that is open.
pub(super) struct Asked {
    /// The id of its request, a number or a text.
    pub(super) request: Value,
    pub(super) words: String,
    pub(super) form: Form,
}

pub(super) enum Form {
    /// A command or a patch.
    Item,
    /// A tool of an MCP server.
    McpTool,
    /// An MCP server wants to know something, and calls it this.
    McpQuestion { field: String },
    /// More rights for the rest of the turn: these.
    Rights { asked: Value },
    /// The model asks a person. Each question has an id.
    Questions { ids: Vec<String> },
}

const MOST_LINES: usize = 200;
const MOST_IN_A_LINE: usize = 400;

/// The tool that it wants to use, what the question is, and how it is answered; `None` for an unknown request. `open`
/// are the items that have begun: a patch and the name of an MCP tool are only there.
pub(super) fn read(
    method: &str,
    params: &Value,
    open: &BTreeMap<String, Value>,
) -> Option<(Option<String>, String, Form)> {
    let item = text(params, "itemId").and_then(|id| open.get(id));
    let (tool, about, form) = match method {
        "item/commandExecution/requestApproval" => match at(params, "networkApprovalContext") {
            Some(network) if network.is_object() => {
                (Some("network".to_owned()), network.to_string(), Form::Item)
            }
            _ => (Some("commandExecution".to_owned()), command(params), Form::Item),
        },
        "item/fileChange/requestApproval" => {
            (Some("fileChange".to_owned()), patch(item, params), Form::Item)
        }
        "item/permissions/requestApproval" => {
            let asked = at(params, "permissions").cloned().unwrap_or(json!({}));
            (Some("permissions".to_owned()), asked.to_string(), Form::Rights { asked })
        }
        "mcpServer/elicitation/request" => elicitation(params, open),
        "item/tool/requestUserInput" => {
            let all = list(params, "questions");
            let of = |name| all.iter().filter_map(move |it| text(it, name).map(str::to_owned));
            let words: Vec<String> = of("question").collect();
            (None, words.join("\n"), Form::Questions { ids: of("id").collect() })
        }
        _ => return None,
    };
    let reason = text(params, "reason").map(|why| format!("\nReason: {why}")).unwrap_or_default();
    let start = tool.as_ref().map(|tool| format!("{tool}: ")).unwrap_or_default();
    Some((tool, clean(&format!("{start}{about}{reason}")), form))
}

fn command(params: &Value) -> String {
    let mut words = text(params, "command").unwrap_or("a command").to_owned();
    if let Some(more) = at(params, "additionalPermissions").filter(|more| !more.is_null()) {
        words.push_str(&format!("\nWith more rights: {more}"));
    }
    words
}

/// Which files, and what is done to each.
fn patch(item: Option<&Value>, params: &Value) -> String {
    let mut words = item.map(read::paths).unwrap_or_default();
    if let Some(root) = text(params, "grantRoot") {
        words.push_str(&format!("\nAnd to write below {root} from now on"));
    }
    let diffs = item.map(|item| list(item, "changes")).unwrap_or_default();
    for diff in diffs.iter().filter_map(|change| text(change, "diff")) {
        words.push_str(&format!("\n{diff}"));
    }
    words
}

fn elicitation(params: &Value, open: &BTreeMap<String, Value>) -> (Option<String>, String, Form) {
    let words = text(params, "message").unwrap_or_default();
    if text(params, "_meta.codex_approval_kind") == Some("mcp_tool_call") {
        let input = at(params, "_meta.tool_params").unwrap_or(&Value::Null);
        return (Some(mcp_tool(params, input, open)), format!("{words} {input}"), Form::McpTool);
    }
    let properties = at(params, "requestedSchema.properties").and_then(Value::as_object);
    let only = properties.filter(|all| all.len() == 1).and_then(|all| all.keys().next());
    let field = only.cloned().unwrap_or_else(|| "answer".to_owned());
    (None, words.to_owned(), Form::McpQuestion { field })
}

/// The name of the tool is in the call that has begun. If several calls fit and differ, the server's name must do.
fn mcp_tool(params: &Value, input: &Value, open: &BTreeMap<String, Value>) -> String {
    let server = text(params, "serverName").unwrap_or_default();
    let fits = |item: &&Value| {
        text(item, "type") == Some("mcpToolCall")
            && text(item, "server") == Some(server)
            && at(item, "arguments") == Some(input)
    };
    let tools: BTreeSet<&str> =
        open.values().filter(fits).filter_map(|item| text(item, "tool")).collect();
    match tools.first() {
        Some(tool) if tools.len() == 1 => read::mcp_name(server, tool),
        _ => format!("mcp__{server}"),
    }
}

/// Several lines, none of which can move a cursor.
fn clean(text: &str) -> String {
    let mut lines: Vec<String> =
        text.lines().take(MOST_LINES).map(|line| brief(line, MOST_IN_A_LINE)).collect();
    if text.lines().nth(MOST_LINES).is_some() {
        lines.push("…".to_owned());
    }
    lines.join("\n")
}

impl Asked {
    /// `decline` is "no, go on"; `cancel`, which is also offered, would end the turn.
    pub(super) fn answer(&self, decision: &Decision) -> Value {
        match (&self.form, decision) {
            (Form::Item, Decision::Allow) => json!({ "decision": "accept" }),
            (Form::Item, Decision::Deny { .. } | Decision::Text { .. }) => {
                json!({ "decision": "decline" })
            }
            (Form::McpTool, Decision::Allow) => json!({ "action": "accept" }),
            (Form::McpTool, Decision::Deny { .. } | Decision::Text { .. })
            | (Form::McpQuestion { .. }, Decision::Deny { .. }) => json!({ "action": "decline" }),
            (Form::McpQuestion { .. }, Decision::Allow) => {
                json!({ "action": "accept", "content": {} })
            }
            (Form::McpQuestion { field }, Decision::Text { text }) => {
                json!({ "action": "accept", "content": { field: text } })
            }
            (Form::Rights { asked }, Decision::Allow) => {
                json!({ "permissions": asked, "scope": "turn" })
            }
            (Form::Rights { .. }, Decision::Deny { .. } | Decision::Text { .. }) => {
                json!({ "permissions": {}, "scope": "turn" })
            }
            (Form::Questions { .. }, Decision::Allow) => json!({ "answers": {} }),
            (Form::Questions { ids }, Decision::Deny { why: text } | Decision::Text { text }) => {
                let answer = |id: &String| (id.clone(), json!({ "answers": [text] }));
                let answers: Map<String, Value> = ids.iter().map(answer).collect();
                json!({ "answers": answers })
            }
        }
    }

    /// What the agent is to hear beside the answer: a refusal has no place for a reason.
    pub(super) fn why(&self, decision: &Decision) -> Option<String> {
        let about = self.words.lines().next().unwrap_or_default();
        match (&self.form, decision) {
            (Form::Item | Form::McpTool | Form::Rights { .. }, Decision::Deny { why }) => {
                (!why.is_empty()).then(|| format!("This was not allowed: {about}\n{why}"))
            }
            (Form::Item | Form::McpTool | Form::Rights { .. }, Decision::Text { text }) => {
                Some(format!("This was not allowed: {about}\nA person has answered: {text}"))
            }
            (Form::McpQuestion { .. } | Form::Questions { .. }, _) | (_, Decision::Allow) => None,
        }
    }
}
