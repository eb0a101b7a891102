//! What opencode is told: the configuration of the server, and the answers to its questions.

use serde_json::{Value, json};

use super::super::Decision;

/// Laid over every other configuration. Of rules for the same tool the last counts, so each tool that acts is named: a
/// rule of the user for it would otherwise stay.
pub(super) fn config(dir: &str, is_trusted: bool) -> Value {
    let mut rules = json!({ "*": "ask" });
    for tool in ["bash", "edit", "webfetch", "websearch", "codesearch", "external_directory"] {
        rules[tool] = json!("ask");
    }
    for tool in ["glob", "grep", "list", "todoread", "todowrite", "question", "skill", "task"] {
        rules[tool] = json!("allow");
    }
    rules["read"] = json!({ "*": "allow", "*.env": "ask", "*.env.*": "ask" });
    let mut config = json!({ "permission": rules });
    if !is_trusted {
        config["lsp"] = json!(false);
        config["formatter"] = json!(false);
        // What the repository says to the model is still read: it is only text.
        config["instructions"] = json!([format!("{dir}/AGENTS.md")]);
    }
    config
}

/// A refusal needs a reason: without one opencode ends the turn.
pub(super) fn permitted(decision: &Decision) -> Value {
    match decision {
        Decision::Allow => json!({ "reply": "once" }),
        Decision::Deny { why } if why.trim().is_empty() => {
            json!({ "reply": "reject", "message": "Not allowed. Go on without it." })
        }
        Decision::Deny { why } => json!({ "reply": "reject", "message": why }),
        Decision::Text { text } => {
            json!({ "reply": "reject", "message": format!("A person has answered: {text}") })
        }
    }
}

pub(super) fn answered(decision: &Decision) -> &str {
    match decision {
        Decision::Allow => "Yes.",
        Decision::Deny { why } => why,
        Decision::Text { text } => text,
    }
}
