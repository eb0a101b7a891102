//! What happens in a turn of Codex: items, counts, limits, errors, and its end.

use serde_json::Value;

use super::{Codex, Stage, read};
use crate::adapter::Act;
use crate::adapter::event::{End, Event, Spent, Trouble, TroubleKind};
use crate::adapter::json::{at, brief, list, text, whole, yes};

impl Codex {
    fn is_own(&self, params: &Value) -> bool {
        text(params, "threadId") == Some(&self.thread)
    }

    pub(super) fn turn_started(&mut self, params: &Value) -> Vec<Act> {
        let Some(turn) = text(params, "turn.id") else { return self.not_understood() };
        self.turns.insert(turn.to_owned());
        match &self.stage {
            Stage::Starting if self.is_own(params) => {
                self.runs(turn);
            }
            Stage::Running { turn: ours } if ours == turn => {}
            // A sub-agent's, or one that the thread takes by itself.
            _ => {
                self.beside.insert(turn.to_owned());
            }
        }
        Vec::new()
    }

    pub(super) fn turn_completed(&mut self, params: &Value) -> Vec<Act> {
        let Some(turn) = at(params, "turn") else { return self.not_understood() };
        let id = text(turn, "id").unwrap_or_default();
        match &self.stage {
            Stage::Running { turn: ours } if ours == id => self.completed(turn),
            _ => {
                let was_beside = self.beside.remove(id);
                if was_beside { self.lingers() } else { Vec::new() }
            }
        }
    }

    fn completed(&mut self, turn: &Value) -> Vec<Act> {
        let text_of = |item: &Value| text(item, "text").map(str::to_owned);
        let items = list(turn, "items").iter().rev();
        let last = items.filter(|it| text(it, "type") == Some("agentMessage")).find_map(text_of);
        let end = match text(turn, "status") {
            Some("completed") => match (self.trouble.take(), last.or_else(|| self.said.take())) {
                (Some(trouble), _) => End::Failed { trouble },
                (None, None) if self.spent.is_none() => End::Failed { trouble: self.nothing() },
                (None, text) => End::Completed { text: text.unwrap_or_default() },
            },
            Some("failed") => {
                let error = at(turn, "error").filter(|error| !error.is_null());
                let trouble = error.map(|error| self.trouble_of(error)).or(self.trouble.take());
                let unsaid = || Trouble::new(TroubleKind::Other, "the turn failed");
                End::Failed { trouble: trouble.unwrap_or_else(unsaid) }
            }
            Some("interrupted") => {
                let trouble = Trouble::new(TroubleKind::Cancelled, "the turn was interrupted");
                End::Failed { trouble }
            }
            _ => return self.not_understood(),
        };
        match end {
            End::Completed { text } if self.live() > 0 => {
                self.stage = Stage::Lingering { text };
                self.lingers()
            }
            end => self.over(end),
        }
    }

    /// A turn that is completed, of which no model knows anything.
    fn nothing(&self) -> Trouble {
        let until_ms = self.windows.until_ms();
        let kind = if until_ms.is_some() { TroubleKind::Quota } else { TroubleKind::Other };
        let text = "the turn was completed, and no model had answered".to_owned();
        Trouble { kind, until_ms, text }
    }

    /// Commands and sub-agents that outlive the turn.
    fn live(&self) -> usize {
        let is_command = |item: &&Value| text(item, "type") == Some("commandExecution");
        self.open.values().filter(is_command).count() + self.beside.len()
    }

    fn lingers(&mut self) -> Vec<Act> {
        let Stage::Lingering { text } = &self.stage else { return Vec::new() };
        let live = self.live();
        let text = text.clone();
        let count = u32::try_from(live).unwrap_or(u32::MAX);
        let mut acts = vec![Act::Tell(Event::Background { live: count })];
        if live == 0 {
            acts.extend(self.over(End::Completed { text }));
        }
        acts
    }

    pub(super) fn over(&mut self, end: End) -> Vec<Act> {
        let mut acts = Vec::new();
        // Of a call that was cut off, nothing was counted.
        let is_floor = !matches!(end, End::Completed { .. }) || self.retries > 0;
        if let Some(spent) = self.spent.filter(|spent| spent.is_floor != is_floor) {
            acts.push(Act::Tell(Event::Spent(Spent { is_floor, ..spent })));
        }
        self.stage = Stage::Over;
        if end != End::Interrupted {
            acts.push(Act::CloseInput);
        }
        acts.push(Act::Tell(Event::Ended(end)));
        acts
    }

    pub(super) fn item_started(&mut self, params: &Value) -> Vec<Act> {
        let Some((id, item)) = item(params) else { return self.not_understood() };
        if !self.is_new(params) {
            return Vec::new();
        }
        let tool = read::tool(item);
        self.open.insert(id.to_owned(), item.clone());
        let started = |(name, about)| Event::ToolStarted { id: id.to_owned(), name, about };
        tool.map(|tool| Act::Tell(started(tool))).into_iter().collect()
    }

    pub(super) fn item_completed(&mut self, params: &Value) -> Vec<Act> {
        let Some((id, item)) = item(params) else { return self.not_understood() };
        if !self.is_new(params) {
            return Vec::new();
        }
        self.open.remove(id);
        let mut acts = Vec::new();
        if read::tool(item).is_some() {
            let is_error = read::has_failed(item);
            acts.push(Act::Tell(Event::ToolEnded { id: id.to_owned(), is_error }));
        }
        // What a sub-agent says is said to the agent.
        if text(item, "type") == Some("agentMessage") && self.is_own(params) {
            let text = text(item, "text").unwrap_or_default().to_owned();
            (self.said, self.trouble) = (Some(text.clone()), None);
            if let Stage::Lingering { text: last } = &mut self.stage {
                last.clone_from(&text);
            }
            acts.push(Act::Tell(Event::Said { text }));
        }
        acts.extend(self.lingers());
        acts
    }

    /// Of a turn that began in this process, and no replay.
    fn is_new(&self, params: &Value) -> bool {
        text(params, "turnId").is_some_and(|turn| self.turns.contains(turn))
    }

    pub(super) fn usage(&mut self, params: &Value) -> Vec<Act> {
        let usage = at(params, "tokenUsage").unwrap_or(&Value::Null);
        let thread = text(params, "threadId");
        let (Some(thread), Some(total), Some(last)) =
            (thread, at(usage, "total"), at(usage, "last"))
        else {
            return self.not_understood();
        };
        let before = self.totals.insert(thread.to_owned(), total.clone());
        if !self.is_new(params) {
            return Vec::new();
        }
        let mut acts = Vec::new();
        if let Some(used) = whole(last, "totalTokens").filter(|_| self.is_own(params)) {
            let window = whole(usage, "modelContextWindow");
            acts.push(Act::Tell(Event::Context { used, window }));
        }
        if before.as_ref() != Some(total) {
            self.unsure = Some(read::spent(last));
            let is_first_of_resumed = before.is_none() && self.turn.session.is_some();
            if !(is_first_of_resumed && self.is_own(params)) {
                acts.extend(self.sure());
            }
        }
        acts
    }

    pub(super) fn sure(&mut self) -> Option<Act> {
        let call = self.unsure.take()?;
        let spent = self.spent.unwrap_or_default().and(&call);
        self.spent = Some(spent);
        Some(Act::Tell(Event::Spent(spent)))
    }

    pub(super) fn limits(&mut self, params: &Value) -> Vec<Act> {
        let Some(limits) = at(params, "rateLimits") else { return self.not_understood() };
        if !self.windows.merge(limits) {
            return Vec::new();
        }
        let (text, until_ms) = (self.windows.to_string(), self.windows.until_ms());
        let trouble = Trouble { kind: TroubleKind::Quota, until_ms, text };
        vec![Act::Tell(Event::Window { trouble })]
    }

    pub(super) fn error(&mut self, params: &Value) -> Vec<Act> {
        let Some(error) = at(params, "error") else { return self.not_understood() };
        let trouble = self.trouble_of(error);
        if trouble.kind == TroubleKind::Quota {
            self.unsure = None;
        }
        let mut acts: Vec<Act> = self.sure().into_iter().collect();
        if yes(params, "willRetry") {
            self.retries += 1;
            let counted = text(error, "message").and_then(read::attempt);
            let (attempt, most) = counted.map_or((self.retries, None), |(n, of)| (n, Some(of)));
            acts.push(Act::Tell(Event::Retries { attempt, most, delay_ms: None, trouble }));
        } else if self.is_own(params) && !read::is_of_a_request(error) {
            self.trouble = Some(trouble);
        }
        acts
    }

    fn trouble_of(&self, error: &Value) -> Trouble {
        let kind = read::kind(at(error, "codexErrorInfo").unwrap_or(&Value::Null));
        let words = [text(error, "message"), text(error, "additionalDetails")];
        let words: Vec<&str> = words.into_iter().flatten().collect();
        let is_limit = matches!(kind, TroubleKind::Quota | TroubleKind::Throttle);
        let until_ms = self.windows.until_ms().filter(|_| is_limit);
        Trouble { kind, until_ms, text: brief(&words.join(": "), 2000) }
    }
}

fn item(params: &Value) -> Option<(&str, &Value)> {
    let item = at(params, "item")?;
    Some((text(item, "id")?, item))
}
