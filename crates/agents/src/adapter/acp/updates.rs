//! What comes while a turn runs: messages, tools, the context and the cost. History that is told again is left out.

use serde_json::Value;

use super::{Acp, Stage};
use crate::adapter::Act;
use crate::adapter::event::Event;
use crate::adapter::json::{at, text, whole};

impl Acp {
    pub(super) fn updated(&mut self, message: &Value) -> Vec<Act> {
        let Some(update) = at(message, "params.update") else { return self.not_understood() };
        // What a sub-agent does in a session of its own is told to the agent.
        let session = text(message, "params.sessionId");
        let is_other =
            session.is_some_and(|it| self.session.as_deref().is_some_and(|own| it != own));
        match text(update, "sessionUpdate") {
            _ if is_other => Vec::new(),
            Some("agent_message_chunk") => self.said(update),
            Some("tool_call" | "tool_call_update") => self.tool(update),
            Some("usage_update") => self.used(update),
            Some("user_message_chunk") => {
                if self.stage == Stage::Replaying {
                    self.talk.drop();
                }
                Vec::new()
            }
            // Each of the four sends it once a session is open, the last of a history before it.
            Some("available_commands_update") => {
                self.go_live();
                Vec::new()
            }
            Some("agent_thought_chunk") => self.finish_message(),
            Some("session_info_update") => {
                self.codex_thread.learn(update).map(Act::Tell).into_iter().collect()
            }
            Some("plan" | "plan_update" | "current_mode_update" | "config_option_update") => {
                Vec::new()
            }
            _ => self.not_understood(),
        }
    }

    /// History is over; what was taken for talk until now was of it.
    pub(super) fn go_live(&mut self) {
        if self.stage == Stage::Replaying {
            self.talk.drop();
            self.stage = Stage::Live;
        }
    }

    /// True if this is of the session's history; until our prompt, everything is.
    fn leaves_out(&mut self, id: Option<&str>) -> bool {
        match self.stage {
            Stage::Opening => {
                self.replayed.extend(id.map(str::to_owned));
                true
            }
            Stage::Replaying | Stage::Live | Stage::Over => {
                id.is_some_and(|id| self.replayed.contains(id))
            }
        }
    }

    fn said(&mut self, update: &Value) -> Vec<Act> {
        let id = text(update, "messageId");
        let Some(words) = text(update, "content.text") else { return Vec::new() };
        if self.leaves_out(id) || self.agent.is_notice(words) {
            return Vec::new();
        }
        if id.is_some() {
            self.go_live();
        }
        self.is_denied = false;
        said(self.talk.add(id, words))
    }

    pub(super) fn finish_message(&mut self) -> Vec<Act> {
        // What may be history is not told.
        let finished = if self.stage == Stage::Replaying { None } else { self.talk.finish() };
        said(finished)
    }

    fn tool(&mut self, update: &Value) -> Vec<Act> {
        let Some(id) = text(update, "toolCallId") else { return self.not_understood() };
        if self.stage == Stage::Replaying {
            self.replayed.insert(id.to_owned());
        }
        if self.leaves_out(Some(id)) {
            return Vec::new();
        }
        let mut acts = self.finish_message();
        self.is_denied &= self.tools.is_known(id);
        acts.extend(self.tools.learn(id, update, &self.agent));
        acts
    }

    fn used(&mut self, update: &Value) -> Vec<Act> {
        self.spending.add_cost(update, self.stage == Stage::Opening);
        if self.stage == Stage::Opening {
            return Vec::new();
        }
        let mut acts: Vec<Act> = self
            .tell_model(text(update, "_meta._claude/model").map(str::to_owned))
            .into_iter()
            .collect();
        if let Some(used) = whole(update, "used").filter(|used| *used > 0) {
            let context = (used, whole(update, "size"));
            if self.context.replace(context) != Some(context) {
                acts.push(Act::Tell(Event::Context { used, window: context.1 }));
            }
        }
        acts.extend(self.spending.told(true).map(|spent| Act::Tell(Event::Spent(spent))));
        acts
    }
}

fn said(message: Option<String>) -> Vec<Act> {
    message.map(|text| Act::Tell(Event::Said { text })).into_iter().collect()
}
