//! What a driven agent said and did in one attempt, as lines for people.

use std::collections::HashMap;

use outlast_agents::adapter::{Decision, End, Ended, Event, Spent, Stamped, Trouble};
use outlast_wire::api::{AgentAttempt, Usage};
use outlast_wire::plain::plain_text;
use outlast_workflow::duration::short;

use super::spend_words;
use crate::output::figures;

/// A tool that is open while the transcript is told.
struct Open {
    name: String,
    at_ms: u64,
}

/// `all` is the command that shows everything; `is_over` says that the attempt has ended.
pub(super) fn text(agent: &AgentAttempt, all: &str, is_over: bool) -> String {
    let mut teller = Teller::default();
    for (at, event) in agent.events.iter().enumerate() {
        if agent.omitted_after == Some(at) {
            teller.omitted(agent.omitted_bytes, all);
        }
        // One that this build does not know is skipped.
        if let Ok(Stamped { at_ms, event }) = serde_json::from_value(event.clone()) {
            teller.tell(at_ms, event);
        }
    }
    if agent.omitted_after == Some(agent.events.len()) {
        teller.omitted(agent.omitted_bytes, all);
    }
    teller.end(agent, is_over);
    teller.lines.join("\n")
}

#[derive(Default)]
struct Teller {
    lines: Vec<String>,
    open: HashMap<String, Open>,
    last_said: String,
    spent: Option<Spent>,
    end: Option<End>,
}

impl Teller {
    fn omitted(&mut self, bytes: u64, all: &str) {
        // What ends from here on may have begun in there.
        self.open.clear();
        let bytes = figures::bytes(bytes);
        self.say(&format!("[… {bytes} of events left out; all of it: {all}]"));
    }

    fn tell(&mut self, at_ms: u64, event: Event) {
        match event {
            Event::Model { name } => self.say(&format!("[model {name}]")),
            Event::Said { text } => {
                self.say(&text);
                self.last_said = text;
            }
            Event::ToolStarted { id, name, about } => {
                let about = if about.is_empty() { about } else { format!(": {about}") };
                self.say(&format!("→ {name}{about}"));
                self.open.insert(id, Open { name, at_ms });
            }
            Event::ToolEnded { id, is_error } => self.tool_ended(&id, is_error, at_ms),
            Event::Retries { attempt, most, delay_ms, trouble } => {
                let most = most.map(|most| format!(" of {most}")).unwrap_or_default();
                let wait = delay_ms.map(|ms| format!(" in {}", short(ms))).unwrap_or_default();
                self.say(&format!("[{}; tries again{wait} ({attempt}{most})]", trouble.text));
            }
            Event::Window { trouble } if trouble.until_ms.is_some() => {
                self.say(&format!("[limit: {}]", trouble.text));
            }
            Event::Asked(question) => self.say(&format!("? {}", question.text)),
            Event::Decided { decision, .. } => match decision {
                Decision::Allow => self.say("  allowed"),
                Decision::Deny { why } => self.say(&format!("  denied: {why}")),
                Decision::Text { text } => self.say(&format!("  answered: {text}")),
            },
            Event::Withdrawn { .. } => self.say("  taken back"),
            Event::Took { message } => self.say(&format!("[it has taken message {message}]")),
            Event::NewConversation { why } => {
                self.say(&format!("[a new conversation begins: {why}]"));
            }
            Event::Background { live } if live > 0 => {
                self.say(&format!("[{live} at work in the background]"));
            }
            Event::NotUnderstood { lines } => {
                let lines = usize::try_from(lines).unwrap_or(usize::MAX);
                self.say(&format!("[{} not understood]", figures::count(lines, "line")));
            }
            Event::Spent(spent) => self.spent = Some(spent),
            Event::Ended(end) => self.end = Some(end),
            Event::Session { .. }
            | Event::Context { .. }
            | Event::Window { .. }
            | Event::Background { .. } => {}
        }
    }

    fn tool_ended(&mut self, id: &str, is_error: bool, at_ms: u64) {
        let how = if is_error { "failed" } else { "ok" };
        match self.open.remove(id) {
            Some(Open { name, at_ms: began_ms }) => {
                let took = short(at_ms.saturating_sub(began_ms));
                self.say(&format!("← {name}: {how}, {took}"));
            }
            None => self.say(&format!("← a tool: {how}")),
        }
    }

    /// The driver's word counts over the agent's.
    fn end(&mut self, agent: &AgentAttempt, is_over: bool) {
        let ended: Option<Ended> =
            agent.end.as_ref().and_then(|end| serde_json::from_value(end.clone()).ok());
        let spent = ended.as_ref().and_then(|ended| ended.spent).or(self.spent);
        let end = ended.map(|ended| ended.end).or(self.end.take());
        if agent.damaged_lines > 0 {
            let lines = usize::try_from(agent.damaged_lines).unwrap_or(usize::MAX);
            self.say(&format!("[{} damaged]", figures::count(lines, "line")));
        }
        if let Some(why) = &agent.unreadable {
            self.say(&format!("[not readable: {why}]"));
        }
        if let Some(words) = spent.as_ref().map(usage).as_ref().and_then(spend_words) {
            self.say(&format!("[spent {words}]"));
        }
        match end {
            Some(End::Completed { text }) => {
                if text.trim() != self.last_said.trim() {
                    self.say(&text);
                }
                self.say("[completed]");
            }
            Some(End::Failed { trouble: Trouble { text, .. } }) => {
                self.say(&format!("[failed: {text}]"));
            }
            Some(End::NeverStarted { why, .. }) => {
                self.say(&format!("[the agent could not be started: {why}]"));
            }
            Some(End::Interrupted) => {
                self.say("[interrupted: the agent has not said that its turn was over]");
            }
            None if is_over => self.say("[no end: the driver was ended before it could write one]"),
            None => {}
        }
    }

    /// Text of the agent's, without anything that a terminal obeys; further lines are set in.
    fn say(&mut self, text: &str) {
        let plain = plain_text(text.as_bytes());
        let plain = plain.trim_end();
        if !plain.is_empty() {
            self.lines.push(plain.to_owned());
        }
    }
}

fn usage(spent: &Spent) -> Usage {
    Usage {
        input_tokens: spent.input_tokens.unwrap_or(0),
        output_tokens: spent.output_tokens.unwrap_or(0),
        cached_tokens: spent.cached_tokens.unwrap_or(0),
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        cost_usd: spent.cost_usd_micros.unwrap_or(0) as f64 / 1e6,
        known: !spent.is_floor && spent.cost_usd_micros.is_some(),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attempt(events: serde_json::Value) -> AgentAttempt {
        serde_json::from_value(json!({ "events": events })).expect("an attempt")
    }

    #[test]
    fn a_turn_is_told_from_its_first_word_to_its_end() {
        let agent = attempt(json!([
            {"at_ms": 1, "event": "session", "id": "s"},
            {"at_ms": 1, "event": "model", "name": "opus"},
            {"at_ms": 2, "event": "said", "text": "I \u{1b}[31mlook\u{1b}[0m.\nThen I build.\n"},
            {"at_ms": 3, "event": "tool_started", "id": "a", "name": "Bash\u{1b}]0;x\u{7}", "about": "make"},
            {"at_ms": 12_003, "event": "tool_ended", "id": "a", "is_error": true},
            {"at_ms": 13_000, "event": "dreamt", "of": "sheep"},
            {"at_ms": 13_000, "event": "retries", "attempt": 1, "most": 10, "delay_ms": 500, "trouble": {"kind": "overload", "text": "overloaded"}},
            {"at_ms": 13_000, "event": "asked", "id": "q", "tool": "Bash", "text": "Bash: rm -r build"},
            {"at_ms": 13_000, "event": "decided", "id": "q", "decision": {"decision": "deny", "why": "no"}},
            {"at_ms": 14_000, "event": "spent", "input_tokens": 100, "output_tokens": 4},
            {"at_ms": 14_000, "event": "ended", "end": "completed", "text": "It is built."}
        ]));
        insta::assert_snapshot!(text(&agent, "outlast logs k3m", true), @r"
        [model opus]
        I look.
        Then I build.
        → Bash: make
        ← Bash: failed, 12s
        [overloaded; tries again in 500ms (1 of 10)]
        ? Bash: rm -r build
          denied: no
        [spent 104 tokens (100 in, 4 out, 0 cached), not all of it reported]
        It is built.
        [completed]
        ");
    }

    #[test]
    fn what_is_missing_is_said() {
        let agent = AgentAttempt {
            omitted_after: Some(1),
            omitted_bytes: 3 << 20,
            damaged_lines: 1,
            unreadable: Some("agent-end.json: it is no regular file".to_owned()),
            ..attempt(json!([
                {"at_ms": 1, "event": "said", "text": "one"},
                {"at_ms": 9, "event": "tool_ended", "id": "a", "is_error": false}
            ]))
        };
        insta::assert_snapshot!(text(&agent, "outlast logs k3m --turn 1 --attempt 1", true), @r"
        one
        [… 3.0 MiB of events left out; all of it: outlast logs k3m --turn 1 --attempt 1]
        ← a tool: ok
        [1 line damaged]
        [not readable: agent-end.json: it is no regular file]
        [no end: the driver was ended before it could write one]
        ");
        assert_eq!(text(&AgentAttempt::default(), "", false), "");
    }
}
