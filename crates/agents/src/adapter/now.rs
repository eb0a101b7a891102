//! What an attempt is at, folded from the lines of its `agent.jsonl` as they come.
//!
//! Holds little, whatever the lines say: texts are cut and lists have a bound. What an agent wrote into the file itself is
//! believed as far as a reader of it would believe it, and nothing is decided by it.

use serde::Deserialize;

use super::{Event, Question, Spent, Stamped, Trouble};

/// No text that is kept is longer, in bytes.
const MOST_TEXT: usize = 1000;
/// Of tools and questions that are open, the newest so many are kept.
const MOST_OPEN: usize = 64;

/// What the events so far come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Now {
    pub model: Option<String>,
    /// The tools that run, in the order in which they were started.
    pub tools: Vec<Running>,
    pub background: u32,
    /// How much of the context is used, and how much there is.
    pub context: Option<(u64, Option<u64>)>,
    /// Everything that the attempt has used.
    pub spent: Option<Spent>,
    pub retrying: Option<Retrying>,
    /// The provider's last word on a limit that ends at a time.
    pub window: Option<Trouble>,
    /// The questions that are open, the first of them first.
    pub asked: Vec<Asked>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    id: String,
    pub name: String,
    pub about: String,
    pub since_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retrying {
    pub attempt: u32,
    pub most: Option<u32>,
    pub delay_ms: Option<u64>,
    pub why: String,
    pub since_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub question: Question,
    pub since_ms: u64,
}

/// What a line was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Event,
    /// One that this build does not know.
    Unknown,
    /// No event at all.
    Damaged,
}

/// What every event has, also one of a newer driver.
#[derive(Deserialize)]
#[expect(dead_code, reason = "whether they are there is all that is asked")]
struct AnyEvent {
    at_ms: u64,
    event: String,
}

impl Now {
    /// Takes one line.
    pub fn take(&mut self, line: &[u8]) -> Taken {
        match serde_json::from_slice::<Stamped>(line) {
            Ok(Stamped { at_ms, event }) => {
                self.happened(at_ms, event);
                Taken::Event
            }
            Err(_) if serde_json::from_slice::<AnyEvent>(line).is_ok() => Taken::Unknown,
            Err(_) => Taken::Damaged,
        }
    }

    /// Lines are missing here: what was open before them may have ended in them.
    pub fn skip(&mut self) {
        let Self { model, spent, window, .. } = std::mem::take(self);
        *self = Self { model, spent, window, ..Self::default() };
    }

    fn happened(&mut self, at_ms: u64, event: Event) {
        match event {
            Event::Session { .. }
            | Event::NewConversation { .. }
            | Event::Took { .. }
            | Event::NotUnderstood { .. } => {}
            Event::Model { name } => self.model = Some(cut(name)),
            Event::Said { .. } => self.retrying = None,
            Event::ToolStarted { id, name, about } => {
                self.retrying = None;
                let (id, name, about) = (cut(id), cut(name), cut(about));
                self.tools.retain(|tool| tool.id != id);
                push(&mut self.tools, Running { id, name, about, since_ms: at_ms });
            }
            Event::ToolEnded { id, .. } => {
                let id = cut(id);
                self.tools.retain(|tool| tool.id != id);
            }
            Event::Spent(spent) => {
                self.retrying = None;
                self.spent = Some(self.spent.map_or(spent, |before| spent.at_least(&before)));
            }
            // Some say once how much there is, and then only how much is used.
            Event::Context { used, window } => {
                let known = self.context.and_then(|(_, window)| window);
                self.context = Some((used, window.or(known)));
            }
            Event::Retries { attempt, most, delay_ms, trouble } => {
                let why = cut(trouble.text);
                self.retrying = Some(Retrying { attempt, most, delay_ms, why, since_ms: at_ms });
            }
            Event::Window { trouble } => {
                let Trouble { kind, until_ms, text } = trouble;
                let trouble = Trouble { kind, until_ms, text: cut(text) };
                self.window = Some(trouble).filter(|it| it.until_ms.is_some());
            }
            Event::Asked(Question { id, tool, text }) => {
                self.retrying = None;
                let question = Question { id: cut(id), tool: tool.map(cut), text: cut(text) };
                push(&mut self.asked, Asked { question, since_ms: at_ms });
            }
            Event::Decided { id, .. } | Event::Withdrawn { id } => {
                let id = cut(id);
                self.asked.retain(|asked| asked.question.id != id);
            }
            Event::Background { live } => self.background = live,
            Event::Ended(_) => {
                (self.tools, self.asked) = (Vec::new(), Vec::new());
                (self.retrying, self.background) = (None, 0);
            }
        }
    }
}

fn push<T>(open: &mut Vec<T>, one: T) {
    if open.len() >= MOST_OPEN {
        open.remove(0);
    }
    open.push(one);
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MOST_TEXT));
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(lines: &[&str]) -> Now {
        let mut now = Now::default();
        for line in lines {
            assert_eq!(now.take(line.as_bytes()), Taken::Event, "{line}");
        }
        now
    }

    const STARTED: &str =
        r#"{"at_ms":5,"event":"tool_started","id":"a","name":"Bash","about":"make"}"#;

    #[test]
    fn a_tool_runs_from_its_start_to_its_end() {
        let second = r#"{"at_ms":6,"event":"tool_started","id":"b","name":"Read","about":"x"}"#;
        let ended = r#"{"at_ms":7,"event":"tool_ended","id":"b","is_error":false}"#;
        let now = after(&[STARTED, second]);
        assert_eq!(
            now.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(),
            ["Bash", "Read"]
        );
        let now = after(&[STARTED, second, ended]);
        assert_eq!((now.tools.len(), now.tools[0].since_ms), (1, 5));
        let over = r#"{"at_ms":8,"event":"ended","end":"interrupted"}"#;
        assert!(after(&[STARTED, over]).tools.is_empty());
    }

    #[test]
    fn a_retry_is_over_once_the_agent_works_again() {
        let retries = r#"{"at_ms":5,"event":"retries","attempt":2,"most":10,"delay_ms":500,"trouble":{"kind":"overload","text":"busy"}}"#;
        let now = after(&[retries]);
        assert_eq!(now.retrying.map(|it| (it.attempt, it.delay_ms)), Some((2, Some(500))));
        let said = r#"{"at_ms":6,"event":"said","text":"on"}"#;
        assert_eq!(after(&[retries, said]).retrying, None);
    }

    #[test]
    fn a_line_of_a_newer_driver_is_skipped_and_garbage_is_told_apart() {
        let mut now = after(&[STARTED]);
        assert_eq!(now.take(br#"{"at_ms":6,"event":"dreamt","of":"sheep"}"#), Taken::Unknown);
        for garbage in [&b"{\"at_ms\":6"[..], b"", b"[]", b"\xff"] {
            assert_eq!(now.take(garbage), Taken::Damaged, "{garbage:?}");
        }
        assert_eq!(now.tools.len(), 1);
    }

    #[test]
    fn a_hostile_file_does_not_fill_the_memory() {
        let mut now = Now::default();
        for id in 0..10_000 {
            let name = "x".repeat(5000);
            let line = format!(
                r#"{{"at_ms":1,"event":"tool_started","id":"{id}","name":"{name}","about":"{name}"}}"#
            );
            assert_eq!(now.take(line.as_bytes()), Taken::Event);
        }
        assert_eq!((now.tools.len(), now.tools[0].name.len()), (MOST_OPEN, MOST_TEXT));
    }

    #[test]
    fn what_was_open_before_a_gap_is_not_known_after_it() {
        let spent = r#"{"at_ms":6,"event":"spent","input_tokens":7}"#;
        let mut now = after(&[STARTED, spent]);
        now.skip();
        assert!(now.tools.is_empty());
        assert_eq!(now.spent.and_then(|spent| spent.input_tokens), Some(7));
    }
}
