//! `ps --format`: columns by name, or a template for each run.
//!
//! `id,state,command` is a table of these columns; `{{.id}} {{.name}}` is filled for each run, with the keys of a row of
//! `ps --json` and the columns of the table. `\\t` and `\\n` are what they are in a shell's `printf`.

use jiff::Timestamp;
use outlast_client::problem::Problem;
use outlast_client::session::unreadable;
use serde_json::{Map, Value};

use super::{Listed, empty_table};
use crate::output::printable;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    /// Titles of columns, in this order.
    Columns(Vec<&'static str>),
    Template(Template),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Key(String),
}

/// Keys that no row of JSON has; they are what the table shows.
const SHOWN: [&str; 6] = ["status", "changed", "age", "runtime", "spend", "command"];

impl Format {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        if text == "json" {
            return Ok(Self::Json);
        }
        if text.contains("{{") {
            return template(text).map(Self::Template);
        }
        let names = text.split(',').map(str::trim);
        names.map(column).collect::<Result<Vec<_>, _>>().map(Self::Columns)
    }
}

fn column(name: &str) -> Result<&'static str, Problem> {
    let titles = empty_table().titles();
    let found = titles.iter().find(|title| title.eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| {
        let known: Vec<String> = titles.iter().map(|title| title.to_lowercase()).collect();
        let known = known.join(", ");
        let message = format!("--format: there is no column {name:?}; the columns are {known}");
        Problem::refusal("usage", message).hint("outlast ps --format id,name,state")
    })
}

fn template(text: &str) -> Result<Template, Problem> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        parts.push(Part::Text(unescaped(before)));
        let Some((key, after)) = after.split_once("}}") else {
            return Err(Problem::refusal("usage", "--format: {{ without }}"));
        };
        // As docker writes it, with a dot.
        let key = key.trim().trim_start_matches('.').to_lowercase();
        parts.push(Part::Key(key));
        rest = after;
    }
    parts.push(Part::Text(unescaped(rest)));
    Ok(Template(parts))
}

fn unescaped(text: &str) -> String {
    text.replace("\\t", "\t").replace("\\n", "\n")
}

impl Template {
    pub(super) fn fill(
        &self,
        json: &[u8],
        row: &Listed<'_>,
        now: Timestamp,
    ) -> Result<String, Problem> {
        let fields: Map<String, Value> =
            serde_json::from_slice(json).map_err(|error| unreadable(&error))?;
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(given) => text.push_str(given),
                // Agents write some of these: a terminal must not obey them, and a run stays on its line.
                Part::Key(key) => text.push_str(&printable(&value(key, &fields, row, now)?)),
            }
        }
        Ok(text)
    }
}

fn value(
    key: &str,
    fields: &Map<String, Value>,
    row: &Listed<'_>,
    now: Timestamp,
) -> Result<String, Problem> {
    if let Some(value) = fields.get(key) {
        return Ok(match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
    }
    Ok(match key {
        "status" => row.state_words(now),
        "changed" => row.changed(now),
        "age" => row.age(now),
        "runtime" => row.runtime(now),
        "spend" => row.spend_words(),
        "command" => row.what.clone().into_owned(),
        // Keys that a row has only when there is something to say.
        "phase" | "last_line" | "max_turns" | "cost_usd" | "tokens" | "trigger" | "agent"
        | "parent" | "question" | "summary" | "asks_seq" | "health_since" | "health_why" => {
            String::new()
        }
        unknown => {
            let mut known: Vec<&str> = fields.keys().map(String::as_str).chain(SHOWN).collect();
            known.sort_unstable();
            let known = known.join(", ");
            let message = format!("--format: unknown key {unknown:?}; the keys are {known}");
            let hint = "outlast ps --format '{{.id}} {{.status}}'";
            return Err(Problem::refusal("usage", message).hint(hint));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"id":"k3mx7q9w2r5t","name":null,"state":"failed","reason_code":"exit_code","health":"healthy","what":"sleep 100","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":"2026-11-15T11:55:03.5Z","exit":{"code":7},"labels":{},"survivors":0,"trouble":null}"#;

    fn filled(format: &str) -> Result<String, Problem> {
        let Format::Template(template) = Format::parse(format)? else { panic!("a template") };
        let row = serde_json::from_str(ROW).expect("a row");
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        template.fill(ROW.as_bytes(), &row, now)
    }

    #[test]
    fn a_template_is_filled_as_docker_would() {
        assert_eq!(
            filled(r"{{.ID}}\t{{ .Status }}\t{{name}}{{.command}}, {{.Changed}}").expect("text"),
            "k3mx7q9w2r5t\tfailed (exit 7)\tsleep 100, 4m ago"
        );
        assert_eq!(filled("{{.exit}} {{.state}}").expect("text"), r#"{"code":7} failed"#);
        assert_eq!(filled("{{.state").map_err(|it| it.exit()), Err(2));
        assert_eq!(filled("{{.size}}").map_err(|it| it.exit()), Err(2));
    }

    #[test]
    fn what_an_agent_wrote_is_not_obeyed_by_the_terminal() {
        let Ok(Format::Template(template)) = Format::parse("{{.task}}|{{.question}}") else {
            panic!("a template")
        };
        let odd =
            r#""task":"a\u001b[31m\u0000b\u202ec","question":"\u001b]0;x\u0007 one\ntwo","id""#;
        let json = ROW.replacen(r#""id""#, odd, 1);
        let row = serde_json::from_str(ROW).expect("a row");
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        assert_eq!(
            template.fill(json.as_bytes(), &row, now).expect("text"),
            "a·[31m·b·c|·]0;x· one·two"
        );
    }

    #[test]
    fn columns_are_named_as_in_the_table() {
        assert_eq!(
            Format::parse("id, State,command").expect("columns"),
            Format::Columns(vec!["ID", "STATE", "COMMAND"])
        );
        assert_eq!(Format::parse("json").expect("a format"), Format::Json);
        assert!(Format::parse("id,size").is_err());
    }
}
