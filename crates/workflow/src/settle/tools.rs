//! The commands of the host that the agent may ask for.

use std::collections::BTreeSet;

use outlast_agents::tool_input::{self, Wrong};
use outlast_engine::{Tool, ToolClass, ToolCost};

use super::defaults::TOOL_TIMEOUT_MS;
use super::sheet::Sheet;
use super::{Origin, agent};
use crate::node::Node;
use crate::problem::{Code, Problem};

pub(super) const DENIED: &str = "policy_disabled";

pub(super) fn tools(sheet: &mut Sheet<'_>) -> Vec<Tool> {
    let Some(list) = sheet.given("tools") else { return Vec::new() };
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    for (n, node) in list.items().iter().enumerate() {
        match tool(sheet, node, &mut names) {
            Ok(tool) => {
                let command = agent::shown(&tool.command);
                let denied = if tool.disabled.is_some() { " (denied by the operator)" } else { "" };
                let shown = format!("{}: {command}{denied}", tool.name);
                sheet.note(&format!("tools[{n}]"), shown, Origin::Workflow { line: node.line });
                tools.push(tool);
            }
            Err(problem) => sheet.errors.push(in_item(problem, n)),
        }
    }
    tools
}

fn in_item(problem: Problem, n: usize) -> Problem {
    let key = problem.key.as_deref().unwrap_or_default();
    let key = Some(format!("tools[{n}].{key}"));
    Problem { key, ..problem }
}

fn tool(sheet: &Sheet<'_>, node: &Node, names: &mut BTreeSet<String>) -> Result<Tool, Problem> {
    let text = |key| node.get(key).and_then(Node::text);
    let name = name(sheet, node)?;
    if !names.insert(name.clone()) {
        let problem =
            sheet.problem(Code::DuplicateTool, "name", format_args!("{name} is given twice"));
        return Err(problem.at(node.line).hint("each tool has a name of its own"));
    }
    Ok(Tool {
        command: command(sheet, node, &name)?,
        input_schema: node
            .get("input_schema")
            .map(|schema| input_schema(sheet, schema))
            .transpose()?,
        class: class(text("class")),
        cost: if text("cost") == Some("heavy") { ToolCost::Heavy } else { ToolCost::Light },
        timeout_ms: timeout_ms(node),
        disabled: sheet.config.tools_deny.contains(&name).then(|| DENIED.to_owned()),
        name,
    })
}

fn name(sheet: &Sheet<'_>, node: &Node) -> Result<String, Problem> {
    let name = node.get("name").and_then(Node::text).unwrap_or_default();
    let starts_well = name.starts_with(|first: char| first.is_ascii_lowercase());
    let is_word =
        name.chars().all(|any| any.is_ascii_lowercase() || any.is_ascii_digit() || any == '_');
    if starts_well && is_word {
        return Ok(name.to_owned());
    }
    let line = node.get("name").map_or(node.line, |name| name.line);
    let problem =
        sheet.problem(Code::BadValue, "name", format_args!("{name:?} is not a tool's name"));
    Err(problem
        .at(line)
        .hint("a lower case letter, then lower case letters, digits and underscores"))
}

fn command(sheet: &Sheet<'_>, node: &Node, name: &str) -> Result<Vec<String>, Problem> {
    let command = node.get("command").map(agent::argv).unwrap_or_default();
    if command.first().is_some_and(|program| !program.is_empty()) {
        return Ok(command);
    }
    let line = node.get("command").map_or(node.line, |command| command.line);
    let problem =
        sheet.problem(Code::MissingCommand, "command", format_args!("tool {name} needs a command"));
    Err(problem.at(line).hint("a list of arguments, or a line for sh"))
}

/// Refuses what no input would be checked against: the tool's author relies on every keyword there.
fn input_schema(sheet: &Sheet<'_>, schema: &Node) -> Result<String, Problem> {
    let json = schema.json().to_string();
    let Err(bad) = tool_input::check_schema(&json) else { return Ok(json) };
    let key = std::iter::once("input_schema").chain(bad.path.iter().map(String::as_str));
    let key = key.collect::<Vec<_>>().join(".");
    let (message, hint) = match bad.what {
        Wrong::UnknownKeyword => (
            "is not a keyword that inputs are checked against".to_owned(),
            format!(
                "known are {}; {} only describe",
                tool_input::CHECKED.join(", "),
                tool_input::ANNOTATIONS.join(", ")
            ),
        ),
        Wrong::Value(message) => (message, "a JSON Schema of the tool's input".to_owned()),
    };
    let line = line_at(schema, &bad.path);
    Err(sheet.problem(Code::BadSchema, &key, message).at(line).hint(hint))
}

/// The line of the last key on this path.
fn line_at(node: &Node, path: &[String]) -> usize {
    let Some((first, rest)) = path.split_first() else { return node.line };
    let entry = node.entries().iter().find(|entry| entry.key == *first);
    entry.map_or(node.line, |entry| line_at(&entry.node, rest))
}

/// What is not known to be harmless is not.
fn class(word: Option<&str>) -> ToolClass {
    match word {
        Some("read") => ToolClass::Read,
        Some("idempotent") => ToolClass::Idempotent,
        Some("keyed") => ToolClass::Keyed,
        _ => ToolClass::Unsafe,
    }
}

fn timeout_ms(node: &Node) -> u64 {
    let given = node.get("timeout_ms").and_then(Node::whole);
    given.and_then(|ms| u64::try_from(ms).ok()).unwrap_or(TOOL_TIMEOUT_MS)
}
