//! One event of the log as one line of JSON: `at`, `level`, `message`, and the event's own fields.

use std::fmt::{self, Debug};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::view;
use crate::world::clock;

/// In bytes: more of a field than this says nothing more.
const LONGEST_FIELD: usize = 16 << 10;

pub(super) struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        writeln!(writer, "{}", line(&view::rfc3339(clock::wall()), &level, fields))
    }
}

/// The line, with what every line has in front.
pub(super) fn line(at: &str, level: &str, fields: Fields) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let Fields { message, others } = fields;
    let head = format!(
        "{{\"at\":{},\"level\":{},\"message\":{}",
        quoted(at),
        quoted(level),
        quoted(&message.unwrap_or_default())
    );
    let rest = others.iter().map(|(name, value)| format!(",{}:{value}", quoted(name)));
    head + &rest.collect::<String>() + "}"
}

#[derive(Debug, Default)]
pub(super) struct Fields {
    message: Option<String>,
    others: Map<String, Value>,
}

impl Fields {
    pub(super) fn saying(message: String) -> Self {
        Self { message: Some(message), others: Map::new() }
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        let value = clipped(value.into());
        match (field.name(), value) {
            // What an event says comes first; a field of the same name is about what it says.
            ("message", Value::String(text)) if self.message.is_none() => self.message = Some(text),
            ("message", value) => drop(self.others.insert("detail".to_owned(), value)),
            (name @ ("at" | "level"), value) => drop(self.others.insert(format!("{name}_"), value)),
            (name, value) => drop(self.others.insert(name.to_owned(), value)),
        }
    }
}

fn clipped(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST_FIELD => {
            let cut = (0..=LONGEST_FIELD).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            format!("{}…", &text[..cut]).into()
        }
        other => other,
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_whatever_is_said() {
        let message = Some("two\nlines \"quoted\"".to_owned());
        let others =
            Map::from_iter([("run".to_owned(), "k3m".into()), ("open".to_owned(), 3.into())]);
        let line = line("2026-11-16T00:00:00.000Z", "info", Fields { message, others });
        assert_eq!(
            line,
            r#"{"at":"2026-11-16T00:00:00.000Z","level":"info","message":"two\nlines \"quoted\"","open":3,"run":"k3m"}"#
        );
        assert!(serde_json::from_str::<Value>(&line).is_ok());
    }

    #[test]
    fn a_field_too_long_is_cut_at_a_character() {
        let Value::String(cut) = clipped("ä".repeat(LONGEST_FIELD).into()) else { panic!("text") };
        assert!(cut.len() <= LONGEST_FIELD + 3 && cut.ends_with("ä…"));
    }
}
