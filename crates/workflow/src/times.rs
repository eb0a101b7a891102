//! Lengths of time as people write them: `stall_window: 10m` beside `stall_window_ms: 600000`.
//!
//! Every key in milliseconds has a second name without `_ms`, which takes a length of time with its unit. What is
//! read of a file knows the names in milliseconds alone: [`in_ms`] rewrites the tree before.

use outlast_engine::duration;

use crate::keys::{self, Key, join};
use crate::node::{Entry, Node, Value};
use crate::problem::Problem;
use crate::values;

/// The same tree with every length of time under its name in milliseconds. One that is wrong, which was told
/// before, is left out.
pub(crate) fn in_ms(root: &Node, table: &[Key]) -> Node {
    below(root, table, "")
}

fn below(node: &Node, table: &[Key], path: &str) -> Node {
    let value = match &node.value {
        Value::Map(entries) => {
            let above = keys::below_any(table, path);
            let rewritten = |entry: &Entry| {
                let path = above.clone().unwrap_or_else(|| join(path, &entry.key));
                if keys::time(table, &path).is_none() {
                    return Some(Entry {
                        key: entry.key.clone(),
                        node: below(&entry.node, table, &path),
                    });
                }
                let ms = i64::try_from(values::time(&entry.node)?).ok()?;
                let node = Node { line: entry.node.line, value: Value::Whole(ms) };
                Some(Entry { key: format!("{}_ms", entry.key), node })
            };
            Value::Map(entries.iter().filter_map(rewritten).collect())
        }
        Value::List(items) => {
            let path = format!("{path}[]");
            Value::List(items.iter().map(|item| below(item, table, &path)).collect())
        }
        other => other.clone(),
    };
    Node { line: node.line, value }
}

/// A problem with a key in milliseconds that the file gives under the other name, told with that name.
pub(crate) fn as_written(problem: Problem, written: &Node) -> Problem {
    let Some(key) = problem.key.as_deref() else { return problem };
    match key.strip_suffix("_ms") {
        Some(name) if written.get(key).is_none() && written.get(name).is_some() => {
            Problem { key: Some(name.to_owned()), ..problem }
        }
        _ => problem,
    }
}

/// A number of milliseconds for people; 0 is `off`.
pub(crate) fn shown(ms: u64) -> String {
    if ms == 0 { "off".to_owned() } else { duration::in_one_unit(ms) }
}

/// Words that have numbers of milliseconds in them, for people: `off for exec, 1800000 for file`.
pub(crate) fn in_words(words: &str) -> String {
    let part = |word: &str| {
        let digits = word.trim_end_matches([',', ';']);
        match digits.parse::<u64>() {
            Ok(ms) => format!("{}{}", shown(ms), &word[digits.len()..]),
            Err(_) => word.to_owned(),
        }
    };
    words.split(' ').map(part).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{CONFIG, WORKFLOW};
    use crate::{tables, yaml};

    #[test]
    fn a_length_of_time_becomes_milliseconds_wherever_it_stands() {
        let text = "limits: { stall_window: 10m, run_timeout: off, turn_timeout_ms: 5 }\n\
                    tools: [{ name: a, timeout: 2s }]\nhooks: { timeout: soon }\nother: { timeout: 1m }\n";
        let found = in_ms(&yaml::parse(text).unwrap(), WORKFLOW);
        let whole = |path: &str| found.get(path).and_then(Node::whole);
        assert_eq!(whole("limits.stall_window_ms"), Some(600_000));
        assert_eq!(whole("limits.run_timeout_ms"), Some(0));
        assert_eq!(whole("limits.turn_timeout_ms"), Some(5));
        assert_eq!(
            found.get("tools").unwrap().items()[0].get("timeout_ms").unwrap().whole(),
            Some(2000)
        );
        assert!(found.get("hooks.timeout_ms").is_none() && found.get("other.timeout").is_some());
        let text = "[sinks.phone]\ntimeout = \"20s\"\n[ceilings]\nrun_timeout = \"12h\"\n";
        let found = in_ms(&tables::parse(text).unwrap(), CONFIG);
        assert_eq!(found.get("sinks.phone.timeout_ms").unwrap().whole(), Some(20_000));
        assert_eq!(found.get("ceilings.run_timeout_ms").unwrap().whole(), Some(43_200_000));
    }

    #[test]
    fn defaults_are_told_in_the_unit_that_people_use() {
        assert_eq!(
            in_words("off for exec, 1800000 for file, else 300000"),
            "off for exec, 30m for file, else 5m"
        );
        assert_eq!((in_words("7200000"), shown(0)), ("2h".to_owned(), "off".to_owned()));
    }
}
