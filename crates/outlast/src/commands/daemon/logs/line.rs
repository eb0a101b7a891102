//! One line of the log: JSON, or a plain line of an older version or of a dying process.

use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::args::LogLevel;
use crate::output::printable;

impl LogLevel {
    fn named(word: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|level| level.word().eq_ignore_ascii_case(word))
    }

    fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Line {
    at: Option<Timestamp>,
    level: Option<LogLevel>,
    said: Said,
}

#[derive(Debug, PartialEq)]
enum Said {
    /// As it stands there, and its fields.
    Json {
        raw: String,
        fields: Map<String, Value>,
    },
    Plain(String),
}

impl Line {
    pub(super) fn read(raw: &str) -> Self {
        let raw = raw.trim_end_matches('\r');
        match serde_json::from_str(raw) {
            Ok(Value::Object(fields)) if fields.contains_key("message") => {
                let text = |key| fields.get(key).and_then(Value::as_str);
                Self {
                    at: text("at").and_then(|at| at.parse().ok()),
                    level: text("level").and_then(LogLevel::named),
                    said: Said::Json { raw: raw.to_owned(), fields },
                }
            }
            _ => {
                let mut words = raw.split_whitespace();
                let at: Option<Timestamp> = words.next().and_then(|word| word.parse().ok());
                let level = at.and(words.next()).and_then(LogLevel::named);
                Self { at, level, said: Said::Plain(raw.to_owned()) }
            }
        }
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        match &self.said {
            Said::Plain(raw) => printable(raw),
            Said::Json { fields, .. } => {
                let text = |key| fields.get(key).and_then(Value::as_str).unwrap_or_default();
                let head = format!("{} {:>5}", text("at"), text("level").to_uppercase());
                let others = fields.iter().filter(|(key, _)| !HEAD.contains(&key.as_str()));
                let others = others.map(|(key, value)| format!(" {key}={}", shown(value)));
                printable(&format!("{head} {}{}", text("message"), others.collect::<String>()))
            }
        }
    }

    /// For scripts, whatever it was.
    pub(super) fn json(&self) -> String {
        match &self.said {
            Said::Json { raw, .. } => raw.clone(),
            Said::Plain(raw) => {
                let at = self.at.map(|at| at.to_string());
                json!({ "at": at, "level": self.level.map(LogLevel::word), "message": raw })
                    .to_string()
            }
        }
    }
}

/// What stands in front of every line, and is not told again.
const HEAD: [&str; 3] = ["at", "level", "message"];

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains([' ', '"', '=', '\n']) => {
            text.clone()
        }
        other => other.to_string(),
    }
}

/// Which lines are wanted.
pub(super) struct Filter {
    level: Option<LogLevel>,
    since: Option<Timestamp>,
    /// A line that says neither when nor how bad belongs to the one before it.
    last: bool,
}

impl Filter {
    pub(super) fn new(level: Option<LogLevel>, since: Option<Timestamp>) -> Self {
        Self { level, since, last: since.is_none() }
    }

    pub(super) fn passes(&mut self, line: &Line) -> bool {
        if line.at.is_none() && line.level.is_none() {
            return self.last;
        }
        let is_bad_enough = match (self.level, line.level) {
            (Some(wanted), Some(level)) => level <= wanted,
            (None, _) | (_, None) => true,
        };
        let is_late_enough = match (self.since, line.at) {
            (Some(since), Some(at)) => at >= since,
            (None, _) | (_, None) => true,
        };
        self.last = is_bad_enough && is_late_enough;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"at":"2026-11-16T00:00:01.000Z","level":"warn","message":"odd","run":"k3m","why":"two words","open":3}"#;
    const OLD: &str = "2026-11-15T00:00:01.000000Z ERROR config refused problem=x";

    #[test]
    fn lines_of_every_kind_are_told() {
        assert_eq!(
            Line::read(JSON).text(),
            r#"2026-11-16T00:00:01.000Z  WARN odd open=3 run=k3m why="two words""#
        );
        assert_eq!(Line::read(JSON).json(), JSON);
        assert_eq!(Line::read(OLD).text(), OLD);
        assert_eq!(Line::read(OLD).level, Some(LogLevel::Error));
        let json: Value = serde_json::from_str(&Line::read(OLD).json()).expect("JSON");
        assert_eq!((&json["level"], &json["message"]), (&json!("error"), &json!(OLD)));
        assert_eq!(Line::read("thread 'main' panicked").level, None);
        assert_eq!(Line::read("a\u{1b}[31mred").text(), printable("a\u{1b}[31mred"));
    }

    #[test]
    fn what_a_panic_adds_belongs_to_the_line_before() {
        let all = [OLD, "  a trace of it", JSON, "  more"];
        let passed = |level, since: Option<&str>| {
            let mut filter = Filter::new(level, since.map(|it| it.parse().expect("a time")));
            all.iter().filter(|raw| filter.passes(&Line::read(raw))).copied().collect::<Vec<_>>()
        };
        assert_eq!(passed(None, None), all);
        assert_eq!(passed(Some(LogLevel::Error), None), all[..2]);
        assert_eq!(passed(None, Some("2026-11-16T00:00:00Z")), all[2..]);
        assert_eq!(passed(Some(LogLevel::Warn), None), all);
    }
}
