//! Dialogs of pi's extensions: what one asks, and the answer that its kind of dialog takes.

use serde_json::{Value, json};

use crate::adapter::Decision;
use crate::adapter::json::{list, text};

pub(super) enum Dialog {
    Confirm,
    Select(Vec<String>),
    Write,
}

impl Dialog {
    /// A dialog with its id, if pi waits for an answer.
    pub(super) fn of(message: &Value) -> Option<(String, Self)> {
        let options = list(message, "options").iter().filter_map(Value::as_str).map(str::to_owned);
        let dialog = match text(message, "method")? {
            "confirm" => Self::Confirm,
            "select" => Self::Select(options.collect()),
            "input" | "editor" => Self::Write,
            _ => return None,
        };
        Some((text(message, "id")?.to_owned(), dialog))
    }

    pub(super) fn words(&self, message: &Value) -> String {
        let said = [text(message, "title"), text(message, "message")];
        let mut words: Vec<&str> = said.into_iter().flatten().collect();
        if let Self::Select(options) = self {
            words.extend(options.iter().map(String::as_str));
        }
        words.join("\n")
    }

    /// Which of several options allows something is not said, so a policy only refuses those.
    pub(super) fn is_answered_by(&self, policy: &Decision) -> bool {
        matches!((policy, self), (Decision::Deny { .. }, _) | (Decision::Allow, Self::Confirm))
    }

    pub(super) fn answer(&self, id: &str, decision: &Decision) -> Value {
        let (key, value) = match (decision, self) {
            (Decision::Allow, Self::Confirm) => ("confirmed", Value::Bool(true)),
            (Decision::Deny { .. }, Self::Confirm) => ("confirmed", Value::Bool(false)),
            (Decision::Text { text }, Self::Select(options)) if options.contains(text) => {
                ("value", text.as_str().into())
            }
            (Decision::Text { text }, Self::Write) => ("value", text.as_str().into()),
            _ => ("cancelled", Value::Bool(true)),
        };
        json!({ "type": "extension_ui_response", "id": id, key: value })
    }
}
