//! Claude Code, by stream-json in both directions with its control protocol.
//!
//! One process a turn: `claude -p --input-format stream-json --output-format stream-json`. Its `result` is not the end of
//! the process: with a background shell or a sub-agent alive it takes another turn by itself and gives a second `result`.
//! So standard input is closed at the first one, and the turn is over at the one that finds no background work alive.
//!
//! Spend: `model_usage_since_last_result` is a true difference in every version that has it. A version without it counts
//! `total_cost_usd` from nothing in each process. Until then each call's own `usage` is a floor.

#[cfg(test)]
mod tests;
mod transcripts;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::event::{End, Event, Question, Spent, Trouble, TroubleKind};
use super::json::{at, brief, line, list, micros, object, text, whole, whole_text, yes};
use super::{
    Act, Adapter, Capabilities, Cost, Decision, Driven, Forks, Heard, Launch, Transport, Turn,
};

pub(super) const DRIVEN: Driven = Driven {
    name: "claude",
    capabilities: Capabilities {
        resume: true,
        cost: Cost::Reported,
        reset_time: true,
        steer: true,
        cancel: true,
        approvals: true,
        mcp: true,
        structured_end: true,
    },
    tested: &["2.1.197", "2.1.325"],
    env: &[
        "ANTHROPIC_*",
        "CLAUDE_*",
        "AWS_*",
        "GOOGLE_*",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "NODE_EXTRA_CA_CERTS",
    ],
    needs_command: false,
    resumes_next_minute: false,
    forks: Forks::Cut(transcripts::of),
    login: "claude, then /login",
    make: |turn| Box::new(Claude::new(turn)),
};

/// The model asks a person through this tool.
const ASKS_A_PERSON: &str = "AskUserQuestion";

const MOST_ABOUT: usize = 200;

struct Claude {
    turn: Turn,
    session: Option<String>,
    /// What its calls have used up, by the id of the message: the same message comes once for each of its blocks.
    calls: BTreeMap<String, Spent>,
    /// What its results have said.
    settled: Option<Spent>,
    /// The tools that a question is about, by the id of the request: an answer repeats what was asked.
    asked: BTreeMap<String, Asked>,
    window: Option<Trouble>,
    background: u32,
    /// Work that was sent to the background, by its id.
    sent_off: BTreeSet<String>,
    /// True while the agent owes a turn of its own to work in the background that has ended.
    owes_turn: bool,
    is_input_open: bool,
    /// Messages that were sent into the turn and that the model was not given yet.
    steers: Vec<(u64, String)>,
    /// True if it says when the model is given what we have sent.
    replays: bool,
    is_over: bool,
    not_understood: u64,
    interrupts: u64,
    /// How much the last call of the agent itself has read.
    context: u64,
}

struct Asked {
    input: Value,
    is_elicitation: bool,
}

impl Claude {
    fn new(turn: Turn) -> Self {
        Self {
            turn,
            session: None,
            calls: BTreeMap::new(),
            settled: None,
            asked: BTreeMap::new(),
            window: None,
            background: 0,
            sent_off: BTreeSet::new(),
            owes_turn: false,
            is_input_open: true,
            steers: Vec::new(),
            replays: false,
            is_over: false,
            not_understood: 0,
            interrupts: 0,
            context: 0,
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Vec<Act> {
        let Some(message) = object(bytes) else { return self.not_understood() };
        let mut acts = self.session(&message);
        match (text(&message, "type"), text(&message, "subtype")) {
            (Some("system"), Some("init")) => acts.extend(self.init(&message)),
            (Some("system"), Some("api_retry")) => acts.push(Act::Tell(retries(&message))),
            (Some("system"), Some("background_tasks_changed")) => {
                self.background = u32::try_from(list(&message, "tasks").len()).unwrap_or(u32::MAX);
                acts.push(Act::Tell(Event::Background { live: self.background }));
            }
            (Some("system"), Some("task_started")) if yes(&message, "is_backgrounded") => {
                self.sent_off.extend(text(&message, "task_id").map(str::to_owned));
            }
            (Some("system"), Some("task_notification")) => {
                let id = text(&message, "task_id").unwrap_or_default();
                self.owes_turn |= self.sent_off.remove(id);
            }
            (Some("rate_limit_event"), _) => acts.extend(self.limit(&message)),
            (Some("assistant"), _) => acts.extend(self.assistant(&message)),
            (Some("user"), _) if yes(&message, "isReplay") => acts.extend(self.took(&message)),
            (Some("user"), _) => acts.extend(tool_results(&message)),
            (Some("control_request"), _) => acts.extend(self.asked(&message)),
            (Some("control_cancel_request"), _) => acts.extend(self.withdrawn(&message)),
            (Some("result"), _) => acts.extend(self.result(&message)),
            // Known, and nothing that we need.
            (
                Some("system"),
                Some("status" | "task_started" | "task_updated" | "permission_denied"),
            )
            | (Some("control_response" | "stream_event" | "tool_progress"), _) => {}
            _ => acts.extend(self.not_understood()),
        }
        acts
    }

    fn not_understood(&mut self) -> Vec<Act> {
        self.not_understood += 1;
        vec![Act::Tell(Event::NotUnderstood { lines: self.not_understood })]
    }

    fn session(&mut self, message: &Value) -> Vec<Act> {
        let Some(id) = text(message, "session_id").filter(|id| self.session.as_deref() != Some(id))
        else {
            return Vec::new();
        };
        self.session = Some(id.to_owned());
        vec![Act::Tell(Event::Session { id: id.to_owned() })]
    }

    fn init(&self, message: &Value) -> Vec<Act> {
        let model = text(message, "model").filter(|_| self.calls.is_empty());
        model.map(|name| Act::Tell(Event::Model { name: name.to_owned() })).into_iter().collect()
    }

    fn limit(&mut self, message: &Value) -> Vec<Act> {
        let Some(info) = at(message, "rate_limit_info") else { return self.not_understood() };
        let is_rejected = text(info, "status") == Some("rejected");
        let words = text(info, "rateLimitType").unwrap_or("a limit of the account");
        let trouble = Trouble {
            kind: TroubleKind::Quota,
            until_ms: if is_rejected { latest_reset(info) } else { None },
            text: format!("{words}: {}", text(info, "status").unwrap_or("unknown")),
        };
        self.window = Some(trouble.clone()).filter(|_| is_rejected);
        vec![Act::Tell(Event::Window { trouble })]
    }

    fn assistant(&mut self, message: &Value) -> Vec<Act> {
        let mut acts = Vec::new();
        // A message that the CLI made up itself is its word on an error, which the result repeats.
        let is_synthetic = text(message, "message.model") == Some("<synthetic>")
            || yes(message, "is_api_error_message");
        // What a sub-agent says is said to the agent.
        let is_own = at(message, "parent_tool_use_id").is_none_or(Value::is_null);
        for block in list(message, "message.content") {
            match text(block, "type") {
                Some("text") if is_own && !is_synthetic => {
                    let text = text(block, "text").unwrap_or_default().to_owned();
                    acts.push(Act::Tell(Event::Said { text }));
                }
                Some("tool_use") => acts.extend(tool_use(block)),
                _ => {}
            }
        }
        if let (Some(id), Some(usage)) = (text(message, "message.id"), at(message, "message.usage"))
            && !is_synthetic
        {
            let spent = Spent {
                input_tokens: Some(sum(usage, &["input_tokens", "cache_creation_input_tokens"])),
                output_tokens: whole(usage, "output_tokens"),
                cached_tokens: whole(usage, "cache_read_input_tokens"),
                cost_usd_micros: None,
                is_floor: true,
            };
            let context = sum(
                usage,
                &["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"],
            );
            if self.calls.insert(id.to_owned(), spent) != Some(spent) {
                acts.push(Act::Tell(Event::Spent(self.spent())));
                if is_own {
                    self.context = context;
                    acts.push(Act::Tell(Event::Context { used: context, window: None }));
                }
            }
        }
        acts
    }

    /// What is known by now: the results as they are, and on top the calls since the last one.
    fn spent(&self) -> Spent {
        // Neither a call nor a result has said anything: nothing is known, which is not nothing.
        if self.settled.is_none() && self.calls.is_empty() {
            return Spent { is_floor: true, ..Spent::default() };
        }
        let settled = self.settled.unwrap_or_default();
        let calls = self.calls.values();
        let add = |of: fn(&Spent) -> Option<u64>| {
            let calls: u64 = calls.clone().filter_map(of).sum();
            Some(of(&settled).unwrap_or(0).saturating_add(calls))
        };
        Spent {
            input_tokens: add(|it| it.input_tokens),
            output_tokens: add(|it| it.output_tokens),
            cached_tokens: add(|it| it.cached_tokens),
            cost_usd_micros: settled.cost_usd_micros,
            is_floor: !self.calls.is_empty(),
        }
    }

    fn asked(&mut self, message: &Value) -> Vec<Act> {
        let (Some(id), Some(request)) = (text(message, "request_id"), at(message, "request"))
        else {
            return self.not_understood();
        };
        let (tool, words, is_elicitation) = match text(request, "subtype") {
            Some("can_use_tool") => {
                let tool = text(request, "tool_name").unwrap_or_default();
                let input = at(request, "input").unwrap_or(&Value::Null);
                let is_question = tool == ASKS_A_PERSON;
                let words = if is_question { question(input) } else { asks(tool, input) };
                (Some(tool).filter(|_| !is_question), words, false)
            }
            Some("elicitation") => {
                (None, text(request, "message").unwrap_or_default().to_owned(), true)
            }
            // It waits for an answer to each; this one is none that we know.
            _ => {
                let error = json!({ "type": "control_response", "response":
                    { "subtype": "error", "request_id": id, "error": "not supported by this client" } });
                let mut acts = self.not_understood();
                acts.push(Act::Send(line(&error)));
                return acts;
            }
        };
        // A name that is in use names one question: the second is answered by the answer to the first.
        if self.asked.contains_key(id) {
            return self.not_understood();
        }
        let input = at(request, "input").cloned().unwrap_or(Value::Null);
        self.asked.insert(id.to_owned(), Asked { input, is_elicitation });
        let question = Question { id: id.to_owned(), tool: tool.map(str::to_owned), text: words };
        let decided = self.turn.approvals.decide_on(&question);
        let mut acts = vec![Act::Tell(Event::Asked(question))];
        if let Some(decision) = decided {
            acts.extend(self.decide(id, &decision));
        }
        acts
    }

    /// It no longer waits for an answer.
    fn withdrawn(&mut self, message: &Value) -> Option<Act> {
        let id = text(message, "request_id")?;
        self.asked.remove(id)?;
        Some(Act::Tell(Event::Withdrawn { id: id.to_owned() }))
    }

    /// The model was given something that we have sent: the prompt, or a message.
    fn took(&mut self, message: &Value) -> Option<Act> {
        self.replays = true;
        let words = list(message, "message.content").first().and_then(|it| text(it, "text"))?;
        let at = self.steers.iter().position(|(_, sent)| sent == words)?;
        let (message, _) = self.steers.remove(at);
        Some(Act::Tell(Event::Took { message }))
    }

    fn result(&mut self, message: &Value) -> Vec<Act> {
        let fresh = self.settled.unwrap_or_default();
        let since = since_last(message);
        // Without a difference of its own, a total of a process that is fresh.
        let said = since.or_else(|| of_process(message).map(|total| total.beyond(&fresh)));
        if let Some(said) = said {
            self.settled = Some(fresh.and(&said));
            self.calls.clear();
        }
        let mut acts = vec![Act::Tell(Event::Spent(self.spent()))];
        if let Some(window) = context_window(message) {
            acts.push(Act::Tell(Event::Context { used: self.context, window: Some(window) }));
        }
        // A message that came too late for the turn before is given in one of its own.
        if !self.steers.is_empty() && !yes(message, "is_error") {
            return acts;
        }
        if std::mem::take(&mut self.is_input_open) {
            acts.push(Act::CloseInput);
        }
        if text(message, "origin.kind") == Some("task-notification") {
            self.owes_turn = false;
        }
        // With work in the background it is not the last: the agent hears of that work in a turn of its own.
        if self.background == 0 && !self.owes_turn {
            let end = self.end_of(message);
            acts.extend(self.over(end));
        }
        acts
    }

    fn over(&mut self, end: End) -> Option<Act> {
        let is_first = !std::mem::replace(&mut self.is_over, true);
        is_first.then_some(Act::Tell(Event::Ended(end)))
    }

    fn end_of(&self, message: &Value) -> End {
        let is_error = yes(message, "is_error");
        let words = text(message, "result").filter(|words| !words.is_empty());
        let words = words.or_else(|| text(message, "errors.0")).unwrap_or_default();
        let failed = |kind| End::Failed { trouble: Trouble::new(kind, brief(words, 2000)) };
        match (text(message, "subtype"), text(message, "terminal_reason")) {
            (_, Some(reason)) if reason.starts_with("aborted") => failed(TroubleKind::Cancelled),
            (Some("error_max_turns" | "error_max_budget_usd"), _) => failed(TroubleKind::OwnCap),
            (Some("success"), Some("completed") | None) if !is_error => {
                End::Completed { text: words.to_owned() }
            }
            _ if words.starts_with("No conversation found") => failed(TroubleKind::CannotResume),
            (Some("success"), _)
                if is_error || text(message, "terminal_reason") == Some("api_error") =>
            {
                End::Failed { trouble: self.api_trouble(message, words) }
            }
            _ => failed(TroubleKind::Other),
        }
    }

    fn api_trouble(&self, message: &Value, words: &str) -> Trouble {
        let kind = match (whole(message, "api_error_status"), text(message, "api_error_type")) {
            _ if text(message, "api_error") == Some("usage_limit_reached") => TroubleKind::Quota,
            (status, kind) => kind_of(status, kind, words),
        };
        let window = self
            .window
            .clone()
            .filter(|_| matches!(kind, TroubleKind::Quota | TroubleKind::Throttle));
        match window {
            Some(window) => Trouble { text: brief(words, 2000), ..window },
            None => Trouble::new(kind, brief(words, 2000)),
        }
    }
}

impl Adapter for Claude {
    fn launch(&self) -> Launch {
        let mut argv = match self.turn.command.as_slice() {
            [] => vec!["claude".to_owned()],
            command => command.to_vec(),
        };
        let words =
            ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        argv.extend(words.map(str::to_owned));
        let words = ["--permission-prompt-tool", "stdio", "--replay-user-messages"];
        argv.extend(words.map(str::to_owned));
        let mut flag = |name: &str, value: &Option<String>| {
            argv.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
        };
        flag("--resume", &self.turn.session);
        flag("--model", &self.turn.model);
        flag("--effort", &self.turn.effort);
        let mode = self.turn.permission_mode.clone().unwrap_or_else(|| "default".to_owned());
        flag("--permission-mode", &Some(mode));
        argv.extend(self.turn.fork.as_ref().map(|_| "--fork-session".to_owned()));
        if let Some(server) = &self.turn.mcp {
            let words = ["--strict-mcp-config", "--mcp-config", &server.for_claude().to_string()];
            argv.extend(words.map(str::to_owned));
        }
        argv.extend(self.turn.args.iter().cloned());
        let env =
            [("DISABLE_AUTOUPDATER", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        Launch { argv, env: env.to_vec(), transport: Transport::Lines, ..Launch::default() }
    }

    fn begin(&mut self) -> Vec<Act> {
        vec![Act::Send(line(&prompt(&self.turn.prompt)))]
    }

    fn hear(&mut self, heard: Heard<'_>) -> Vec<Act> {
        match heard {
            Heard::Line(_) if self.is_over => Vec::new(),
            Heard::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Vec::new(),
            Heard::Line(bytes) => self.line(bytes),
            Heard::End => self.over(End::Interrupted).into_iter().collect(),
            Heard::Answer { .. } | Heard::Pushed(_) => Vec::new(),
        }
    }

    fn steer(&mut self, message: u64, text: &str) -> Option<Vec<Act>> {
        // Until it has said that the model was given the prompt, it would not say so of a message either.
        if !self.is_input_open || !self.replays {
            return None;
        }
        self.steers.push((message, text.to_owned()));
        Some(vec![Act::Send(line(&prompt(text)))])
    }

    fn decide(&mut self, question: &str, decision: &Decision) -> Vec<Act> {
        let Some(asked) = self.asked.remove(question) else { return Vec::new() };
        let response = match (decision, asked.is_elicitation) {
            (Decision::Allow, false) => json!({ "behavior": "allow", "updatedInput": asked.input }),
            (Decision::Deny { why }, false) => json!({ "behavior": "deny", "message": why }),
            (Decision::Text { text }, false) => {
                json!({ "behavior": "deny", "message": format!("A person has answered: {text}") })
            }
            (Decision::Allow, true) => json!({ "action": "accept", "content": {} }),
            (Decision::Deny { .. }, true) => json!({ "action": "decline" }),
            (Decision::Text { text }, true) => {
                json!({ "action": "accept", "content": { "answer": text } })
            }
        };
        let answer = json!({ "type": "control_response", "response":
            { "subtype": "success", "request_id": question, "response": response } });
        let told = Event::Decided { id: question.to_owned(), decision: decision.clone() };
        vec![Act::Send(line(&answer)), Act::Tell(told)]
    }

    fn cancel(&mut self) -> Vec<Act> {
        if !self.is_input_open {
            return Vec::new();
        }
        self.interrupts += 1;
        let request = json!({ "type": "control_request", "request_id": format!("interrupt_{}", self.interrupts),
            "request": { "subtype": "interrupt" } });
        vec![Act::Send(line(&request))]
    }
}

fn prompt(text: &str) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": [{ "type": "text", "text": text }] } })
}

fn sum(usage: &Value, names: &[&str]) -> u64 {
    names.iter().filter_map(|name| whole(usage, name)).fold(0, u64::saturating_add)
}

fn tool_use(block: &Value) -> Option<Act> {
    let (id, name) = (text(block, "id")?.to_owned(), text(block, "name")?.to_owned());
    let about = at(block, "input").map(about).unwrap_or_default();
    Some(Act::Tell(Event::ToolStarted { id, name, about }))
}

fn tool_results(message: &Value) -> Vec<Act> {
    let ended = |block: &Value| {
        let id =
            text(block, "tool_use_id").filter(|_| text(block, "type") == Some("tool_result"))?;
        Some(Act::Tell(Event::ToolEnded { id: id.to_owned(), is_error: yes(block, "is_error") }))
    };
    list(message, "message.content").iter().filter_map(ended).collect()
}

/// What a tool is used on: the one word of its input that says most.
fn about(input: &Value) -> String {
    let telling =
        ["command", "file_path", "path", "pattern", "url", "query", "description", "prompt"];
    let words = telling.iter().find_map(|name| text(input, name));
    brief(&words.map_or_else(|| input.to_string(), str::to_owned), MOST_ABOUT)
}

/// What it would do, all of it: a person allows nothing that is not shown. What a call is described as is not done.
fn asks(tool: &str, input: &Value) -> String {
    let telling = ["command", "file_path", "path", "pattern", "url", "query"];
    let first = telling.iter().find(|name| text(input, name).is_some());
    let mut rest = input.clone();
    if let (Some(first), Some(fields)) = (first, rest.as_object_mut()) {
        fields.remove(*first);
        fields.remove("description");
    }
    let words = match first.and_then(|name| text(input, name)) {
        Some(words) if rest.as_object().is_some_and(serde_json::Map::is_empty) => words.to_owned(),
        Some(words) => format!("{words}\n{rest}"),
        None => input.to_string(),
    };
    whole_text(&format!("{tool}: {words}"))
}

fn question(input: &Value) -> String {
    let asked: Vec<&str> =
        list(input, "questions").iter().filter_map(|it| text(it, "question")).collect();
    if asked.is_empty() { brief(&input.to_string(), 2000) } else { asked.join("\n") }
}

/// The latest end of the windows that are spent; of the one that is named if none is listed.
fn latest_reset(info: &Value) -> Option<u64> {
    let windows = at(info, "unifiedWindows").and_then(Value::as_object);
    let spent = windows
        .into_iter()
        .flat_map(|all| all.values())
        .filter(|it| text(it, "status") == Some("rejected"));
    let listed = spent.filter_map(|window| whole(window, "resetsAt")).max();
    listed.max(whole(info, "resetsAt")).map(|seconds| seconds.saturating_mul(1000))
}

fn retries(message: &Value) -> Event {
    let words = text(message, "error").unwrap_or("unknown");
    let kind = match words {
        "authentication_failed" => TroubleKind::Auth,
        _ => kind_of(whole(message, "error_status"), Some(words), words),
    };
    Event::Retries {
        attempt: whole(message, "attempt").and_then(|it| u32::try_from(it).ok()).unwrap_or(0),
        most: whole(message, "max_retries").and_then(|it| u32::try_from(it).ok()),
        delay_ms: whole(message, "retry_delay_ms"),
        trouble: Trouble::new(kind, words),
    }
}

fn kind_of(status: Option<u64>, kind: Option<&str>, words: &str) -> TroubleKind {
    match (status, kind) {
        (Some(401 | 403), _) | (_, Some("authentication_error" | "permission_error")) => {
            TroubleKind::Auth
        }
        (Some(404), _) | (_, Some("not_found_error")) => TroubleKind::NoModel,
        (Some(429), _) | (_, Some("rate_limit_error" | "rate_limit")) => TroubleKind::Throttle,
        (Some(413), _) => TroubleKind::ContextFull,
        (Some(400), _) if words.to_lowercase().contains("prompt is too long") => {
            TroubleKind::ContextFull
        }
        (Some(500..=599), _)
        | (_, Some("overloaded_error" | "api_error" | "overloaded" | "server_error")) => {
            TroubleKind::Overload
        }
        _ => TroubleKind::Other,
    }
}

/// What the models have used up since the last result, all together.
fn since_last(message: &Value) -> Option<Spent> {
    let models = at(message, "model_usage_since_last_result")?.as_object()?;
    let sum =
        |name: &str| models.values().filter_map(|it| whole(it, name)).fold(0, u64::saturating_add);
    let cost = models.values().filter_map(|it| micros(it, "costUSD")).fold(0, u64::saturating_add);
    Some(Spent {
        input_tokens: Some(sum("inputTokens").saturating_add(sum("cacheCreationInputTokens"))),
        output_tokens: Some(sum("outputTokens")),
        cached_tokens: Some(sum("cacheReadInputTokens")),
        cost_usd_micros: Some(cost),
        is_floor: false,
    })
}

/// What the process has used up in all, by versions that know no difference.
fn of_process(message: &Value) -> Option<Spent> {
    let models = at(message, "modelUsage")?.as_object()?;
    let sum =
        |name: &str| models.values().filter_map(|it| whole(it, name)).fold(0, u64::saturating_add);
    Some(Spent {
        input_tokens: Some(sum("inputTokens").saturating_add(sum("cacheCreationInputTokens"))),
        output_tokens: Some(sum("outputTokens")),
        cached_tokens: Some(sum("cacheReadInputTokens")),
        cost_usd_micros: micros(message, "total_cost_usd"),
        is_floor: false,
    })
}

fn context_window(message: &Value) -> Option<u64> {
    let models = at(message, "modelUsage")?.as_object()?;
    models.values().filter_map(|it| whole(it, "contextWindow")).max()
}
