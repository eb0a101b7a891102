//! Answers of the model, as each vendor streams them.

use serde_json::{Value, json};

use super::request::{Dialect, Offered, Request};
use super::script::{Tokens, Tool};

const SHELLS: [&str; 6] =
    ["Bash", "bash", "shell_command", "exec_command", "shell", "run_shell_command"];
const WRITERS: [&str; 3] = ["Write", "write", "write_file"];

/// The tool of Codex that finds others.
const SEARCH: &str = "tool_search";

/// Characters in one piece of streamed text.
const PIECE: usize = 24;

pub(super) struct Reply<'a> {
    pub(super) number: usize,
    pub(super) request: &'a Request,
    pub(super) text: &'a str,
    pub(super) call: Option<Call>,
    pub(super) tokens: Tokens,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    /// Text for a tool without a schema.
    pub(super) input: Value,
}

/// One server-sent event.
pub(super) struct Event {
    pub(super) name: Option<&'static str>,
    pub(super) data: String,
    /// True for a piece of the text.
    pub(super) is_text: bool,
}

/// True if the model has to look for this tool before it can use it.
pub(super) fn is_hidden(tool: &Tool, offered: &[Offered]) -> bool {
    let can_search = offered.iter().any(|tool| tool.name == SEARCH);
    matches!(tool, Tool::Ours { name, .. } if find_ours(name, offered).is_none()) && can_search
}

/// A tool of our server, however the agent calls it.
fn find_ours<'a>(name: &str, offered: &'a [Offered]) -> Option<&'a Offered> {
    offered.iter().find(|tool| {
        let is_within = tool.namespace.as_deref().is_some_and(|it| it.contains("outlast"));
        let before = tool.name.strip_suffix(name);
        before.is_some_and(|before| before.contains("outlast") || (is_within && before.is_empty()))
    })
}

/// Fits a tool to what the agent offers.
pub(super) fn call(tool: &Tool, offered: &[Offered]) -> Call {
    let find = |names: &[&str]| {
        let of_name = |name: &&str| offered.iter().find(|tool| tool.name == **name);
        names.iter().find_map(of_name)
    };
    match tool {
        Tool::Write { path, content } => match find(&WRITERS) {
            Some(writer) => {
                let has = |key: &&str| writer.schema["properties"].get(*key).is_some();
                let key = ["file_path", "filePath", "path"].into_iter().find(has);
                let input = json!({ key.unwrap_or("file_path"): path, "content": content });
                Call { name: writer.name.clone(), namespace: None, input }
            }
            None => match find(&["apply_patch"]) {
                Some(patcher) => {
                    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
                    let patch =
                        format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
                    Call {
                        name: patcher.name.clone(),
                        namespace: None,
                        input: Value::String(patch),
                    }
                }
                None => call(&Tool::Shell(format!("printf '%s' '{content}' > '{path}'")), offered),
            },
        },
        Tool::Ours { name, input } => match find_ours(name, offered) {
            Some(found) => Call {
                name: found.name.clone(),
                namespace: found.namespace.clone(),
                input: input.clone(),
            },
            None => {
                let (query, name) = (json!({ "query": name, "limit": 8 }), SEARCH.to_owned());
                Call { name, namespace: None, input: query }
            }
        },
        Tool::Background(line) => {
            let mut call = call(&Tool::Shell(line.clone()), offered);
            call.input["run_in_background"] = json!(true);
            call
        }
        Tool::Shell(line) => {
            let Some(shell) = find(&SHELLS) else {
                let (name, input) = (SHELLS[0].to_owned(), json!({ "command": line }));
                return Call { name, namespace: None, input };
            };
            let properties = &shell.schema["properties"];
            let key = if properties.get("cmd").is_some() { "cmd" } else { "command" };
            let is_list = properties[key]["type"] == "array";
            let value = if is_list { json!(["bash", "-c", line]) } else { json!(line) };
            let mut input = json!({ key: value });
            let needs = shell.schema["required"].as_array();
            if needs.is_some_and(|needs| needs.contains(&json!("description"))) {
                input["description"] = json!("scripted");
            }
            Call { name: shell.name.clone(), namespace: None, input }
        }
    }
}

impl Reply<'_> {
    pub(super) fn events(&self) -> Vec<Event> {
        match self.request.dialect {
            Dialect::Anthropic => self.anthropic(),
            Dialect::Responses => self.responses(),
            Dialect::Chat => self.chat(),
            Dialect::Gemini => self.gemini(),
        }
    }

    /// The answer in one piece.
    pub(super) fn whole(&self) -> Value {
        match self.request.dialect {
            Dialect::Anthropic => self.anthropic_message(),
            Dialect::Responses => self.response(),
            Dialect::Chat => self.completion(),
            Dialect::Gemini => {
                let mut parts = vec![json!({ "text": self.text })];
                parts.extend(self.gemini_call());
                self.gemini_last(&parts)
            }
        }
    }

    fn pieces(&self) -> impl Iterator<Item = String> {
        let letters: Vec<char> = self.text.chars().collect();
        let pieces: Vec<String> = letters.chunks(PIECE).map(|it| it.iter().collect()).collect();
        pieces.into_iter()
    }

    fn id(&self, kind: &str) -> String {
        format!("{kind}_fake{:04}", self.number)
    }

    fn anthropic_usage(&self, output: u64) -> Value {
        json!({ "input_tokens": self.tokens.input, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": self.tokens.cached, "output_tokens": output })
    }

    fn anthropic_head(&self) -> Value {
        json!({ "id": self.id("msg"), "type": "message", "role": "assistant", "model": self.request.model,
            "content": [], "stop_reason": null, "stop_sequence": null, "usage": self.anthropic_usage(1) })
    }

    fn anthropic_stop(&self) -> &'static str {
        if self.call.is_some() { "tool_use" } else { "end_turn" }
    }

    fn anthropic_message(&self) -> Value {
        let mut message = self.anthropic_head();
        let mut content = vec![json!({ "type": "text", "text": self.text })];
        content.extend(self.call.iter().map(|call| {
            json!({ "type": "tool_use", "id": self.id("toolu"), "name": call.name, "input": call.input })
        }));
        message["content"] = json!(content);
        message["stop_reason"] = json!(self.anthropic_stop());
        message["usage"] = self.anthropic_usage(self.tokens.output);
        message
    }

    fn anthropic(&self) -> Vec<Event> {
        let mut events = vec![named("message_start", json!({ "message": self.anthropic_head() }))];
        let block = json!({ "type": "text", "text": "" });
        events.push(named("content_block_start", json!({ "index": 0, "content_block": block })));
        for piece in self.pieces() {
            let delta = json!({ "type": "text_delta", "text": piece });
            let data = json!({ "index": 0, "delta": delta });
            events.push(Event { is_text: true, ..named("content_block_delta", data) });
        }
        events.push(named("content_block_stop", json!({ "index": 0 })));
        if let Some(call) = &self.call {
            let block = json!({ "type": "tool_use", "id": self.id("toolu"), "name": call.name, "input": {} });
            let delta =
                json!({ "type": "input_json_delta", "partial_json": call.input.to_string() });
            events
                .push(named("content_block_start", json!({ "index": 1, "content_block": block })));
            events.push(named("content_block_delta", json!({ "index": 1, "delta": delta })));
            events.push(named("content_block_stop", json!({ "index": 1 })));
        }
        let delta = json!({ "stop_reason": self.anthropic_stop(), "stop_sequence": null });
        let usage = self.anthropic_usage(self.tokens.output);
        events.push(named("message_delta", json!({ "delta": delta, "usage": usage })));
        events.push(named("message_stop", json!({})));
        events
    }

    fn response_item(&self) -> Value {
        let part = json!({ "type": "output_text", "text": self.text, "annotations": [] });
        json!({ "type": "message", "id": self.id("msg"), "role": "assistant", "status": "completed", "content": [part] })
    }

    fn response_call(&self) -> Option<Value> {
        self.call.as_ref().map(|call| {
            let (id, call_id) = (self.id("fc"), self.id("call"));
            let mut item = json!({ "id": id, "call_id": call_id, "name": call.name });
            match &call.input {
                query if call.name == SEARCH => {
                    item = json!({ "id": self.id("fc"), "call_id": self.id("call"), "type": "tool_search_call",
                        "status": "completed", "execution": "client", "arguments": query });
                }
                Value::String(text) => {
                    (item["type"], item["input"]) = (json!("custom_tool_call"), json!(text));
                }
                input => {
                    let arguments = json!(input.to_string());
                    (item["type"], item["arguments"]) = (json!("function_call"), arguments);
                    if let Some(namespace) = &call.namespace {
                        item["namespace"] = json!(namespace);
                    }
                }
            }
            item
        })
    }

    fn response(&self) -> Value {
        let Tokens { input, output, cached } = self.tokens;
        let items: Vec<Value> =
            [self.response_item()].into_iter().chain(self.response_call()).collect();
        json!({ "id": self.id("resp"), "object": "response", "model": self.request.model,
            "status": "completed", "output": items, "usage": {
                "input_tokens": input + cached, "input_tokens_details": { "cached_tokens": cached },
                "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": input + cached + output } })
    }

    fn responses(&self) -> Vec<Event> {
        let head = json!({ "id": self.id("resp"), "object": "response", "model": self.request.model, "output": [] });
        let mut events = vec![named("response.created", json!({ "response": head }))];
        let mut item = self.response_item();
        (item["status"], item["content"]) = (json!("in_progress"), json!([]));
        events
            .push(named("response.output_item.added", json!({ "output_index": 0, "item": item })));
        let place = |more: (&str, Value)| json!({ "item_id": self.id("msg"), "output_index": 0, "content_index": 0, more.0: more.1 });
        let part = json!({ "type": "output_text", "text": "", "annotations": [] });
        events.push(named("response.content_part.added", place(("part", part))));
        for piece in self.pieces() {
            let data = place(("delta", json!(piece)));
            events.push(Event { is_text: true, ..named("response.output_text.delta", data) });
        }
        let done = self.response_item();
        let part = place(("part", done["content"][0].clone()));
        events.push(named("response.content_part.done", part));
        events.push(named("response.output_item.done", json!({ "output_index": 0, "item": done })));
        if let Some(call) = self.response_call() {
            for name in ["response.output_item.added", "response.output_item.done"] {
                events.push(named(name, json!({ "output_index": 1, "item": call })));
            }
        }
        events.push(named("response.completed", json!({ "response": self.response() })));
        events
    }

    fn chat_usage(&self) -> Value {
        let Tokens { input, output, cached } = self.tokens;
        json!({ "prompt_tokens": input + cached, "completion_tokens": output, "total_tokens": input + cached + output,
            "prompt_tokens_details": { "cached_tokens": cached }, "completion_tokens_details": { "reasoning_tokens": 0 } })
    }

    fn chat_calls(&self) -> Option<Value> {
        self.call.as_ref().map(|call| {
            json!([{ "index": 0, "id": self.id("call"), "type": "function",
                "function": { "name": call.name, "arguments": call.input.to_string() } }])
        })
    }

    fn chat_finish(&self) -> &'static str {
        if self.call.is_some() { "tool_calls" } else { "stop" }
    }

    fn chat_chunk(&self, choices: &Value) -> Value {
        json!({ "id": self.id("chatcmpl"), "object": "chat.completion.chunk", "model": self.request.model,
            "created": 1_700_000_000, "choices": choices })
    }

    fn chat(&self) -> Vec<Event> {
        let chunk = |delta: Value, finish: Option<&str>| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
            unnamed(&self.chat_chunk(&json!([choice])))
        };
        let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
        for piece in self.pieces() {
            events.push(Event { is_text: true, ..chunk(json!({ "content": piece }), None) });
        }
        events.extend(self.chat_calls().map(|calls| chunk(json!({ "tool_calls": calls }), None)));
        events.push(chunk(json!({}), Some(self.chat_finish())));
        let mut last = self.chat_chunk(&json!([]));
        last["usage"] = self.chat_usage();
        events.push(unnamed(&last));
        events.push(Event { name: None, data: "[DONE]".to_owned(), is_text: false });
        events
    }

    fn completion(&self) -> Value {
        let message =
            json!({ "role": "assistant", "content": self.text, "tool_calls": self.chat_calls() });
        let choice = json!({ "index": 0, "finish_reason": self.chat_finish(), "message": message });
        let mut whole = self.chat_chunk(&json!([choice]));
        whole["object"] = json!("chat.completion");
        whole["usage"] = self.chat_usage();
        whole
    }

    fn gemini_chunk(&self, parts: &[Value]) -> Value {
        let content = json!({ "role": "model", "parts": parts });
        json!({ "candidates": [{ "content": content, "index": 0 }],
            "modelVersion": self.request.model, "responseId": self.id("r") })
    }

    fn gemini_call(&self) -> Option<Value> {
        let call = self.call.as_ref()?;
        Some(json!({ "functionCall": { "name": call.name, "args": call.input } }))
    }

    fn gemini_last(&self, parts: &[Value]) -> Value {
        let Tokens { input, output, cached } = self.tokens;
        let mut last = self.gemini_chunk(parts);
        last["candidates"][0]["finishReason"] = json!("STOP");
        last["usageMetadata"] = json!({ "promptTokenCount": input + cached, "cachedContentTokenCount": cached,
            "candidatesTokenCount": output, "thoughtsTokenCount": 0, "totalTokenCount": input + cached + output });
        last
    }

    fn gemini(&self) -> Vec<Event> {
        let said = |piece| unnamed(&self.gemini_chunk(&[json!({ "text": piece })]));
        let mut events: Vec<Event> =
            self.pieces().map(|piece| Event { is_text: true, ..said(piece) }).collect();
        let last = self.gemini_call().unwrap_or_else(|| json!({ "text": "" }));
        events.push(unnamed(&self.gemini_last(&[last])));
        events
    }
}

/// An event whose data repeats its name.
fn named(name: &'static str, mut data: Value) -> Event {
    data["type"] = json!(name);
    Event { name: Some(name), data: data.to_string(), is_text: false }
}

fn unnamed(data: &Value) -> Event {
    Event { name: None, data: data.to_string(), is_text: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(name: &str, schema: Value) -> Vec<Offered> {
        vec![Offered { name: name.to_owned(), namespace: None, schema }]
    }

    #[test]
    fn a_tool_is_called_as_the_agent_offers_it() {
        let shell = Tool::Shell("ls".to_owned());
        let codex =
            offered("exec_command", json!({ "properties": { "cmd": { "type": "string" } } }));
        assert_eq!(call(&shell, &codex).input, json!({ "cmd": "ls" }));
        let bash =
            json!({ "properties": { "command": {} }, "required": ["command", "description"] });
        let input = call(&shell, &offered("bash", bash)).input;
        assert_eq!(input, json!({ "command": "ls", "description": "scripted" }));
        let write = Tool::Write { path: "a".to_owned(), content: "b".to_owned() };
        let writer = offered("write", json!({ "properties": { "filePath": {} } }));
        assert_eq!(call(&write, &writer).input, json!({ "filePath": "a", "content": "b" }));
        assert_eq!(call(&write, &codex).input, json!({ "cmd": "printf '%s' 'b' > 'a'" }));
    }
}
