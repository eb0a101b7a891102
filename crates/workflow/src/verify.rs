//! A file's tree against the table of its keys: what is unknown, of the wrong type, or without effect.
//!
//! Reads no meaning into values; what passed here may still be refused by `settle`.

use crate::keys::{self, Effect, Key, Kind};
use crate::node::{Node, Value};
use crate::problem::{Code, Problem};
use crate::values;

/// What was found: errors stop the loading, warnings are shown.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

pub(crate) fn verify(file: &str, root: &Node, table: &'static [Key]) -> Findings {
    let mut walk = Walk { file, table, found: Findings::default() };
    walk.section(root, "", "", Told::No);
    walk.found
}

/// Whether the reader already knows that this part has no effect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Yes,
    No,
}

struct Walk<'a> {
    file: &'a str,
    table: &'static [Key],
    found: Findings,
}

impl Walk<'_> {
    /// `path` is the table's, with `[]`; `shown` is the reader's, with the item's number.
    fn section(&mut self, node: &Node, path: &str, shown: &str, told: Told) {
        let Value::Map(entries) = &node.value else {
            let hint = format!("with the keys {}", keys::names(self.table, path).join(", "));
            return self.wrong(node, shown, "must be a map", &hint);
        };
        for entry in entries {
            let path = keys::below_any(self.table, path).unwrap_or_else(|| join(path, &entry.key));
            self.entry(&entry.node, &path, &join(shown, &entry.key), told);
        }
    }

    fn entry(&mut self, node: &Node, path: &str, shown: &str, told: Told) {
        if let Some(key) = keys::lookup(self.table, path) {
            return match (key.kind, &node.value) {
                (Kind::WordOrMap(_), Value::Map(_)) => self.section(node, path, shown, told),
                _ => self.leaf(node, key, shown, told),
            };
        }
        if !keys::is_section(self.table, path) {
            return self.unknown(node, path, shown);
        }
        if node.value == Value::Null {
            return;
        }
        let told =
            if told == Told::No && self.is_idle(path) { self.idle(node, shown) } else { told };
        let items = format!("{path}[]");
        if keys::is_section(self.table, &items) {
            self.list(node, &items, shown, told);
        } else {
            self.section(node, path, shown, told);
        }
    }

    fn list(&mut self, node: &Node, path: &str, shown: &str, told: Told) {
        let Value::List(items) = &node.value else {
            let hint =
                format!("each item has the keys {}", keys::names(self.table, path).join(", "));
            return self.wrong(node, shown, "must be a list", &hint);
        };
        for (n, item) in items.iter().enumerate() {
            self.section(item, path, &format!("{shown}[{n}]"), told);
        }
    }

    fn leaf(&mut self, node: &Node, key: &Key, shown: &str, told: Told) {
        if node.value == Value::Null {
            return;
        }
        if let Err((code, message)) = values::check(node, key.kind) {
            let problem = Problem::new(code, self.file, message).at(node.line).key(shown);
            self.found.errors.push(with_usual(problem, key));
        } else if key.effect == Effect::None && told == Told::No {
            self.idle(node, shown);
        }
    }

    fn is_idle(&self, path: &str) -> bool {
        keys::below(self.table, path).all(|key| key.effect == Effect::None)
    }

    fn idle(&mut self, node: &Node, shown: &str) -> Told {
        let note =
            Problem::new(Code::NoEffect, self.file, "is known and has no effect in this version");
        self.found.warnings.push(note.at(node.line).key(shown));
        Told::Yes
    }

    fn unknown(&mut self, node: &Node, path: &str, shown: &str) {
        let problem = Problem::new(Code::UnknownKey, self.file, "is not a key that is known here");
        let problem = problem.at(node.line).key(shown);
        self.found.warnings.push(match keys::nearest(self.table, path) {
            Some(known) => problem.hint(format_args!("did you mean {known}?")),
            None => problem,
        });
    }

    fn wrong(&mut self, node: &Node, shown: &str, message: &str, hint: &str) {
        let message = format!("{message}, got {}", node.quoted());
        let problem = Problem::new(Code::WrongType, self.file, message).at(node.line).hint(hint);
        self.found.errors.push(if shown.is_empty() { problem } else { problem.key(shown) });
    }
}

fn with_usual(problem: Problem, key: &Key) -> Problem {
    let usual = match (key.kind, key.default) {
        (Kind::Word(words), _) => format!("one of {}", words.join(", ")),
        (_, "") => return problem.hint(key.about),
        (_, default) => format!("{}; the default is {default}", key.about),
    };
    problem.hint(usual)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
