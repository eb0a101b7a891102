//! What a request says, in whichever of the four protocols it comes.

use serde_json::Value;

/// The protocols of the vendors, by the path that a request goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

impl Dialect {
    pub(super) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default();
        let ends = |end: &str| path.ends_with(end);
        if ends("/messages") {
            Some(Self::Anthropic)
        } else if ends("/responses") {
            Some(Self::Responses)
        } else if ends("/chat/completions") {
            Some(Self::Chat)
        } else if ends(":generateContent") || ends(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }
}

/// A tool that the agent offers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Offered {
    pub(super) name: String,
    /// The namespace that it is in.
    pub(super) namespace: Option<String>,
    /// JSON Schema of its input.
    pub(super) schema: Value,
}

/// What a request asks of the model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) dialect: Dialect,
    pub(super) model: String,
    pub(super) is_streamed: bool,
    pub(super) messages: usize,
    /// The last text of the user, without the notes that agents put beside it.
    pub(super) last_user: String,
    /// All texts of the user that name a turn, in their order.
    pub(super) prompts: Vec<String>,
    pub(super) tools: Vec<Offered>,
}

impl Request {
    /// True for what an agent asks beside its turn: a title, a probe.
    pub(super) fn is_side_call(&self) -> bool {
        self.tools.is_empty()
    }

    pub(super) fn read(dialect: Dialect, path: &str, body: &Value) -> Self {
        let key = match dialect {
            Dialect::Responses => "input",
            Dialect::Gemini => "contents",
            Dialect::Anthropic | Dialect::Chat => "messages",
        };
        let messages = body[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let users = messages.iter().filter(|message| message["role"] == "user");
        let texts: Vec<String> = users.flat_map(texts_of).collect();
        let last_user = texts.last().cloned().unwrap_or_default();
        let prompts = texts.into_iter().filter(|text| turn_of(text).is_some()).collect();
        let in_path = || path.split("/models/").nth(1)?.split(':').next();
        let model = body["model"].as_str().or_else(in_path).unwrap_or("fake");
        Self {
            dialect,
            model: model.to_owned(),
            is_streamed: body["stream"] == true || path.contains(":stream"),
            messages: messages.len(),
            last_user,
            prompts,
            tools: offered(body),
        }
    }
}

/// The prompts of the loop files name their turn.
pub(crate) fn turn_of(prompt: &str) -> Option<usize> {
    let number = |at: usize| prompt[at..].split_once(" of the work")?.0.parse().ok();
    prompt.rmatch_indices("Turn ").find_map(|(at, word)| number(at + word.len()))
}

/// Which attempt at its turn a prompt is of: its note says so, unless it is the first.
pub(crate) fn attempt_of(prompt: &str) -> u64 {
    let said = || {
        let note = format!("This is the same run, turn {}, attempt ", turn_of(prompt)?);
        prompt.split_once(&note)?.1.split_once('.')?.0.parse().ok()
    };
    said().unwrap_or(1)
}

/// The pieces of text in a message.
fn texts_of(message: &Value) -> Vec<String> {
    let content = message.get("content").or_else(|| message.get("parts"));
    if let Some(text) = content.and_then(Value::as_str) {
        return plain(text).into_iter().collect();
    }
    let parts = content.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).filter_map(plain).collect()
}

/// Claude puts notes of its own into a message of the user.
fn plain(text: &str) -> Option<String> {
    const OPEN: &str = "<system-reminder>";
    const CLOSE: &str = "</system-reminder>";
    let mut left = text.to_owned();
    while let Some(start) = left.find(OPEN) {
        let end = left[start..].find(CLOSE).map_or(left.len(), |end| start + end + CLOSE.len());
        left.replace_range(start..end, "");
    }
    Some(left.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What the request itself offers, and what searches for tools have found: Codex shows tools of servers only then.
fn offered(body: &Value) -> Vec<Offered> {
    let list = |of: &Value| of["tools"].as_array().cloned().unwrap_or_default();
    let input = body["input"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = input.iter().filter(|item| item["type"] == "tool_search_output").flat_map(list);
    let tools: Vec<Value> = list(body).into_iter().chain(found).collect();
    tools.iter().flat_map(of_entry).collect()
}

/// One entry may be a tool, a list of declarations, or a namespace of tools.
fn of_entry(entry: &Value) -> Vec<Offered> {
    for list in ["functionDeclarations", "tools"] {
        if let Some(tools) = entry[list].as_array() {
            let namespace = entry["name"].as_str().map(str::to_owned);
            let within = tools.iter().flat_map(of_entry);
            return within.map(|tool| Offered { namespace: namespace.clone(), ..tool }).collect();
        }
    }
    let function = entry.get("function").unwrap_or(entry);
    let name = function["name"].as_str().or_else(|| function["type"].as_str()).unwrap_or_default();
    let schema = ["input_schema", "parameters", "parametersJsonSchema"]
        .iter()
        .find_map(|key| function.get(*key))
        .cloned()
        .unwrap_or(Value::Null);
    vec![Offered { name: name.to_owned(), namespace: None, schema }]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_dialect_says_what_the_user_said_and_which_tools_there_are() {
        let chat = json!({ "model": "m", "stream": true,
            "messages": [{ "role": "user", "content": "one" }, { "role": "assistant", "content": "two" }],
            "tools": [{ "type": "function", "function": { "name": "bash", "parameters": {} } }] });
        let read = Request::read(Dialect::Chat, "/v1/chat/completions", &chat);
        assert_eq!((read.last_user.as_str(), read.messages, read.is_streamed), ("one", 2, true));
        assert_eq!(read.tools[0].name, "bash");

        let gemini = json!({ "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }],
            "tools": [{ "functionDeclarations": [{ "name": "write_file" }] }] });
        let path = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
        let read = Request::read(Dialect::of(path).expect("known"), path, &gemini);
        assert_eq!((read.model.as_str(), read.is_streamed), ("gemini-2.5-pro", true));
        assert_eq!(read.tools[0].name, "write_file");
    }

    #[test]
    fn a_prompt_says_its_turn_and_its_note_the_attempt() {
        let first = "Turn 3 of the work.";
        assert_eq!((turn_of(first), attempt_of(first)), (Some(3), 1));
        let second = "Turn 3 of the work.\n\nThis is the same run, turn 3, attempt 2. Go on. Turn 2 ended so.";
        assert_eq!((turn_of(second), attempt_of(second)), (Some(3), 2));
        assert_eq!(turn_of("Say hello."), None);
    }

    #[test]
    fn notes_of_the_agent_are_no_words_of_the_user() {
        assert_eq!(
            plain("<system-reminder>a\nb</system-reminder> go on ").as_deref(),
            Some("go on")
        );
        assert_eq!(plain("<system-reminder>a"), None);
    }
}
