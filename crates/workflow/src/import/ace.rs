//! From an ACE runtime profile, `ACE_WORKFLOW.md`.
//!
//! Its schema is not public: only the keys that its own code shows are mapped, the rest is listed.

use super::{Front, Imported, assemble, leaves, read, refused, unmapped};
use crate::node::{Node, Value};
use crate::problem::Problem;
use crate::source::Source;

const RENAMED: [(&str, &str); 13] = [
    ("executor.command", "agent.command"),
    ("executor.max_turns", "agent.max_turns"),
    ("executor.turn_timeout_ms", "limits.turn_timeout_ms"),
    ("autonomy.before_run", "checks.before_run"),
    ("autonomy.stop", "checks.done"),
    ("hooks.after_create", "hooks.after_create"),
    ("hooks.before_run", "hooks.before_run"),
    ("hooks.after_run", "hooks.after_run"),
    ("hooks.before_remove", "hooks.before_remove"),
    ("hooks.timeout_ms", "hooks.timeout_ms"),
    ("output_policy.silent_unless_blocked", "output.silent_unless_blocked"),
    ("output_policy.require_approval_before_emit", "output.require_approval_before_emit"),
    ("workspace.root", "workspace.root"),
];

/// The one mode that is a loop without a person.
const UNATTENDED: &str = "unattended";

pub fn ace(source: &Source<'_>) -> Result<Imported, Vec<Problem>> {
    let (root, document) = read(source)?;
    if let Some(node) = root.get("runtime.mode").filter(|node| node.text() != Some(UNATTENDED)) {
        let message = format!("only unattended profiles are loops, got {}", node.quoted());
        let hint = "import the profile that you run unattended";
        return Err(refused(source, node.line, "runtime.mode", &message, hint));
    }
    let mut front = Front::default();
    let mut missing = Vec::new();
    front.put("agent.kind", Node { line: 1, value: Value::Text("file".to_owned()) });
    for (path, node) in leaves(&root, "") {
        let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == path);
        match renamed {
            _ if path == "runtime.mode" => {}
            Some((_, ours)) if fits(ours, &node) => front.put(ours, node),
            Some((_, ours)) => {
                missing.push(unmapped(
                    &path,
                    node.line,
                    &format!("not of the kind that {ours} is"),
                ));
            }
            None => missing.push(unmapped(&path, node.line, "no equivalent in Outlast")),
        }
    }
    Ok(assemble(&front, &document, missing))
}

fn fits(ours: &str, node: &Node) -> bool {
    let key = crate::keys::lookup(crate::keys::WORKFLOW, ours);
    key.is_some_and(|key| crate::values::check(node, key.kind).is_ok())
}
