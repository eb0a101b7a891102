//! TOML into a tree of nodes.
//!
//! Knows nothing of what they mean.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::lines::Lines;
use crate::node::{Entry, Node, Value};
use crate::yaml::Unreadable;

pub(crate) fn parse(text: &str) -> Result<Node, Unreadable> {
    let reader = Reader { lines: Lines::of(text) };
    let table = DeTable::parse(text).map_err(|error| Unreadable {
        line: error.span().map_or(1, |span| reader.lines.at(span.start)),
        message: error.message().lines().collect::<Vec<_>>().join(", "),
    })?;
    Ok(Node { line: 1, value: reader.map(table.get_ref()) })
}

struct Reader {
    lines: Lines,
}

impl Reader {
    fn map(&self, table: &DeTable<'_>) -> Value {
        let mut entries: Vec<Entry> = table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                node: Node { line: self.lines.at(key.span().start), value: self.value(value) },
            })
            .collect();
        entries.sort_by_key(|entry| entry.node.line);
        Value::Map(entries)
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Value {
        match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(whole) => Value::Whole(whole),
                    Err(_) => Value::Decimal(number.to_string()),
                }
            }
            DeValue::Float(number) => Value::Decimal(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(time) => Value::Text(time.to_string()),
            DeValue::Array(items) => {
                Value::List(items.iter().map(|item| self.item(item)).collect())
            }
            DeValue::Table(table) => self.map(table),
        }
    }

    fn item(&self, item: &Spanned<DeValue<'_>>) -> Node {
        Node { line: self.lines.at(item.span().start), value: self.value(item) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_line() {
        let node = parse(
            "[ceilings]\nmax_turns = 1_000\nmax_cost_usd = 2.50\n\n[sinks.a]\nkind = \"x\"\n",
        )
        .unwrap();
        assert_eq!(node.get("ceilings.max_turns").unwrap().whole(), Some(1000));
        assert_eq!(
            node.get("ceilings.max_cost_usd").unwrap().value,
            Value::Decimal("2.50".to_owned())
        );
        assert_eq!(node.get("sinks.a").unwrap().line, 5);
        assert_eq!(node.get("sinks.a.kind").unwrap().line, 6);
    }

    #[test]
    fn what_is_not_toml_says_where() {
        assert_eq!(parse("a = 1\nb = \n").unwrap_err().line, 2);
    }
}
