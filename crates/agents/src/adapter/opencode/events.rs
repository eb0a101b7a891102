//! What the server pushes, as events of ours. All of it is of this turn: the server serves no other session than the
//! turn's own and those of its sub-agents.

use serde_json::Value;

use super::super::event::{Event, Question, Spent, TroubleKind};
use super::super::json::{at, brief, list, micros, object, text, whole, yes};
use super::super::{Act, Adapter, Decision};
use super::{
    Asked, Author, LastStep, MOST_ABOUT, MOST_TEXT, Opencode, Stage, Tool, is_plain, trouble,
};

impl Opencode {
    pub(super) fn pushed(&mut self, data: &[u8]) -> Vec<Act> {
        let Some(event) = object(data) else { return self.not_understood() };
        let about = at(&event, "properties").unwrap_or(&Value::Null);
        match text(&event, "type") {
            Some("server.connected") if self.stage == Stage::Listening => self.open(),
            Some("session.status") => self.status(&event, about),
            Some("session.idle") => self.idle(about),
            Some("session.error") => self.error(about),
            Some("message.updated") => self.message(about),
            Some("message.part.updated") => self.part(about),
            Some("permission.asked") => self.permission(about),
            Some("question.asked") => self.questions(about),
            Some("permission.replied" | "question.replied" | "question.rejected") => {
                self.settled_elsewhere(about)
            }
            Some(name) if is_not_needed(name) => Vec::new(),
            _ => self.not_understood(),
        }
    }

    fn is_own(&self, about: &Value) -> bool {
        text(about, "sessionID").is_some_and(|id| self.session.as_deref() == Some(id))
    }

    fn status(&mut self, event: &Value, about: &Value) -> Vec<Act> {
        match text(about, "status.type") {
            Some("busy") if self.is_own(about) => {
                self.stage = Stage::Busy;
                Vec::new()
            }
            Some("busy") => {
                self.children.extend(text(about, "sessionID").map(str::to_owned));
                Vec::new()
            }
            Some("idle") => self.idle(about),
            Some("retry") => self.retry(event, about),
            _ => self.not_understood(),
        }
    }

    fn idle(&mut self, about: &Value) -> Vec<Act> {
        if self.is_own(about) {
            self.stage = Stage::Idle;
        } else if let Some(child) = text(about, "sessionID") {
            self.children.remove(child);
        }
        let live = u32::try_from(self.children.len()).unwrap_or(u32::MAX);
        if self.stage != Stage::Idle {
            return Vec::new();
        }
        let is_news = std::mem::replace(&mut self.background, live) != live;
        let mut acts = Vec::new();
        if is_news {
            acts.push(Act::Tell(Event::Background { live }));
        }
        if live == 0 || self.stopping.is_some() {
            acts.extend(self.over());
        }
        acts
    }

    /// A limit that is spent is not waited for here: opencode would sleep until its end.
    fn retry(&mut self, event: &Value, about: &Value) -> Vec<Act> {
        let status = at(about, "status").unwrap_or(&Value::Null);
        let wait_ms = trouble::wait_ms(event, status);
        let trouble = trouble::of_retry(status, wait_ms);
        if trouble.kind == TroubleKind::Quota && self.stopping.is_none() {
            let told = Act::Tell(Event::Window { trouble: trouble.clone() });
            return std::iter::once(told).chain(self.abort(trouble)).collect();
        }
        let attempt = whole(status, "attempt").and_then(|it| u32::try_from(it).ok()).unwrap_or(0);
        vec![Act::Tell(Event::Retries { attempt, most: None, delay_ms: wait_ms, trouble })]
    }

    /// An error is followed by idle, except one of a prompt that was never begun. One of a sub-agent is told to the agent.
    fn error(&mut self, about: &Value) -> Vec<Act> {
        if text(about, "sessionID").is_some() && !self.is_own(about) {
            return Vec::new();
        }
        let trouble = trouble::of_error(at(about, "error").unwrap_or(&Value::Null));
        if self.stage == Stage::Prompted && self.stopping.is_none() {
            return self.failed(trouble);
        }
        self.failure = Some(trouble);
        Vec::new()
    }

    fn message(&mut self, about: &Value) -> Vec<Act> {
        let (Some(id), Some(role)) = (text(about, "info.id"), text(about, "info.role")) else {
            return self.not_understood();
        };
        let author = match role {
            "assistant" if self.is_own(about) && !yes(about, "info.summary") => Author::Agent,
            "assistant" => Author::Aside,
            _ => Author::User,
        };
        self.messages.insert(id.to_owned(), author);
        let (provider, model) = (text(about, "info.providerID"), text(about, "info.modelID"));
        let name = provider.zip(model).map(|(provider, model)| format!("{provider}/{model}"));
        if author != Author::Agent || name.is_none() || name == self.model {
            return Vec::new();
        }
        self.model.clone_from(&name);
        name.map(|name| Act::Tell(Event::Model { name })).into_iter().collect()
    }

    fn part(&mut self, about: &Value) -> Vec<Act> {
        let Some(part) = at(about, "part") else { return self.not_understood() };
        let (Some(id), Some(message)) = (text(part, "id"), text(part, "messageID")) else {
            return self.not_understood();
        };
        let author = match self.messages.get(message) {
            None | Some(Author::User) => return Vec::new(),
            Some(author) => *author,
        };
        match text(part, "type") {
            Some("text") if author == Author::Agent => self.said(id, part),
            Some("tool") => self.tool(id, part),
            Some("step-start") => {
                if author == Author::Agent {
                    self.last = LastStep::default();
                    self.failure = None;
                }
                Vec::new()
            }
            Some("step-finish") => self.step(id, part, author),
            Some(
                "text" | "reasoning" | "patch" | "snapshot" | "file" | "agent" | "subtask"
                | "retry" | "compaction",
            ) => Vec::new(),
            _ => self.not_understood(),
        }
    }

    /// A text is whole once it has an end.
    fn said(&mut self, id: &str, part: &Value) -> Vec<Act> {
        let words = text(part, "text").unwrap_or_default();
        let is_whole = at(part, "time.end").is_some() && !words.is_empty();
        if !is_whole || yes(part, "synthetic") || !self.told.insert(id.to_owned()) {
            return Vec::new();
        }
        self.last.said.push(words.to_owned());
        vec![Act::Tell(Event::Said { text: words.to_owned() })]
    }

    fn tool(&mut self, id: &str, part: &Value) -> Vec<Act> {
        let status = text(part, "state.status").unwrap_or_default();
        let is_end = matches!(status, "completed" | "error");
        let (Some(call), Some(name)) = (text(part, "callID"), text(part, "tool")) else {
            return self.not_understood();
        };
        if !is_end && status != "running" {
            return Vec::new();
        }
        let mut acts = Vec::new();
        if !self.tools.contains_key(id) {
            let about = about(at(part, "state.input").unwrap_or(&Value::Null));
            let label = format!("{name}: {about}");
            let tool = Tool { call: call.to_owned(), label, is_ended: false };
            self.tools.insert(id.to_owned(), tool);
            let (id, name) = (call.to_owned(), name.to_owned());
            acts.push(Act::Tell(Event::ToolStarted { id, name, about }));
        }
        let was_ended =
            self.tools.get_mut(id).is_none_or(|it| std::mem::replace(&mut it.is_ended, is_end));
        if is_end && !was_ended {
            // A command that fails is `completed` too.
            let exit = whole(part, "state.metadata.exit").unwrap_or(0);
            let is_error = status == "error" || exit != 0;
            acts.push(Act::Tell(Event::ToolEnded { id: call.to_owned(), is_error }));
        }
        acts
    }

    fn step(&mut self, id: &str, part: &Value, author: Author) -> Vec<Act> {
        let Some(tokens) = at(part, "tokens") else { return self.not_understood() };
        let sum = |names: &[&str]| names.iter().filter_map(|name| whole(tokens, name)).sum();
        let spent = Spent {
            input_tokens: Some(sum(&["input", "cache.write"])),
            output_tokens: Some(sum(&["output", "reasoning"])),
            cached_tokens: whole(tokens, "cache.read"),
            cost_usd_micros: micros(part, "cost"),
            is_floor: true,
        };
        self.steps.insert(id.to_owned(), spent);
        let mut acts = vec![Act::Tell(Event::Spent(self.spent()))];
        if author == Author::Agent {
            self.last.finish = text(part, "reason").map(str::to_owned);
            let used = sum(&["input", "cache.read", "cache.write"]);
            acts.push(Act::Tell(Event::Context { used, window: None }));
        }
        acts
    }

    fn permission(&mut self, about: &Value) -> Vec<Act> {
        let Some(tool) = text(about, "permission") else { return self.not_understood() };
        let patterns: Vec<&str> =
            list(about, "patterns").iter().filter_map(Value::as_str).collect();
        let call = text(about, "tool.callID").unwrap_or_default();
        let used = self.tools.values().find(|it| it.call == call).map(|it| it.label.as_str());
        let words = patterns.into_iter().chain(used).collect::<Vec<_>>().join("\n");
        self.ask(about, Some(tool), format!("{tool}: {words}"), Asked::Permission)
    }

    fn questions(&mut self, about: &Value) -> Vec<Act> {
        let all = list(about, "questions");
        let words = |it: &Value| {
            let labels: Vec<&str> =
                list(it, "options").iter().filter_map(|it| text(it, "label")).collect();
            format!("{} [{}]", text(it, "question").unwrap_or_default(), labels.join(" | "))
        };
        let words: Vec<String> = all.iter().map(words).collect();
        self.ask(about, None, words.join("\n"), Asked::Questions(all.len()))
    }

    fn ask(&mut self, about: &Value, tool: Option<&str>, words: String, of: Asked) -> Vec<Act> {
        let Some(id) = text(about, "id").filter(|id| is_plain(id)) else {
            return self.not_understood();
        };
        self.asked.insert(id.to_owned(), of);
        let (tool, words) = (tool.map(str::to_owned), brief_lines(&words));
        let question = Question { id: id.to_owned(), tool, text: words };
        let decided = self.turn.approvals.decide_on(&question);
        let mut acts = vec![Act::Tell(Event::Asked(question))];
        if let Some(decision) = decided {
            acts.extend(self.decide(id, &decision));
        }
        acts
    }

    /// opencode refuses all open questions of a session once one of them is refused.
    fn settled_elsewhere(&mut self, about: &Value) -> Vec<Act> {
        let id = text(about, "requestID").unwrap_or_default();
        if self.asked.remove(id).is_none() {
            return Vec::new();
        }
        let decision = match text(about, "reply") {
            Some("once" | "always") => Decision::Allow,
            _ => Decision::Deny { why: "opencode has closed the question itself".to_owned() },
        };
        vec![Act::Tell(Event::Decided { id: id.to_owned(), decision })]
    }
}

/// What a tool is used on: the one word of its input that says most.
fn about(input: &Value) -> String {
    let telling =
        ["command", "filePath", "path", "pattern", "url", "query", "description", "prompt"];
    let words = telling.iter().find_map(|name| text(input, name));
    brief(&words.map_or_else(|| input.to_string(), str::to_owned), MOST_ABOUT)
}

fn brief_lines(words: &str) -> String {
    let lines: Vec<String> = words.lines().map(|line| brief(line, MOST_TEXT)).collect();
    lines.join("\n")
}

/// Known, and nothing that we need.
fn is_not_needed(name: &str) -> bool {
    let families = [
        "catalog",
        "command",
        "file",
        "ide",
        "installation",
        "integration",
        "lsp",
        "mcp",
        "models-dev",
        "plugin",
        "project",
        "pty",
        "reference",
        "server",
        "todo",
        "tui",
        "vcs",
        "workspace",
        "worktree",
    ];
    let ours = [
        "message.part.delta",
        "message.part.removed",
        "message.removed",
        "session.compacted",
        "session.created",
        "session.deleted",
        "session.diff",
        "session.updated",
    ];
    let family = name.split('.').next().unwrap_or_default();
    families.contains(&family) || ours.contains(&name)
}
