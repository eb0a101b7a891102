//! YAML into a tree of nodes.
//!
//! Knows the core schema's scalars and nothing of what they mean. Refuses what can surprise: a key given
//! twice, a second document, and more nodes or depth than any loop file has.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use crate::node::{Entry, Node, Value};

/// What aliases make counts as if it were written out.
const MOST_NODES: usize = 20_000;
const DEEPEST: usize = 64;

#[derive(Debug)]
pub(crate) struct Unreadable {
    /// Counted from 1 in the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Unreadable {
    fn at(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

/// The one document of a text; nothing at all is null.
pub(crate) fn parse(text: &str) -> Result<Node, Unreadable> {
    parse_below(0, text)
}

/// The same for a text that stands below so many other lines of its file, which count.
pub(crate) fn parse_below(above: usize, text: &str) -> Result<Node, Unreadable> {
    let parser = Parser::new_from_str(text);
    let mut reader = Reader { parser, above, anchors: HashMap::new(), made: 0 };
    let mut document = None;
    loop {
        let (event, line) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd => {}
            _ if document.is_some() => {
                return Err(Unreadable::at(line, "there is a second document"));
            }
            event => document = Some(reader.node(event, line, 0)?),
        }
    }
    Ok(document.unwrap_or(Node { line: above + 1, value: Value::Null }))
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    /// The lines of the file above the text.
    above: usize,
    anchors: HashMap<usize, Node>,
    made: usize,
}

impl<'a> Reader<'a> {
    /// The next event and the line that it starts on.
    fn next(&mut self) -> Result<(Event<'a>, usize), Unreadable> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, self.above + span.start.line())),
            Some(Err(error)) => {
                Err(Unreadable::at(self.above + error.marker().line(), error.info()))
            }
            None => Err(Unreadable::at(self.above + 1, "it ends too early")),
        }
    }

    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Node, Unreadable> {
        if depth > DEEPEST {
            return Err(Unreadable::at(line, format!("nested deeper than {DEEPEST} levels")));
        }
        self.count(1, line)?;
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(&text, style, tag.as_deref()), anchor)
            }
            Event::SequenceStart(anchor, _) => (Value::List(self.list(depth)?), anchor),
            Event::MappingStart(anchor, _) => (Value::Map(self.map(depth)?), anchor),
            Event::Alias(anchor) => (self.alias(anchor, line)?, 0),
            _ => return Err(Unreadable::at(line, "a value is missing")),
        };
        let node = Node { line, value };
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn count(&mut self, more: usize, line: usize) -> Result<(), Unreadable> {
        self.made = self.made.saturating_add(more);
        if self.made > MOST_NODES {
            return Err(Unreadable::at(line, format!("more than {MOST_NODES} values")));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, line: usize) -> Result<Value, Unreadable> {
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            return Err(Unreadable::at(line, "an alias refers to what contains it"));
        };
        self.count(size(&node), line)?;
        Ok(node.value)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Unreadable> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(items),
                (event, line) => items.push(self.node(event, line, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<Entry>, Unreadable> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (key, line) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(entries),
                (Event::Scalar(text, ..), line) => (text.into_owned(), line),
                (_, line) => return Err(Unreadable::at(line, "a key must be a word")),
            };
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                let message = format!("{key:?} is given twice, first on line {}", first.node.line);
                return Err(Unreadable::at(line, message));
            }
            let (event, below) = self.next()?;
            let node = self.node(event, below, depth + 1)?;
            entries.push(Entry { key, node: Node { line, ..node } });
        }
    }
}

fn size(node: &Node) -> usize {
    let below: usize = node.items().iter().map(size).sum();
    let entries: usize = node.entries().iter().map(|entry| size(&entry.node)).sum();
    1 + below + entries
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema() && tag.suffix == "str");
    if style != ScalarStyle::Plain || is_text {
        return Value::Text(text.to_owned());
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::Text(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(Value::Whole);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().map(Value::Whole);
    }
    if let Ok(whole) = text.parse::<i64>() {
        return Some(Value::Whole(whole));
    }
    let looks_it = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        && text.contains(|any: char| any.is_ascii_digit());
    let is_decimal = looks_it && text.parse::<f64>().is_ok();
    is_decimal.then(|| Value::Decimal(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_key_given_twice_is_that_of_the_file() {
        let found = parse_below(1, "agent: {}\nlimits: {}\nagent: {}\n").unwrap_err();
        assert_eq!(
            (found.line, found.message.as_str()),
            (4, "\"agent\" is given twice, first on line 2")
        );
    }

    fn refused(text: &str) -> (usize, String) {
        let found = parse(text).unwrap_err();
        (found.line, found.message)
    }

    #[test]
    fn every_part_has_the_line_of_its_key() {
        let node = parse("a: 1\nb:\n  c: |\n    x\n    y\n  d: [1, 'two']\n").unwrap();
        let line = |path| node.get(path).unwrap().line;
        assert_eq!((line("a"), line("b"), line("b.c"), line("b.d")), (1, 2, 3, 6));
        assert_eq!(node.get("b.c").unwrap().text(), Some("x\ny\n"));
        assert_eq!(node.get("b.d").unwrap().texts(), ["two"]);
    }

    #[test]
    fn only_plain_words_become_numbers_and_flags() {
        let node =
            parse("a: '5'\nb: 5\nc: 0.10\nd: yes\ne: true\nf: 0x10\ng: ~\nh: .5.1\n").unwrap();
        let value = |path| node.get(path).map(|node| node.value.clone());
        assert_eq!(value("a"), Some(Value::Text("5".to_owned())));
        assert_eq!(value("b"), Some(Value::Whole(5)));
        assert_eq!(value("c"), Some(Value::Decimal("0.10".to_owned())));
        assert_eq!(value("d"), Some(Value::Text("yes".to_owned())));
        assert_eq!(value("e"), Some(Value::Bool(true)));
        assert_eq!(value("f"), Some(Value::Whole(16)));
        assert_eq!(value("g"), None);
        assert_eq!(value("h"), Some(Value::Text(".5.1".to_owned())));
    }

    #[test]
    fn a_key_given_twice_is_refused() {
        assert_eq!(
            refused("a: 1\nb: 2\na: 3\n"),
            (3, "\"a\" is given twice, first on line 1".to_owned())
        );
    }

    #[test]
    fn aliases_count_as_if_written_out() {
        let node = parse("a: &x [1]\nb: *x\n").unwrap();
        assert_eq!(node.get("b").unwrap().items()[0].whole(), Some(1));
        let mut bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
        for n in 1..10 {
            let again = vec![format!("*a{}", n - 1); 10].join(", ");
            bomb.push_str(&format!("a{n}: &a{n} [{again}]\n"));
        }
        assert!(refused(&bomb).1.contains("more than 20000 values"));
    }

    #[test]
    fn depth_and_a_second_document_are_refused() {
        assert!(refused(&"[".repeat(200)).1.contains("deeper than 64"));
        assert!(refused("a: 1\n...\n---\nb: 1\n").1.contains("second document"));
    }
}
