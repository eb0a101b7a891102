//! What the agent says and does, as lines for people: this is the attempt's output.

use std::io::Write;

use outlast_agents::adapter::{Decision, Event, TroubleKind};

/// A reader that is gone changes nothing: the events are in their file.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _reader_gone = writeln!(out, "{line}").and_then(|()| out.flush());
}

pub(crate) fn complain(line: &str) {
    let _reader_gone = writeln!(std::io::stderr(), "outlast: {line}");
}

/// What the agent writes on its standard error.
pub(crate) fn complain_as(line: &str) {
    let _reader_gone = writeln!(std::io::stderr(), "{line}");
}

pub(crate) fn show(event: &Event, hide: impl Fn(&str) -> String) {
    if let Some(line) = line_of(event) {
        say(&hide(&line));
    }
}

fn line_of(event: &Event) -> Option<String> {
    Some(match event {
        Event::Said { text } => text.trim_end().to_owned(),
        Event::ToolStarted { name, about, .. } => format!("→ {name}: {about}"),
        Event::ToolEnded { is_error: true, .. } => "  the tool failed".to_owned(),
        Event::Model { name } => format!("[model {name}]"),
        Event::NewConversation { why } => format!("[outlast: a new conversation begins: {why}]"),
        Event::Retries { attempt, delay_ms, trouble, .. } => {
            let wait =
                delay_ms.map(|ms| format!(" in {:.1} s", ms as f64 / 1000.0)).unwrap_or_default();
            format!("[{}; tries again{wait} ({attempt})]", trouble.text)
        }
        Event::Window { trouble } if trouble.until_ms.is_some() => {
            format!("[limit: {}]", trouble.text)
        }
        Event::Asked(question) => format!("? {}", question.text),
        Event::Decided { decision, .. } => match decision {
            Decision::Allow => "  allowed".to_owned(),
            Decision::Deny { .. } => "  denied".to_owned(),
            Decision::Text { text } => format!("  answered: {text}"),
        },
        Event::Withdrawn { .. } => "  taken back".to_owned(),
        Event::Took { .. } => "[the agent has taken the message]".to_owned(),
        Event::Background { live } if *live > 0 => format!("[{live} at work in the background]"),
        Event::Ended(outlast_agents::adapter::End::Failed { trouble })
            if trouble.kind == TroubleKind::Cancelled =>
        {
            "[cancelled]".to_owned()
        }
        Event::Session { .. }
        | Event::ToolEnded { .. }
        | Event::Spent(_)
        | Event::Context { .. }
        | Event::Window { .. }
        | Event::Background { .. }
        | Event::NotUnderstood { .. }
        | Event::Ended(_) => return None,
    })
}
