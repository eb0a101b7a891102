//! Files written for others, rewritten as loop files of ours.
//!
//! Writes nothing to disk, and drops nothing in silence: what has no place with us is listed.

mod ace;
mod emit;
mod symphony;

use crate::node::{Node, Value};
use crate::problem::{Code, Problem};
use crate::settle::front_matter;
use crate::source::{self, Document, Source};

pub use ace::ace;
pub use symphony::symphony;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// A whole loop file.
    pub text: String,
    pub unmapped: Vec<Unmapped>,
}

/// Something that was in the file and is not in the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmapped {
    pub key: String,
    pub line: usize,
    pub why: String,
}

fn read<'a>(source: &Source<'a>) -> Result<(Node, Document<'a>), Vec<Problem>> {
    let document = source::split(source).map_err(|problem| vec![problem])?;
    let front = front_matter(&source.file(), &document).map_err(|problem| vec![problem])?;
    Ok((front, document))
}

/// Every leaf of a tree with its dotted path, in the file's order.
fn leaves(node: &Node, path: &str) -> Vec<(String, Node)> {
    match &node.value {
        Value::Null => Vec::new(),
        Value::Map(entries) if !entries.is_empty() => entries
            .iter()
            .flat_map(|entry| {
                let below = if path.is_empty() {
                    entry.key.clone()
                } else {
                    format!("{path}.{}", entry.key)
                };
                leaves(&entry.node, &below)
            })
            .collect(),
        _ => vec![(path.to_owned(), node.clone())],
    }
}

fn unmapped(key: &str, line: usize, why: &str) -> Unmapped {
    Unmapped { key: key.to_owned(), line, why: why.to_owned() }
}

/// Front matter and the prompt to the letter; a prompt that we could not render is told of.
fn assemble(front: &Front, document: &Document<'_>, mut missing: Vec<Unmapped>) -> Imported {
    for problem in crate::template::problems(document.prompt) {
        let line =
            problem.line.map_or(document.prompt_line, |line| line + document.prompt_line - 1);
        let why = format!("the prompt has to be changed by hand: {}", problem.message);
        missing.push(Unmapped { key: "prompt".to_owned(), line, why });
    }
    missing.sort_by_key(|unmapped| unmapped.line);
    let text = format!("---\n{}---\n\n{}\n", emit::emit(&front.0), document.prompt);
    Imported { text, unmapped: missing }
}

/// The new front matter while it grows: sections of keys.
#[derive(Default)]
struct Front(Vec<(String, Vec<(String, Node)>)>);

impl Front {
    fn put(&mut self, path: &str, node: Node) {
        let (section, key) = path.split_once('.').unwrap_or((path, ""));
        let entry = (key.to_owned(), node);
        match self.0.iter_mut().find(|(name, _)| name == section) {
            Some((_, keys)) => keys.push(entry),
            None => self.0.push((section.to_owned(), vec![entry])),
        }
    }
}

fn refused(source: &Source<'_>, line: usize, key: &str, message: &str, hint: &str) -> Vec<Problem> {
    vec![Problem::new(Code::BadValue, source.file(), message).at(line).key(key).hint(hint)]
}
