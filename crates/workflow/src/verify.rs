//! A file's tree against the table of its keys: what is unknown, of the wrong type, or without effect.
//!
//! Reads no meaning into values; what passed here may still be refused by `settle`.

use crate::keys::{self, Effect, Key, Kind, join};
use crate::node::{Entry, Node, Value};
use crate::problem::{Code, Problem};
use crate::{times, values};

/// What was found: errors stop the loading, warnings are shown.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
}

/// What an unknown key is in a file of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// What is meant by it would not happen.
    Error,
    /// It may be another program's.
    Warning,
}

/// Says what an unknown key is, by its path and the known key that may have been meant.
pub(crate) type Judge = fn(root: &Node, path: &str, meant: Option<&str>) -> Unknown;

pub(crate) fn verify(file: &str, root: &Node, table: &'static [Key], judge: Judge) -> Findings {
    let mut walk = Walk { file, root, table, judge, found: Findings::default() };
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
    root: &'a Node,
    table: &'static [Key],
    judge: Judge,
    found: Findings,
}

impl Walk<'_> {
    /// `path` is the table's, with `[]`; `shown` is the reader's, with the item's number.
    fn section(&mut self, node: &Node, section: &str, shown: &str, told: Told) {
        let Value::Map(entries) = &node.value else {
            let hint = format!("with the keys {}", keys::names(self.table, section).join(", "));
            return self.wrong(node, shown, "must be a map", &hint);
        };
        for entry in entries {
            let path =
                keys::below_any(self.table, section).unwrap_or_else(|| join(section, &entry.key));
            let shown = join(shown, &entry.key);
            // `limits.max_turns: 3` in one word is no key, although it is written like the path of one.
            if keys::below_any(self.table, section).is_none() && entry.key.contains('.') {
                self.dotted(entry, &path, &shown);
                continue;
            }
            match keys::time(self.table, &path) {
                Some(key) => self.time(entry, entries, key, &shown),
                None => self.entry(&entry.node, &path, &shown, told),
            }
        }
    }

    /// A name with a dot. If it is the path of a key, that key would not hold.
    fn dotted(&mut self, entry: &Entry, path: &str, shown: &str) {
        let is_known = keys::time(self.table, path).is_some()
            || keys::lookup(self.table, path).is_some()
            || keys::is_section(self.table, path);
        if !is_known {
            return self.unknown(&entry.node, path, shown);
        }
        let problem =
            Problem::new(Code::UnknownKey, self.file, "unknown key, with a dot in its name");
        let (outer, inner) = entry.key.split_once('.').unwrap_or((&entry.key, ""));
        let hint = format!("write it below its section:\n{outer}:\n  {inner}: …");
        self.found.errors.push(problem.at(entry.node.line).key(shown).hint(hint));
    }

    /// A length of time under the name without `_ms`.
    fn time(&mut self, entry: &Entry, beside: &[Entry], key: &'static Key, shown: &str) {
        let node = &entry.node;
        if node.value == Value::Null {
            return;
        }
        if let Err((code, message)) = values::check_time(node, key.kind) {
            let problem = Problem::new(code, self.file, message).at(node.line).key(shown);
            self.found.errors.push(match node.whole().filter(|number| *number > 0) {
                Some(number) => problem.hint(format_args!("{number}s, {number}m or {number}h")),
                None => problem.hint(usual(key)),
            });
        }
        let in_ms = format!("{}_ms", entry.key);
        if let Some(other) = beside.iter().find(|other| other.key == in_ms) {
            let lines = (node.line.min(other.node.line), node.line.max(other.node.line));
            let message = format!("is given twice: also as {in_ms}, first on line {}", lines.0);
            let problem = Problem::new(Code::BadValue, self.file, message).at(lines.1).key(shown);
            self.found.errors.push(problem.hint(format_args!("keep {}", entry.key)));
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
            self.found
                .errors
                .push(problem.hint(with_unit(node, key).unwrap_or_else(|| usual(key))));
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
        let problem = Problem::new(Code::UnknownKey, self.file, "unknown key");
        let problem = problem.at(node.line).key(shown);
        let meant = keys::nearest(self.table, path);
        let problem = match &meant {
            Some(known) => problem.hint(format_args!("did you mean {known}?")),
            None => match keys::names(self.table, keys::parent(path)) {
                names if names.is_empty() || !path.contains('.') => problem,
                names => problem.hint(format_args!("known keys here: {}", names.join(", "))),
            },
        };
        match (self.judge)(self.root, path, meant.as_deref()) {
            Unknown::Error => self.found.errors.push(problem),
            Unknown::Warning => self.found.warnings.push(problem),
        }
    }

    fn wrong(&mut self, node: &Node, shown: &str, message: &str, hint: &str) {
        let message = format!("{message}, got {}", node.quoted());
        let problem = Problem::new(Code::WrongType, self.file, message).at(node.line).hint(hint);
        self.found.errors.push(if shown.is_empty() { problem } else { problem.key(shown) });
    }
}

/// For a length of time with its unit under a name in milliseconds: the other name.
fn with_unit(node: &Node, key: &Key) -> Option<String> {
    let text = node.text().filter(|_| values::time(node).is_some() && key.is_time())?;
    let name = key.path.rsplit('.').next()?.strip_suffix("_ms")?;
    Some(format!("{name}: {text}"))
}

/// What a value of this key is and what it is by default, for people.
fn usual(key: &Key) -> String {
    let default = if key.is_time() { times::in_words(key.default) } else { key.default.to_owned() };
    match (key.kind, default.as_str()) {
        (Kind::Word(words), _) => format!("one of {}", words.join(", ")),
        (_, "") => key.about.to_owned(),
        (_, default) => format!("{}; the default is {default}", key.about),
    }
}
