//! What an agent asks of its client: whether it may use a tool. Anything else that it asks for is not offered.

use serde_json::{Value, json};

use super::Acp;
use crate::adapter::event::{Event, Question};
use crate::adapter::json::{at, brief, line, list, text};
use crate::adapter::{Act, Adapter, Decision};

const METHOD_NOT_FOUND: i64 = -32601;
const MOST_ASKED: usize = 2000;

/// A question that is open: the agent's id of it, and which option stands for which answer.
pub(super) struct Asked {
    request: Value,
    call: Option<String>,
    allow: Option<String>,
    reject: Option<String>,
}

impl Asked {
    /// No option at all takes the question back, which each agent takes for a refusal.
    pub(super) fn answered(&self, option: Option<&String>) -> Act {
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        let result = json!({ "outcome": outcome });
        Act::Send(line(&json!({ "jsonrpc": "2.0", "id": self.request, "result": result })))
    }
}

impl Acp {
    pub(super) fn requested(&mut self, method: &str, id: &Value, message: &Value) -> Vec<Act> {
        if method == "session/request_permission" {
            return self.permission(id, message);
        }
        // Some ask for what we have said that we do not have, and go on without it.
        let is_known = method.starts_with("fs/") || method.starts_with("terminal/");
        let mut acts = if is_known { Vec::new() } else { self.not_understood() };
        let error = json!({ "code": METHOD_NOT_FOUND, "message": "not offered by this client" });
        acts.push(Act::Send(line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))));
        acts
    }

    fn permission(&mut self, id: &Value, message: &Value) -> Vec<Act> {
        self.go_live();
        let mut acts = self.finish_message();
        let call = at(message, "params.toolCall").unwrap_or(&Value::Null);
        let call_id = text(call, "toolCallId").map(str::to_owned);
        acts.extend(call_id.iter().flat_map(|it| self.tools.asks(it, call, &self.agent)));
        let (tool, about) = self.tools.question(call_id.as_deref(), call, MOST_ASKED);
        let of_kind = |kind: &str| {
            let options = list(message, "params.options").iter();
            let found = options
                .filter(|it| text(it, "kind") == Some(kind))
                .find_map(|it| text(it, "optionId"));
            found.map(str::to_owned)
        };
        let asked = Asked {
            request: id.clone(),
            call: call_id.clone(),
            allow: of_kind("allow_once"),
            reject: of_kind("reject_once").or_else(|| of_kind("reject_always")),
        };
        if self.is_cancelled {
            acts.push(asked.answered(None));
            return acts;
        }
        let own = text(message, "id").map_or_else(|| id.to_string(), str::to_owned);
        let name = match call_id {
            Some(call) if !self.asked.contains_key(&call) => call,
            Some(call) => format!("{call}#{own}"),
            None => own,
        };
        self.asked.insert(name.clone(), asked);
        let words = brief(&format!("{tool}: {about}"), MOST_ASKED);
        let question = Question { id: name.clone(), tool: Some(tool), text: words };
        let decided = self.turn.approvals.decide_on(&question);
        acts.push(Act::Tell(Event::Asked(question)));
        if let Some(decision) = decided {
            acts.extend(self.decide(&name, &decision));
        }
        acts
    }

    pub(super) fn decided(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        let Some(asked) = self.asked.remove(question) else { return Vec::new() };
        let told = |decision| Act::Tell(Event::Decided { id: question.to_owned(), decision });
        if *decision == Decision::Allow
            && let Some(option) = &asked.allow
        {
            return vec![asked.answered(Some(option)), told(Decision::Allow)];
        }
        let decision = match decision {
            // An option that allows it for ever is more than was decided.
            Decision::Allow => {
                Decision::Deny { why: "the agent offers no way to allow it once".to_owned() }
            }
            decision @ (Decision::Deny { .. } | Decision::Text { .. }) => decision.clone(),
        };
        self.is_denied = true;
        let mut acts = vec![asked.answered(asked.reject.as_ref()), told(decision)];
        acts.extend(asked.call.and_then(|call| self.tools.ended(&call, true)));
        acts
    }
}
