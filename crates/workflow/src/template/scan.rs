//! A template into its pieces, with every block closed by its own end.
//!
//! Looks no further into a piece than its first word.

use std::ops::Range;

use super::tags::MARK;
use crate::lines::Lines;
use crate::problem::{Code, Problem};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    pub(super) line: usize,
    pub(super) kind: Kind<'t>,
    /// In the template, with its braces.
    pub(super) place: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'t> {
    /// `{{ … }}`
    Output(&'t str),
    /// `{% name … %}`
    Tag { name: &'t str, rest: &'t str },
}

const BLOCKS: [&str; 9] =
    ["if", "unless", "case", "for", "tablerow", "capture", "ifchanged", "comment", "raw"];
const DEEPEST: usize = 32;

/// The pieces that mean something: neither text, nor what comments and raw blocks contain.
pub(super) fn scan(text: &str) -> Result<Vec<Piece<'_>>, Problem> {
    let lines = Lines::of(text);
    let mut pieces = Vec::new();
    let mut open: Vec<(&str, usize)> = Vec::new();
    let mut at = 0;
    while let Some(piece) = next(text, at, &lines)? {
        at = piece.place.end;
        if let Kind::Tag { name, .. } = piece.kind {
            balance(&mut open, name, piece.line)?;
            if name == "comment" || name == "raw" {
                let end = verbatim_end(text, at, name, &lines)?;
                at = end.place.end;
                open.pop();
                pieces.extend([piece, end]);
                continue;
            }
        }
        pieces.push(piece);
    }
    match open.pop() {
        Some((name, line)) => Err(unclosed(name, line)),
        None => Ok(pieces),
    }
}

/// The same text for Liquid: nothing inside its comments, and a mark with its line before every piece that
/// evaluates something, and in every round of a loop. Lines keep their numbers, and white space its place.
pub(super) fn marked(text: &str, pieces: &[Piece<'_>]) -> String {
    let mut kept = String::with_capacity(text.len() * 2);
    let mut at = 0;
    for (n, piece) in pieces.iter().enumerate() {
        let place = &piece.place;
        kept.push_str(&text[at..place.start]);
        at = place.end;
        let own = &text[place.clone()];
        if piece.evaluates() {
            let hyphen = if own[2..].starts_with('-') { "-" } else { "" };
            kept.push_str(&format!("{{%{hyphen} {MARK} {} %}}", piece.line));
        }
        kept.push_str(own);
        match piece.kind {
            Kind::Tag { name: "for" | "tablerow", .. } => {
                let hyphen = if own.ends_with("-%}") { "-" } else { "" };
                kept.push_str(&format!("{{% {MARK} {} {hyphen}%}}", piece.line));
            }
            Kind::Tag { name: "comment", .. } => {
                let end = pieces.get(n + 1).map_or(at, |end| end.place.start);
                kept.extend(text[at..end].chars().filter(|any| *any == '\n'));
                at = end;
            }
            Kind::Tag { .. } | Kind::Output(_) => {}
        }
    }
    kept.push_str(&text[at..]);
    kept
}

impl Piece<'_> {
    /// True for what Liquid works out when it comes to it. A part of a block has nothing of its own, and may have
    /// nothing before it.
    fn evaluates(&self) -> bool {
        match self.kind {
            Kind::Output(_) => true,
            Kind::Tag { name, .. } => matches!(
                name,
                "assign"
                    | "capture"
                    | "case"
                    | "cycle"
                    | "decrement"
                    | "for"
                    | "if"
                    | "ifchanged"
                    | "increment"
                    | "tablerow"
                    | "unless"
            ),
        }
    }
}

fn unclosed(name: &str, line: usize) -> Problem {
    parse_error(line, format!("{{% {name} %}} is never closed"))
        .hint(format_args!("close it with {{% end{name} %}}"))
}

pub(super) fn parse_error(line: usize, message: impl std::fmt::Display) -> Problem {
    Problem::new(Code::TemplateParseError, "prompt", message).at(line)
}

fn balance<'t>(
    open: &mut Vec<(&'t str, usize)>,
    name: &'t str,
    line: usize,
) -> Result<(), Problem> {
    if BLOCKS.contains(&name) {
        open.push((name, line));
        if open.len() > DEEPEST {
            return Err(parse_error(
                line,
                format_args!("blocks are nested deeper than {DEEPEST} levels"),
            ));
        }
        return Ok(());
    }
    let Some(closed) = name.strip_prefix("end") else { return belongs(open, name, line) };
    match open.pop() {
        Some((inner, _)) if inner == closed => Ok(()),
        Some((inner, since)) => Err(parse_error(
            line,
            format_args!("{name} comes while {inner} of line {since} is open"),
        )),
        None => Err(parse_error(line, format_args!("{name} closes nothing"))),
    }
}

/// Parts of a block stand right in it.
fn belongs(open: &[(&str, usize)], name: &str, line: usize) -> Result<(), Problem> {
    let allowed: &[&str] = match name {
        "else" => &["if", "unless", "case", "for"],
        "elsif" => &["if", "unless"],
        "when" => &["case"],
        "break" | "continue" => {
            return match open.iter().any(|(block, _)| *block == "for" || *block == "tablerow") {
                true => Ok(()),
                false => Err(parse_error(line, format_args!("{name} stands in no loop"))),
            };
        }
        _ => return Ok(()),
    };
    match open.last() {
        Some((block, _)) if allowed.contains(block) => Ok(()),
        _ => Err(parse_error(
            line,
            format_args!("{name} has no {} to belong to", allowed.join(" or ")),
        )),
    }
}

/// Where a block ends whose content is not read.
fn verbatim_end<'t>(
    text: &'t str,
    from: usize,
    name: &str,
    lines: &Lines,
) -> Result<Piece<'t>, Problem> {
    let wanted = format!("end{name}");
    let mut at = from;
    while let Some(found) = text[at..].find("{%") {
        let start = at + found;
        let inner = &text[start + 2..];
        let word = inner.strip_prefix('-').unwrap_or(inner).trim_start();
        if let Some(after) = word.strip_prefix(wanted.as_str()) {
            let after = after.trim_start();
            let after = after.strip_prefix('-').unwrap_or(after);
            if let Some(rest) = after.strip_prefix("%}") {
                let end = text.len() - rest.len();
                let name = &word[..wanted.len()];
                let kind = Kind::Tag { name, rest: "" };
                return Ok(Piece { line: lines.at(start), kind, place: start..end });
            }
        }
        at = start + 2;
    }
    Err(unclosed(name, lines.at(from.saturating_sub(1))))
}

fn next<'t>(text: &'t str, from: usize, lines: &Lines) -> Result<Option<Piece<'t>>, Problem> {
    let rest = &text.as_bytes()[from..];
    let opens = |pair: &[u8]| pair == b"{{" || pair == b"{%";
    let Some(start) = rest.windows(2).position(opens).map(|found| from + found) else {
        return Ok(None);
    };
    let line = lines.at(start);
    let is_tag = text[start..].starts_with("{%");
    let close = if is_tag { "%}" } else { "}}" };
    let inner_at = start + 2;
    let Some(length) = closing(&text[inner_at..], close) else {
        let opened = &text[start..inner_at];
        return Err(parse_error(line, format_args!("{opened} is never closed"))
            .hint(format_args!("close it with {close}")));
    };
    let inner = trimmed(&text[inner_at..inner_at + length]);
    let kind = if is_tag { tag(inner, line)? } else { Kind::Output(inner) };
    Ok(Some(Piece { line, kind, place: start..inner_at + length + 2 }))
}

/// Without the hyphens that eat white space.
fn trimmed(inner: &str) -> &str {
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    inner.strip_suffix('-').unwrap_or(inner).trim()
}

/// How far it is to the closing braces; those in quotes close nothing.
fn closing(text: &str, close: &str) -> Option<usize> {
    let mut quote = None;
    for (at, any) in text.char_indices() {
        match quote {
            Some(open) if any == open => quote = None,
            Some(_) => {}
            None if any == '"' || any == '\'' => quote = Some(any),
            None if text[at..].starts_with(close) => return Some(at),
            None => {}
        }
    }
    None
}

fn tag(inner: &str, line: usize) -> Result<Kind<'_>, Problem> {
    let end = inner.find(|any: char| !(any.is_ascii_alphanumeric() || any == '_'));
    let (name, rest) = inner.split_at(end.unwrap_or(inner.len()));
    if name.is_empty() {
        return Err(parse_error(line, "a tag has no name"));
    }
    Ok(Kind::Tag { name, rest: rest.trim() })
}
