//! The inside of a tag into tokens, by Liquid's grammar.

use super::scan::parse_error;
use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A word, and the steps down from it.
    Path(Path<'t>),
    Text,
    Number(&'t str),
    Symbol(&'t str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path<'t> {
    pub(super) root: &'t str,
    pub(super) steps: Vec<Step<'t>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step<'t> {
    Field(&'t str),
    /// `[3]`
    Index,
    /// `[name]`
    Inner(Path<'t>),
}

/// In characters: far from where arithmetic overflows.
const LONGEST_NUMBER: usize = 12;
/// Of a name in a name's brackets.
const DEEPEST: usize = 8;
const LITERALS: [&str; 6] = ["true", "false", "nil", "null", "empty", "blank"];
const SYMBOLS: [&str; 14] =
    ["==", "!=", "<>", ">=", "<=", "..", ">", "<", "=", ",", ":", "|", "(", ")"];

impl Path<'_> {
    pub(super) fn is_literal(&self) -> bool {
        self.steps.is_empty() && LITERALS.contains(&self.root)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.steps.is_empty() && self.root == word
    }
}

pub(super) fn tokens(text: &str, line: usize) -> Result<Vec<Token<'_>>, Problem> {
    let mut reader = Reader { rest: text, line, depth: 0 };
    let mut tokens = Vec::new();
    loop {
        reader.rest = reader.rest.trim_start_matches([' ', '\n', '\r', '\t']);
        if reader.rest.is_empty() {
            return Ok(tokens);
        }
        tokens.push(reader.token()?);
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    fn token(&mut self) -> Result<Token<'t>, Problem> {
        let first = self.rest.chars().next().unwrap_or_default();
        if first == '"' || first == '\'' {
            return self.quoted(first).map(|_| Token::Text);
        }
        if let Some(number) = self.number()? {
            return Ok(Token::Number(number));
        }
        if is_word(first) {
            return self.path().map(Token::Path);
        }
        let symbol = SYMBOLS.into_iter().find(|symbol| self.rest.starts_with(symbol));
        let symbol = symbol.ok_or_else(|| self.unreadable())?;
        self.rest = &self.rest[symbol.len()..];
        Ok(Token::Symbol(symbol))
    }

    fn unreadable(&self) -> Problem {
        let near: String = self.rest.chars().take(20).collect();
        parse_error(self.line, format_args!("cannot make sense of {near:?}"))
    }

    fn quoted(&mut self, quote: char) -> Result<&'t str, Problem> {
        let inner = &self.rest[1..];
        let Some(end) = inner.find(quote) else { return Err(self.unreadable()) };
        self.rest = &inner[end + 1..];
        Ok(&inner[..end])
    }

    /// Digits, with a sign and decimals or without; the dots of `1..3` are none of it. Liquid panics on a number
    /// that it cannot hold, wherever it stands.
    fn number(&mut self) -> Result<Option<&'t str>, Problem> {
        let unsigned = self.rest.strip_prefix(['+', '-']).unwrap_or(self.rest);
        let digits = |text: &str| {
            text.len() - text.trim_start_matches(|any: char| any.is_ascii_digit()).len()
        };
        let whole = digits(unsigned);
        if whole == 0 {
            return Ok(None);
        }
        let fraction = match unsigned[whole..].strip_prefix('.').map(digits) {
            Some(decimals) if decimals > 0 => 1 + decimals,
            _ => 0,
        };
        let length = self.rest.len() - unsigned.len() + whole + fraction;
        let (number, rest) = self.rest.split_at(length);
        self.rest = rest;
        match number.len() > LONGEST_NUMBER {
            true => Err(parse_error(self.line, format_args!("{number} is too big a number"))),
            false => Ok(Some(number)),
        }
    }

    fn word(&mut self) -> Result<&'t str, Problem> {
        let end = self.rest.find(|any: char| !is_word(any) && !any.is_ascii_digit());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if !word.starts_with(is_word) {
            return Err(self.unreadable());
        }
        self.rest = rest;
        Ok(word)
    }

    fn path(&mut self) -> Result<Path<'t>, Problem> {
        let root = self.word()?;
        let mut steps = Vec::new();
        loop {
            if self.rest.starts_with('.') && !self.rest.starts_with("..") {
                self.rest = &self.rest[1..];
                steps.push(Step::Field(self.word()?));
            } else if let Some(inner) = self.rest.strip_prefix('[') {
                self.rest = inner.trim_start();
                steps.push(self.index()?);
            } else {
                return Ok(Path { root, steps });
            }
        }
    }

    /// `[name]`, which may have an index of its own.
    fn inner(&mut self) -> Result<Step<'t>, Problem> {
        if self.depth == DEEPEST {
            return Err(self.unreadable());
        }
        self.depth += 1;
        let path = self.path()?;
        self.depth -= 1;
        Ok(Step::Inner(path))
    }

    fn index(&mut self) -> Result<Step<'t>, Problem> {
        let first = self.rest.chars().next().unwrap_or_default();
        let step = if first == '"' || first == '\'' {
            Step::Field(self.quoted(first)?)
        } else if self.number()?.is_some() {
            Step::Index
        } else {
            self.inner()?
        };
        self.rest = self.rest.trim_start();
        self.rest = self.rest.strip_prefix(']').ok_or_else(|| self.unreadable())?;
        Ok(step)
    }
}

fn is_word(any: char) -> bool {
    any.is_ascii_alphabetic() || any == '_' || any == '-'
}
