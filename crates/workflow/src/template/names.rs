//! Every name and every filter of a template, also where Liquid would not look.

use std::collections::BTreeMap;

use super::scan::{Kind, Piece, parse_error};
use super::shape::Shape;
use super::tokens::{Path, Step, Token, tokens};
use super::variables::NAMES;
use crate::keys::alike;
use crate::problem::{Code, Problem};

/// Liquid's, without those whose arithmetic can panic.
pub(super) const FILTERS: [&str; 45] = [
    "append",
    "at_least",
    "at_most",
    "capitalize",
    "ceil",
    "compact",
    "concat",
    "date",
    "default",
    "downcase",
    "escape",
    "escape_once",
    "first",
    "floor",
    "join",
    "last",
    "lstrip",
    "map",
    "minus",
    "newline_to_br",
    "plus",
    "prepend",
    "remove",
    "remove_first",
    "replace",
    "replace_first",
    "reverse",
    "round",
    "rstrip",
    "size",
    "slice",
    "sort",
    "sort_natural",
    "split",
    "strip",
    "strip_html",
    "strip_newlines",
    "times",
    "truncate",
    "truncatewords",
    "uniq",
    "upcase",
    "url_decode",
    "url_encode",
    "where",
];

/// How often the ranges of loops in loops may go round, all told.
const MOST_ROUNDS: i64 = 10_000;

/// Everything that is wrong with the pieces, in their order.
pub(super) fn problems(pieces: &[Piece<'_>]) -> Vec<Problem> {
    let mut names = Names { assigned: BTreeMap::new(), loops: Vec::new() };
    pieces.iter().flat_map(|piece| names.piece(piece)).collect()
}

struct Names<'t> {
    assigned: BTreeMap<&'t str, Shape>,
    loops: Vec<Loop<'t>>,
}

struct Loop<'t> {
    name: &'t str,
    item: Shape,
    rounds: i64,
}

impl<'t> Names<'t> {
    fn piece(&mut self, piece: &Piece<'t>) -> Vec<Problem> {
        let line = piece.line;
        match piece.kind {
            Kind::Output(inner) => match tokens(inner, line) {
                Ok(none) if none.is_empty() => {
                    vec![parse_error(line, "there is nothing between {{ and }}")]
                }
                Ok(tokens) => self.faults(&tokens, line),
                Err(problem) => vec![problem],
            },
            Kind::Tag { name, rest } => match self.tag(name, rest, line) {
                Ok(()) => Vec::new(),
                Err(problem) => {
                    self.assume(name, rest, line);
                    vec![problem]
                }
            },
        }
    }

    /// Takes a tag that is wrong for one that defines its name, so that nothing else seems wrong because of it.
    fn assume(&mut self, tag: &str, rest: &'t str, line: usize) {
        let tokens = tokens(rest, line).unwrap_or_default();
        let name = match tokens.first() {
            Some(Token::Path(name)) => name.root,
            Some(Token::Symbol(_) | Token::Text | Token::Number(_)) | None => "",
        };
        match tag {
            "for" | "tablerow" => self.loops.push(Loop { name, item: Shape::Any, rounds: 1 }),
            "assign" | "capture" | "increment" | "decrement" => {
                self.assigned.insert(name, Shape::Any);
            }
            _ => {}
        }
    }

    fn tag(&mut self, name: &str, rest: &'t str, line: usize) -> Result<(), Problem> {
        match name {
            "comment" | "raw" | "endcomment" | "endraw" => Ok(()),
            "for" | "tablerow" => self.enter(&tokens(rest, line)?, name, line),
            "endfor" | "endtablerow" => {
                self.loops.pop();
                Ok(())
            }
            "assign" => self.assign(&tokens(rest, line)?, line),
            "capture" | "increment" | "decrement" => self.define(&tokens(rest, line)?, name, line),
            "if" | "elsif" | "unless" | "case" | "when" | "cycle" => {
                self.condition(&tokens(rest, line)?, name, line)
            }
            "else" | "endif" | "endunless" | "endcase" | "endcapture" | "ifchanged"
            | "endifchanged" | "break" | "continue" => alone(name, rest, line),
            "include" | "render" => {
                Err(parse_error(line, format_args!("{name} is not offered: a prompt is one file")))
            }
            _ => Err(parse_error(line, format_args!("there is no tag {name}"))),
        }
    }

    fn condition(&mut self, tokens: &[Token<'t>], name: &str, line: usize) -> Result<(), Problem> {
        if tokens.is_empty() {
            return Err(parse_error(line, format_args!("{name} lacks what it is about")));
        }
        let is_joint = |token: &Token<'_>| match token {
            Token::Path(path) => ["and", "or", "contains"].iter().any(|word| path.is_word(word)),
            Token::Symbol(_) | Token::Text | Token::Number(_) => false,
        };
        tokens.split(is_joint).try_for_each(|part| self.expression(part, line).map(|_| ()))
    }

    fn assign(&mut self, tokens: &[Token<'t>], line: usize) -> Result<(), Problem> {
        let [Token::Path(name), Token::Symbol("="), value @ ..] = tokens else {
            return Err(parse_error(line, "assign goes like {% assign name = value %}"));
        };
        let shape = self.expression(value, line)?;
        self.assigned.insert(name.root, shape);
        Ok(())
    }

    fn define(&mut self, tokens: &[Token<'t>], tag: &str, line: usize) -> Result<(), Problem> {
        let [Token::Path(name)] = tokens else {
            return Err(parse_error(line, format_args!("{tag} needs one name")));
        };
        self.assigned.insert(name.root, Shape::Plain);
        Ok(())
    }

    fn enter(&mut self, tokens: &[Token<'t>], tag: &str, line: usize) -> Result<(), Problem> {
        let [Token::Path(name), Token::Path(word), over @ ..] = tokens else {
            return Err(parse_error(
                line,
                format_args!("{tag} goes like {{% {tag} name in list %}}"),
            ));
        };
        if !word.is_word("in") || !name.steps.is_empty() {
            return Err(parse_error(
                line,
                format_args!("{tag} goes like {{% {tag} name in list %}}"),
            ));
        }
        let (item, rounds) = self.over(over, line)?;
        let rounds = self.loops.last().map_or(1, |outer| outer.rounds).saturating_mul(rounds);
        if rounds > MOST_ROUNDS {
            return Err(parse_error(
                line,
                format_args!("the loops go round more than {MOST_ROUNDS} times"),
            ));
        }
        self.loops.push(Loop { name: name.root, item, rounds });
        Ok(())
    }

    /// What a loop gives each time, and how often a range goes round.
    fn over(&self, tokens: &[Token<'t>], line: usize) -> Result<(Shape, i64), Problem> {
        let (first, item, rounds) = match tokens {
            [
                Token::Symbol("("),
                Token::Number(from),
                Token::Symbol(".."),
                Token::Number(to),
                Token::Symbol(")"),
                rest @ ..,
            ] => (rest, Shape::Plain, rounds(from, to, line)?),
            [Token::Path(list), rest @ ..] => (rest, self.path(list, line)?.item(), 1),
            _ => {
                return Err(parse_error(
                    line,
                    "a loop goes over a list or a range of two whole numbers",
                ));
            }
        };
        self.options(first, line)?;
        Ok((item, rounds))
    }

    /// `reversed limit:2 offset:n cols:3`
    fn options(&self, tokens: &[Token<'t>], line: usize) -> Result<(), Problem> {
        let mut rest = tokens;
        loop {
            rest = match rest {
                [] => return Ok(()),
                [Token::Path(word), rest @ ..] if word.is_word("reversed") => rest,
                [Token::Symbol(","), rest @ ..] => rest,
                // Liquid divides by it.
                [Token::Path(word), Token::Symbol(":"), value, rest @ ..]
                    if word.is_word("cols") =>
                {
                    match value {
                        Token::Number(cols) if cols.parse::<u32>().is_ok_and(|cols| cols > 0) => {}
                        _ => return Err(parse_error(line, "cols is a whole number of at least 1")),
                    }
                    rest
                }
                [Token::Path(word), Token::Symbol(":"), value, rest @ ..]
                    if ["limit", "offset"].iter().any(|known| word.is_word(known)) =>
                {
                    self.value(value, line)?;
                    rest
                }
                _ => {
                    return Err(parse_error(line, "a loop knows reversed, limit, offset and cols"));
                }
            };
        }
    }

    /// Values and filters in a row, as outputs and tags have them. The shape is that of a lone path.
    fn expression(&self, tokens: &[Token<'t>], line: usize) -> Result<Shape, Problem> {
        if let [Token::Path(path)] = tokens {
            return self.path(path, line);
        }
        self.faults(tokens, line).into_iter().next().map_or(Ok(Shape::Any), Err)
    }

    /// Everything that is wrong with values and filters in a row.
    fn faults(&self, tokens: &[Token<'t>], line: usize) -> Vec<Problem> {
        let mut faults = Vec::new();
        for (n, token) in tokens.iter().enumerate() {
            let before = n.checked_sub(1).map(|before| &tokens[before]);
            let found = match (before, token) {
                (Some(Token::Symbol("|")), Token::Path(filter)) => known_filter(filter, line),
                (Some(Token::Symbol("|")), _) => {
                    Err(parse_error(line, "a filter's name is missing after |"))
                }
                (_, Token::Path(_)) if is_argument_name(tokens, n) => Ok(()),
                (_, token) => self.value(token, line),
            };
            faults.extend(found.err());
        }
        if let (Some(Token::Symbol(symbol)), true) = (tokens.last(), faults.is_empty()) {
            faults.push(parse_error(line, format_args!("a value is missing after {symbol}")));
        }
        faults
    }

    fn value(&self, token: &Token<'t>, line: usize) -> Result<(), Problem> {
        match token {
            Token::Path(path) => self.path(path, line).map(|_| ()),
            Token::Text | Token::Number(_) | Token::Symbol(_) => Ok(()),
        }
    }

    fn path(&self, path: &Path<'t>, line: usize) -> Result<Shape, Problem> {
        if path.is_literal() {
            return Ok(Shape::Plain);
        }
        let mut shape = self.root(path.root).ok_or_else(|| unknown(path.root, "", NAMES, line))?;
        let mut shown = path.root.to_owned();
        for step in &path.steps {
            let below = match step {
                Step::Field(name) => {
                    shape.field(name).ok_or_else(|| unknown(name, &shown, shape, line))
                }
                Step::Index => shape.indexed().ok_or_else(|| unknown("[]", &shown, shape, line)),
                Step::Inner(inner) => {
                    self.path(inner, line)?;
                    shape.indexed().ok_or_else(|| unknown("[]", &shown, shape, line))
                }
            };
            shape = below?;
            if let Step::Field(name) = step {
                shown = format!("{shown}.{name}");
            }
        }
        Ok(shape)
    }

    fn root(&self, name: &str) -> Option<Shape> {
        let looped =
            self.loops.iter().rev().find(|inner| inner.name == name).map(|inner| inner.item);
        let forloop = (name == "forloop" && !self.loops.is_empty()).then(Shape::forloop);
        let assigned = || self.assigned.get(name).copied();
        looped.or(forloop).or_else(assigned).or_else(|| match NAMES {
            Shape::Object(fields) => {
                fields.iter().find(|(known, _)| *known == name).map(|(_, shape)| *shape)
            }
            Shape::Any | Shape::Plain | Shape::List(_) => None,
        })
    }
}

/// `name:` after a filter's comma or colon, not the filter itself.
fn is_argument_name(tokens: &[Token<'_>], n: usize) -> bool {
    matches!(tokens.get(n + 1), Some(Token::Symbol(":")))
        && matches!(n.checked_sub(1).map(|before| &tokens[before]), Some(Token::Symbol("," | ":")))
}

fn alone(name: &str, rest: &str, line: usize) -> Result<(), Problem> {
    match rest {
        "" => Ok(()),
        _ => Err(parse_error(line, format_args!("{name} takes nothing, got {rest:?}"))),
    }
}

fn known_filter(filter: &Path<'_>, line: usize) -> Result<(), Problem> {
    if filter.steps.is_empty() && FILTERS.contains(&filter.root) {
        return Ok(());
    }
    let message = format!("there is no filter {}", filter.root);
    let problem = Problem::new(Code::TemplateRenderError, "prompt", message).at(line);
    Err(match alike(filter.root, FILTERS.into_iter()) {
        Some(known) => problem.hint(format_args!("did you mean {known}?")),
        None => problem.hint(format_args!("filters are {}", FILTERS.join(", "))),
    })
}

fn unknown(name: &str, below: &str, shape: Shape, line: usize) -> Problem {
    let (message, names) = match below {
        "" => (format!("there is no variable {name}"), shape.names()),
        _ => (format!("there is no {name} in {below}"), shape.names()),
    };
    let problem = Problem::new(Code::TemplateRenderError, "prompt", message).at(line);
    match alike(name, names.iter().copied()) {
        _ if names.is_empty() => problem,
        Some(known) => problem.hint(format_args!("did you mean {known}?")),
        None => problem.hint(format_args!("there are {}", names.join(", "))),
    }
}

fn rounds(from: &str, to: &str, line: usize) -> Result<i64, Problem> {
    let whole = |text: &str| text.parse::<i64>().ok();
    let width = whole(from).zip(whole(to)).and_then(|(from, to)| to.checked_sub(from));
    match width {
        Some(width) if width < MOST_ROUNDS => Ok(width.max(0) + 1),
        _ => Err(parse_error(
            line,
            format_args!("a range is of whole numbers, at most {MOST_ROUNDS} of them"),
        )),
    }
}
