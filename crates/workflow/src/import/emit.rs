//! Nodes as YAML that reads back the same.

use crate::node::{Node, Value};

pub(super) fn emit(sections: &[(String, Vec<(String, Node)>)]) -> String {
    let mut text = String::new();
    for (section, keys) in sections {
        match keys.as_slice() {
            [(key, node)] if key.is_empty() => text.push_str(&line(section, node, 0)),
            keys => {
                text.push_str(&format!("{section}:\n"));
                keys.iter().for_each(|(key, node)| text.push_str(&line(key, node, 1)));
            }
        }
    }
    text
}

/// `key: value`, over several lines where a text has them.
fn line(key: &str, node: &Node, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    match &node.value {
        Value::Text(text) if is_block(text) => {
            let mut block =
                format!("{indent}{key}: |{}\n", if text.ends_with('\n') { "" } else { "-" });
            for inner in text.lines() {
                match inner {
                    "" => block.push('\n'),
                    inner => block.push_str(&format!("{indent}  {inner}\n")),
                }
            }
            block
        }
        _ => format!("{indent}{key}: {}\n", flow(node)),
    }
}

/// A text that YAML's block style keeps to the letter.
fn is_block(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let is_plain = |any: char| any == '\n' || any == '\t' || !any.is_control();
    text.contains('\n')
        && !text.ends_with("\n\n")
        && !first.is_empty()
        && !first.starts_with([' ', '\t'])
        && !text.lines().any(|line| line.trim_end() != line)
        && text.chars().all(is_plain)
}

/// JSON is YAML, also in what it quotes.
fn flow(node: &Node) -> String {
    match &node.value {
        Value::Decimal(text) => text.clone(),
        Value::List(items) => {
            format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::Map(entries) => {
            let pairs = entries.iter().map(|entry| {
                format!("{}: {}", serde_json::Value::from(entry.key.as_str()), flow(&entry.node))
            });
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Text(text) if is_bare(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Whole(_) | Value::Text(_) => node.json().to_string(),
    }
}

/// A word that needs no quotes, and reads back as a word.
fn is_bare(text: &str) -> bool {
    let is_word = text.chars().all(|any| any.is_ascii_alphanumeric() || "_-./".contains(any));
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
    let reads_back = crate::yaml::parse(text).is_ok_and(|node| node.text() == Some(text));
    is_word && starts_well && reads_back
}
