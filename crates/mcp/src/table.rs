//! The table of tools: their names, what they are for, and what they take. Pure.

use serde_json::{Value, json};

/// What a tool does to the world, for the hints that clients show and decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Reads,
    /// Changes what a second call finds done.
    Sets,
    Starts,
    Ends,
}

struct Tool {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    does: Does,
    /// The properties of its input, and which of them it needs.
    takes: fn() -> Value,
    needs: &'static [&'static str],
}

/// Told to the model before anything else.
pub(crate) const INSTRUCTIONS: &str = "\
You work inside an Outlast run, which goes on without a person. When the task is finished, call \
report_done with a summary and end your turn. If you cannot go on without a person, call \
report_blocked or ask_human and end your turn. Start servers and other long commands with \
proc_start: they survive your turn and crashes, and you are told when they end. Use call for a \
step that must not be made twice: it runs once under its key, and asking again returns the stored \
result. Use run_spawn for work that another run should do.";

/// A tool that is called without a daemon would lie, so each of these is asked of it.
pub(crate) fn is_ours(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

/// What a tool of ours takes, by name.
pub(crate) fn takes(name: &str) -> Value {
    let tool = TOOLS.iter().find(|tool| tool.name == name);
    tool.map_or_else(|| json!({}), |tool| (tool.takes)())
}

/// The tools as `tools/list` says them.
pub(crate) fn listed() -> Vec<Value> {
    TOOLS.iter().map(view).collect()
}

fn view(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "title": tool.title,
        "description": tool.about,
        "inputSchema": {
            "type": "object",
            "properties": (tool.takes)(),
            "required": tool.needs,
            "additionalProperties": false,
        },
        "annotations": annotations(tool.title, tool.does),
    })
}

fn annotations(title: &str, does: Does) -> Value {
    json!({
        "title": title,
        "readOnlyHint": does == Does::Reads,
        "destructiveHint": does == Does::Ends,
        "idempotentHint": matches!(does, Does::Reads | Does::Sets | Does::Ends),
        "openWorldHint": false,
    })
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn flag(about: &str) -> Value {
    json!({"type": "boolean", "description": about})
}

fn number(about: &str, least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most, "description": about})
}

fn command() -> Value {
    json!({
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ],
        "description": "a shell command line, or the program and its arguments",
    })
}

const ID: &str = "its id, name or key";
const WAIT: u64 = 45;

fn wait() -> Value {
    number("seconds to wait at most; ask again with the cursor if it has not ended", 0, WAIT)
}

fn class() -> Value {
    json!({
        "type": "string",
        "enum": ["read", "idempotent", "keyed", "unsafe"],
        "default": "unsafe",
        "description": "what a second execution does: nothing (read, idempotent, keyed) or harm (unsafe)",
    })
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "proc_start",
        title: "Start a background process",
        about: "Starts a command in the background. It outlives this turn, this agent and crashes, and ends with the run unless persist is true. A message comes when it has ended, and when a line matches a pattern of watch. With a key, asking again returns the same process.",
        does: Does::Starts,
        takes: || {
            json!({
                "command": command(),
                "name": text("a name to find it by"),
                "key": text("start at most one under this key in this turn"),
                "dir": text("where it runs; the workspace when absent"),
                "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "variables to set"},
                "tty": flag("give it a terminal, which proc_write types into"),
                "watch": {"type": "array", "items": {"type": "string"}, "maxItems": 16, "description": "regular expressions; you are told of lines of output that one of them matches"},
                "persist": flag("let it go on after the run has ended"),
                "timeout_s": number("end it after so many seconds", 1, 31_536_000),
            })
        },
        needs: &["command"],
    },
    Tool {
        name: "proc_list",
        title: "List background processes",
        about: "Lists the background processes of this run, with state and exit code.",
        does: Does::Reads,
        takes: || json!({}),
        needs: &[],
    },
    Tool {
        name: "proc_read",
        title: "Read output of a process",
        about: "Reads the output of a process from a cursor on. Pass the returned cursor to go on where this ended.",
        does: Does::Reads,
        takes: || {
            json!({
                "id": text(ID),
                "cursor": number("the first byte; 0 when absent", 0, u64::MAX >> 1),
                "max_bytes": number("at most so much; 32768 when absent", 1, 1 << 20),
            })
        },
        needs: &["id"],
    },
    Tool {
        name: "proc_write",
        title: "Type into a process",
        about: "Types into the terminal of a process that was started with tty.",
        does: Does::Starts,
        takes: || json!({"id": text(ID), "text": text("what is typed, with its newlines")}),
        needs: &["id", "text"],
    },
    Tool {
        name: "proc_wait",
        title: "Wait for a process",
        about: "Waits until a process has ended, at most 45 seconds, and returns its output from the cursor on. If it goes on, call this again with the returned cursor.",
        does: Does::Reads,
        takes: || {
            json!({
                "id": text(ID),
                "timeout_s": wait(),
                "cursor": number("the first byte of output to return; 0 when absent", 0, u64::MAX >> 1),
            })
        },
        needs: &["id"],
    },
    Tool {
        name: "proc_stop",
        title: "Stop a process",
        about: "Stops a process and everything that it started.",
        does: Does::Ends,
        takes: || json!({"id": text(ID), "now": flag("kill it instead of asking first")}),
        needs: &["id"],
    },
    Tool {
        name: "run_spawn",
        title: "Start a child run",
        about: "Starts a run below this one: an agent with a task, a loop file, or a command. The key makes it one run, however often this is asked: a child that goes on or is done is returned, one that failed is made again. A message comes when it has ended.",
        does: Does::Starts,
        takes: || {
            json!({
                "key": text("names the work within this turn"),
                "task": text("what it is to do, in words"),
                "agent": text("the kind of agent, such as claude or codex"),
                "file": text("the path of a loop file"),
                "command": command(),
                "name": text("a name to find it by"),
                "max_turns": number("end it after so many turns", 1, 1_000_000),
                "max_tokens": number("end it when it has used so many tokens", 1, 1_000_000_000_000),
                "max_cost_usd": {"type": "number", "exclusiveMinimum": 0, "description": "end it when it has cost so much"},
                "tries": number("make at most so many runs under this key if they fail", 1, 100),
            })
        },
        needs: &["key"],
    },
    Tool {
        name: "run_status",
        title: "Look at a child run",
        about: "Says how a run below this one is doing; without an id, lists all of them.",
        does: Does::Reads,
        takes: || json!({"id": text(ID)}),
        needs: &[],
    },
    Tool {
        name: "run_result",
        title: "Result of a child run",
        about: "Returns what a run below this one came to: its state, summary and last output.",
        does: Does::Reads,
        takes: || json!({"id": text(ID)}),
        needs: &["id"],
    },
    Tool {
        name: "run_wait",
        title: "Wait for a child run",
        about: "Waits until a run below this one has ended or needs a person, at most 45 seconds. If it goes on, ask again.",
        does: Does::Reads,
        takes: || json!({"id": text(ID), "timeout_s": wait()}),
        needs: &["id"],
    },
    Tool {
        name: "run_stop",
        title: "Stop a child run",
        about: "Stops a run below this one and everything that it started.",
        does: Does::Ends,
        takes: || json!({"id": text(ID), "now": flag("kill it instead of asking first")}),
        needs: &["id"],
    },
    Tool {
        name: "call",
        title: "Make a step once",
        about: "Runs a command once under a key. Asked for again under the same key, also after a crash, it does not run and its stored result is returned.",
        does: Does::Starts,
        takes: || {
            json!({
                "key": text("names the step within this turn"),
                "command": command(),
                "class": class(),
                "timeout_s": number("kill it after so many seconds; 600 when absent", 1, 86_400),
                "retry_failed": flag("make it again if it ended with another status than 0"),
            })
        },
        needs: &["key", "command"],
    },
    Tool {
        name: "checkpoint",
        title: "Say how far you are",
        about: "Keeps a note of how far you are. If this attempt is interrupted, the next one reads it.",
        does: Does::Sets,
        takes: || json!({"text": text("what is done and what comes next")}),
        needs: &["text"],
    },
    Tool {
        name: "note",
        title: "Leave a note",
        about: "Keeps a note for the next attempt and the next turn of this run.",
        does: Does::Sets,
        takes: || json!({"text": text("the note")}),
        needs: &["text"],
    },
    Tool {
        name: "report_done",
        title: "Report that the task is done",
        about: "Says that the task is finished. The checks of the run decide whether it is. End your turn after this.",
        does: Does::Sets,
        takes: || json!({"summary": text("what was done")}),
        needs: &["summary"],
    },
    Tool {
        name: "report_blocked",
        title: "Report that you cannot go on",
        about: "Says that the run cannot go on without a person, and why. End your turn after this.",
        does: Does::Sets,
        takes: || json!({"reason": text("what is in the way")}),
        needs: &["reason"],
    },
    Tool {
        name: "ask_human",
        title: "Ask a person",
        about: "Asks a person. The run rests until there is an answer, and the next turn gets it. End your turn after this.",
        does: Does::Sets,
        takes: || json!({"question": text("the question")}),
        needs: &["question"],
    },
    Tool {
        name: "report_usage",
        title: "Report what was used",
        about: "Reports the tokens and the money that this attempt has used so far, all of it.",
        does: Does::Sets,
        takes: || {
            let most = 1_000_000_000_000_u64;
            json!({
                "input_tokens": number("input tokens", 0, most),
                "output_tokens": number("output tokens", 0, most),
                "cached_tokens": number("cached input tokens", 0, most),
                "cost_usd": {"type": "number", "minimum": 0, "description": "US dollars"},
            })
        },
        needs: &[],
    },
    Tool {
        name: "budget_left",
        title: "What is left",
        about: "Says what this run has used of each of its limits.",
        does: Does::Reads,
        takes: || json!({}),
        needs: &[],
    },
];

/// A tool of the loop file, as `tools/list` says it.
pub(crate) fn declared(name: &str, schema: Option<&Value>, class: &str) -> Value {
    let does = match class {
        "read" => Does::Reads,
        "idempotent" | "keyed" => Does::Sets,
        _ => Does::Starts,
    };
    let schema = schema.filter(|it| it.is_object()).cloned();
    json!({
        "name": name,
        "description": format!("A tool of this loop, of class {class}. Its calls are in the journal; one that has completed is not made again after a crash."),
        "inputSchema": schema.unwrap_or_else(|| json!({"type": "object"})),
        "annotations": {
            "readOnlyHint": does == Does::Reads,
            "destructiveHint": class == "unsafe",
            "idempotentHint": does != Does::Starts,
            "openWorldHint": true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_needs_only_what_it_takes() {
        for tool in listed() {
            let schema = &tool["inputSchema"];
            let properties = schema["properties"].as_object().expect("properties");
            for needed in schema["required"].as_array().expect("a list") {
                assert!(properties.contains_key(needed.as_str().expect("a name")), "{tool}");
            }
        }
    }
}
