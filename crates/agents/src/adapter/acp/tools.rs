//! The tools that an agent uses: what is known of each call by now.
//!
//! A policy goes by the name of a tool, so a name is never taken from words that the model can choose: a title may be the
//! very command that it wants to run. Where an agent names no tool, the protocol's kind of it stands for the name.

use std::collections::BTreeMap;

use serde_json::Value;

use super::agent::Agent;
use crate::adapter::Act;
use crate::adapter::event::Event;
use crate::adapter::json::{at, brief, list, text, yes};

const MOST_ABOUT: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Tools(BTreeMap<String, Call>);

#[derive(Debug, Default)]
struct Call {
    name: Option<String>,
    kind: Option<String>,
    title: Option<String>,
    /// What it is used on, by its input.
    about: Option<String>,
    /// Its input as a whole, where no part of it tells.
    input: Option<String>,
    is_told: bool,
    is_ended: bool,
}

impl Tools {
    pub(super) fn is_known(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// An update of a call. Its beginning is told once there is something to tell about it.
    pub(super) fn learn(&mut self, id: &str, update: &Value, agent: &Agent) -> Vec<Act> {
        let call = self.0.entry(id.to_owned()).or_default();
        call.learn(id, update, agent);
        let status = text(update, "status").unwrap_or("pending");
        let mut acts = Vec::new();
        if call.about.is_some() || status != "pending" {
            acts.extend(call.begins(id));
        }
        if matches!(status, "completed" | "failed") {
            acts.extend(self.ended(id, status == "failed" || has_failed(update)));
        }
        acts
    }

    /// A question about a call.
    pub(super) fn asks(&mut self, id: &str, asked: &Value, agent: &Agent) -> Option<Act> {
        let call = self.0.entry(id.to_owned()).or_default();
        call.learn(id, asked, agent);
        call.begins(id)
    }

    pub(super) fn ended(&mut self, id: &str, is_error: bool) -> Option<Act> {
        let call = self.0.get_mut(id)?;
        let is_first = !std::mem::replace(&mut call.is_ended, true);
        is_first.then(|| Act::Tell(Event::ToolEnded { id: id.to_owned(), is_error }))
    }

    /// The tool that a question is about, and what it would do.
    pub(super) fn question(
        &self,
        id: Option<&str>,
        asked: &Value,
        most: usize,
    ) -> (String, String) {
        let unknown = Call::default();
        let call = id.and_then(|id| self.0.get(id)).unwrap_or(&unknown);
        let about = about(asked, most).or_else(|| input(asked, most)).or_else(|| words(asked));
        (call.tool(), about.unwrap_or_else(|| call.about()))
    }
}

impl Call {
    fn learn(&mut self, id: &str, update: &Value, agent: &Agent) {
        if self.name.is_none() {
            self.name = name(id, update, agent);
        }
        let keep = |field: &mut Option<String>, path: &str| {
            if let Some(words) = text(update, path) {
                *field = Some(brief(words, MOST_ABOUT));
            }
        };
        keep(&mut self.kind, "kind");
        keep(&mut self.title, "title");
        self.about = about(update, MOST_ABOUT).or_else(|| self.about.take());
        self.input = input(update, MOST_ABOUT).or_else(|| self.input.take());
    }

    fn tool(&self) -> String {
        self.name.clone().or_else(|| self.kind.clone()).unwrap_or_else(|| "other".to_owned())
    }

    fn about(&self) -> String {
        let title = self.title.clone().filter(|title| Some(title) != self.name.as_ref());
        let about = self.about.clone().or_else(|| self.input.clone()).or(title);
        about.unwrap_or_default()
    }

    fn begins(&mut self, id: &str) -> Option<Act> {
        let is_first = !std::mem::replace(&mut self.is_told, true);
        is_first.then(|| {
            Act::Tell(Event::ToolStarted {
                id: id.to_owned(),
                name: self.tool(),
                about: self.about(),
            })
        })
    }
}

/// The tool's own name, where the agent gives it.
fn name(id: &str, update: &Value, agent: &Agent) -> Option<String> {
    let given = text(update, "name").or_else(|| text(update, "_meta.claudeCode.toolName"));
    let is_first = text(update, "sessionUpdate") == Some("tool_call");
    let own = match agent {
        // The first title of a call is the name of the tool; later ones are of the command or the file.
        Agent::OpenCode if is_first => text(update, "title"),
        Agent::Codex if yes(update, "_meta.is_mcp_tool_call") => text(update, "title"),
        Agent::Gemini => name_in(id),
        Agent::Claude | Agent::Codex | Agent::OpenCode | Agent::Other { .. } => None,
    };
    given.or(own).map(str::to_owned)
}

/// Gemini's ids are the name, two underscores, and an id that begins with the name again.
fn name_in(id: &str) -> Option<&str> {
    id.match_indices("__").find_map(|(at, _)| {
        let (name, rest) = (&id[..at], &id[at + 2..]);
        (!name.is_empty() && rest.starts_with(name)).then_some(name)
    })
}

/// The one word of the input that says most.
fn about(update: &Value, most: usize) -> Option<String> {
    let telling = [
        "command",
        "file_path",
        "filePath",
        "filepath",
        "path",
        "pattern",
        "url",
        "query",
        "description",
        "prompt",
    ];
    let input = at(update, "rawInput")?;
    telling.iter().find_map(|name| text(input, name)).map(|words| brief(words, most))
}

fn input(update: &Value, most: usize) -> Option<String> {
    let input = at(update, "rawInput.arguments").or_else(|| at(update, "rawInput"))?;
    let is_empty = input.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_empty).then(|| brief(&input.to_string(), most))
}

/// The title, and what else a question without an input has for people. With the files that it names, a yes is for those
/// files only: the title of Codex is the same for each edit.
fn words(asked: &Value) -> Option<String> {
    let title = text(asked, "title")?;
    let files = list(asked, "locations").iter().filter_map(|it| text(it, "path"));
    let files = files.filter(|path| !title.contains(path));
    let content = text(asked, "content.0.content.text");
    let all: Vec<&str> = [title].into_iter().chain(content).chain(files).collect();
    Some(all.join(" "))
}

/// A command that ended with another code than 0, which agents call completed.
fn has_failed(update: &Value) -> bool {
    let codes = ["_meta.terminal_exit.exit_code", "rawOutput.metadata.exit"];
    codes.iter().any(|path| at(update, path).and_then(Value::as_i64).is_some_and(|code| code != 0))
}
