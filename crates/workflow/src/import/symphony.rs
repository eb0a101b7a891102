//! From a Symphony `WORKFLOW.md`. It loads as it is; this writes it in our own words.

use super::{Front, Imported, Unmapped, assemble, leaves, read, unmapped};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::settle::symphony::MAX_TURNS;
use crate::source::Source;

/// Keys that mean the same under another name.
const RENAMED: [(&str, &str); 3] = [
    ("codex.command", "agent.command"),
    ("agent.max_retry_backoff_ms", "retry.max_backoff_ms"),
    ("codex.stall_timeout_ms", "limits.stall_window_ms"),
];

/// Keys that are ours as well.
const SAME: [&str; 9] = [
    "agent.max_turns",
    "agent.max_concurrent_agents",
    "workspace.root",
    "hooks.after_create",
    "hooks.before_run",
    "hooks.after_run",
    "hooks.before_remove",
    "hooks.timeout_ms",
    "agent.command",
];

pub fn symphony(source: &Source<'_>) -> Result<Imported, Vec<Problem>> {
    let (root, document) = read(source)?;
    let mut front = Front::default();
    let mut missing = Vec::new();
    front.put("agent.kind", text("codex"));
    if root.get("codex.command").is_none() && root.get("agent.command").is_none() {
        front.put("agent.command", text("codex app-server"));
    }
    // Its hooks expect an empty directory of their own.
    if root.get("workspace.root").is_none() {
        front.put("workspace.strategy", text("dir"));
    }
    // What it does without a limit of turns is not what we do.
    if root.get("agent.max_turns").is_none() {
        front.put("agent.max_turns", Node { line: 1, value: Value::Whole(MAX_TURNS.into()) });
    }
    for (path, node) in leaves(&root, "") {
        match key(&path) {
            Some("limits.stall_window_ms") => {}
            Some(ours) => front.put(ours, node),
            None if path == "codex.turn_timeout_ms" => {}
            None => missing.push(unmapped(&path, node.line, why(&path))),
        }
    }
    silence(&root, &mut front, &mut missing);
    Ok(assemble(&front, &document, missing))
}

fn text(text: &str) -> Node {
    Node { line: 1, value: Value::Text(text.to_owned()) }
}

fn key(path: &str) -> Option<&'static str> {
    let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == path).map(|(_, ours)| *ours);
    renamed.or_else(|| SAME.into_iter().find(|same| *same == path))
}

/// Both of Symphony's timeouts are windows of silence: the smaller one is ours.
fn silence(root: &Node, front: &mut Front, missing: &mut Vec<Unmapped>) {
    let window = |key| root.get(key).and_then(|node| Some((node.whole()?, node.line)));
    let stall = window("codex.stall_timeout_ms");
    let turn = window("codex.turn_timeout_ms");
    if let Some((_, line)) = turn {
        let why = "a window of silence, not a total: the smaller of it and codex.stall_timeout_ms became limits.stall_window_ms";
        missing.push(unmapped("codex.turn_timeout_ms", line, why));
    }
    let on = [stall, turn].into_iter().flatten().map(|(ms, _)| ms).filter(|ms| *ms > 0).min();
    let millis = match (stall, on) {
        (None, None) => return,
        (None, Some(ms)) => ms.min(300_000),
        (Some(_), on) => on.unwrap_or(0),
    };
    front.put("limits.stall_window_ms", Node { line: 1, value: Value::Whole(millis) });
}

fn why(path: &str) -> &'static str {
    if path.starts_with("agent.max_concurrent_agents_by_state") {
        return "there is no limit by state; see concurrency in config.toml";
    }
    match path.split('.').next().unwrap_or(path) {
        "tracker" | "polling" => {
            "runs are started by a person or a trigger; trackers are not read in this version"
        }
        "codex" => "handed to the agent by Symphony; this version does not",
        "server" | "observability" => "outlast has a screen and an API of its own",
        "worker" => "runs stay on this machine",
        _ => "unknown key",
    }
}
