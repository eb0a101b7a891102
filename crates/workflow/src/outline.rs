//! The config with nothing in it that a person has chosen: for readers of a bundle, who must not see that.
//!
//! Keeps our own keys, numbers, flags and the words of closed lists. Any other text, and any name that the
//! operator made up, is left out; nothing is recognised as a secret, because nothing has to be.

use serde_json::{Map, Value, json};

use crate::keys::{CONFIG, Kind, lookup, names};
use crate::node::{self, Node};
use crate::tables;

/// What stands for a text that is left out.
const LEFT_OUT: &str = "[left out]";

/// The shape of a `config.toml`; `None` if it is no TOML, of which nothing can be said.
pub fn config_outline(text: &str) -> Option<Value> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = tables::parse(text).ok()?;
    Some(section(&root, ""))
}

fn section(node: &Node, path: &str) -> Value {
    let known = names(CONFIG, path);
    let mut kept = Map::new();
    let mut made_up = 0;
    for entry in node.entries() {
        let below =
            if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        let is_ours = known.contains(&entry.key.as_str());
        let name = if is_ours {
            entry.key.clone()
        } else {
            made_up += 1;
            format!("(name {made_up})")
        };
        kept.insert(name, value(&entry.node, &below, is_ours));
    }
    kept.into()
}

fn value(node: &Node, path: &str, is_ours: bool) -> Value {
    let kind = lookup(CONFIG, path).map(|key| key.kind);
    match &node.value {
        node::Value::Map(_) if is_ours && kind.is_none() => section(node, path),
        node::Value::Map(entries) => json!(format!("[{} entries left out]", entries.len())),
        node::Value::List(items) => json!(format!("[{} items left out]", items.len())),
        node::Value::Text(text) if is_word(kind, text) => json!(text),
        node::Value::Text(_) => json!(LEFT_OUT),
        node::Value::Null | node::Value::Bool(_) => node.json(),
        // A number under a name of ours is a setting; elsewhere it may be anything.
        node::Value::Whole(_) | node::Value::Decimal(_) if kind.is_some() => node.json(),
        node::Value::Whole(_) | node::Value::Decimal(_) => json!(LEFT_OUT),
    }
}

/// True for a word of a closed list, and for a span of time.
fn is_word(kind: Option<Kind>, text: &str) -> bool {
    match kind {
        Some(Kind::Word(words)) => words.contains(&text),
        Some(Kind::Span) => text.len() <= 8 && text.chars().all(|c| c.is_ascii_alphanumeric()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_is_left() {
        let text = "[ceilings]\nmax_turns = 5\n[listen]\ntoken = \"S\"\naddress = \"h:1\"\nallow_remote = true\n\
                    [log]\nlevel = \"debug\"\n[ping]\nevery = \"5m\"\nurl = \"http://u:S@h/\"\n\
                    [sinks.S]\nsecret = \"S\"\n[secrets]\nS = \"S\"\n[concurrency.per_label]\n\"team=S\" = 3\n\
                    [env]\nallow = [\"S\"]\n[S]\nS = 4711\n";
        let outline = config_outline(text).expect("it is TOML");
        let expected = json!({
            "ceilings": {"max_turns": 5},
            "listen": {"token": "[left out]", "address": "[left out]", "allow_remote": true},
            "log": {"level": "debug"},
            "ping": {"every": "5m", "url": "[left out]"},
            "sinks": {"(name 1)": "[1 entries left out]"},
            "secrets": {"(name 1)": "[left out]"},
            "concurrency": {"per_label": {"(name 1)": 3}},
            "env": {"allow": "[1 items left out]"},
            "(name 1)": "[1 entries left out]",
        });
        assert_eq!(outline, expected);
        assert!(!outline.to_string().contains('S'), "{outline}");
        assert_eq!(config_outline("[x"), None);
    }
}
