//! Single values: whether one is of its key's kind, and what it amounts to.
//!
//! Knows no key by name, and no file.

use outlast_engine::duration;

use crate::keys::Kind;
use crate::money::micros;
use crate::node::{Node, Value};
use crate::problem::Code;

/// Why not, as a code and a message that goes on from the key.
pub(crate) fn check(node: &Node, kind: Kind) -> Result<(), (Code, String)> {
    match kind {
        Kind::Count => within(node, u64::from(u32::MAX)),
        Kind::Millis => within(node, u64::MAX),
        Kind::Timeout => within(node, u64::MAX).and_then(|()| not_zero(node)),
        Kind::Window => wanted(node.whole().is_some(), node, "a whole number"),
        Kind::Priority => {
            let fits = node.whole().is_some_and(|number| i32::try_from(number).is_ok());
            wanted(fits, node, "a whole number from -2147483648 to 2147483647")
        }
        Kind::Money => money(node).map(|_| ()),
        Kind::Flag => wanted(node.flag().is_some(), node, "true or false"),
        Kind::Text | Kind::Path => wanted(node.text().is_some(), node, "text"),
        Kind::Word(words) => word(node, words),
        Kind::WordOrMap(words) => {
            let is_word = node.text().is_some_and(|text| words.contains(&text));
            if is_word || matches!(node.value, Value::Map(_)) {
                return Ok(());
            }
            let message = format!("must be {} or a map, got {}", words.join(", "), node.quoted());
            Err((Code::BadValue, message))
        }
        Kind::Positive => within(node, u64::from(u32::MAX)).and_then(|()| match node.whole() {
            Some(0) => Err((Code::BadValue, "must be at least 1, got 0".to_owned())),
            _ => Ok(()),
        }),
        Kind::Share => share(node).map(|_| ()),
        Kind::Texts => wanted(is_texts(node), node, "a list of texts"),
        Kind::Command => {
            let is_command = node.text().is_some() || is_texts(node);
            wanted(is_command, node, "a line for the shell or a list of arguments")
        }
        Kind::Span => match span(node) {
            Some(_) => Ok(()),
            None => Err((
                Code::BadValue,
                format!("must be like 7d, 12h, 30m or forever, got {}", node.quoted()),
            )),
        },
        Kind::Map => wanted(matches!(node.value, Value::Map(_)), node, "a map"),
        Kind::Paths => {
            wanted(is_paths(node), node, "a path such as \"message.text\", or a list of paths")
        }
        Kind::Match => wanted(is_match(node), node, MATCH),
        Kind::Matches => {
            let is_list = matches!(&node.value, Value::List(items) if items.iter().all(is_match));
            wanted(is_list, node, "a list of matches such as [{ type = \"result\" }]")
        }
        Kind::Any => Ok(()),
    }
}

const MATCH: &str =
    "a match such as { type = \"result\" }, with texts, whole numbers, true or false";

fn is_paths(node: &Node) -> bool {
    let is_path =
        |node: &Node| node.text().is_some_and(|it| it.split('.').all(|key| !key.is_empty()));
    match &node.value {
        Value::List(items) => items.iter().all(is_path),
        _ => is_path(node),
    }
}

fn is_match(node: &Node) -> bool {
    let Value::Map(entries) = &node.value else { return false };
    entries.iter().all(|entry| is_matched(&entry.node))
}

/// What may stand at a path of a match.
fn is_matched(node: &Node) -> bool {
    match &node.value {
        Value::Bool(_) | Value::Whole(_) | Value::Text(_) => true,
        Value::List(items) => items.iter().all(is_matched),
        Value::Map(_) => is_match(node),
        Value::Null | Value::Decimal(_) => false,
    }
}

fn wanted(is_so: bool, node: &Node, what: &str) -> Result<(), (Code, String)> {
    if is_so {
        return Ok(());
    }
    Err((Code::WrongType, format!("must be {what}, got {}", node.quoted())))
}

fn within(node: &Node, most: u64) -> Result<(), (Code, String)> {
    let Some(number) = node.whole() else {
        return wanted(false, node, "a whole number");
    };
    match u64::try_from(number) {
        Err(_) => Err((Code::NegativeLimit, format!("must not be negative, got {number}"))),
        Ok(number) if number > most => {
            Err((Code::BadValue, format!("must be at most {most}, got {number}")))
        }
        Ok(_) => Ok(()),
    }
}

fn not_zero(node: &Node) -> Result<(), (Code, String)> {
    match node.whole() {
        Some(0) => Err((Code::BadValue, ENDS.to_owned())),
        _ => Ok(()),
    }
}

fn word(node: &Node, words: &[&str]) -> Result<(), (Code, String)> {
    let Some(text) = node.text() else {
        return wanted(false, node, "text");
    };
    if words.contains(&text) {
        return Ok(());
    }
    Err((Code::BadValue, format!("must be one of {}, got {}", words.join(", "), node.quoted())))
}

fn is_texts(node: &Node) -> bool {
    match &node.value {
        Value::List(items) => items.iter().all(|item| item.text().is_some()),
        _ => false,
    }
}

/// Dollars as written, in millionths, without a float in between.
pub(crate) fn money(node: &Node) -> Result<u64, (Code, String)> {
    let text = match &node.value {
        Value::Whole(number) => number.to_string(),
        Value::Decimal(text) => text.clone(),
        _ => {
            return Err((
                Code::WrongType,
                format!("must be an amount in US dollars, got {}", node.quoted()),
            ));
        }
    };
    if text.starts_with('-') {
        return Err((Code::NegativeLimit, format!("must not be negative, got {text}")));
    }
    micros(&text).ok_or_else(|| {
        (
            Code::BadValue,
            format!("must be an amount with at most 6 decimals, like 2.50, got {text}"),
        )
    })
}

/// A part of a whole, in millionths, without a float in between.
pub(crate) fn share(node: &Node) -> Result<u32, (Code, String)> {
    let written = match &node.value {
        Value::Whole(number) => number.to_string(),
        Value::Decimal(text) => text.clone(),
        _ => return Err((Code::WrongType, format!("must be a number, got {}", node.quoted()))),
    };
    let millionths = micros(&written).and_then(|it| u32::try_from(it).ok());
    millionths.filter(|it| (1..=1_000_000).contains(it)).ok_or_else(|| {
        let message = "must be more than 0 and at most 1, with at most 6 decimals, like 0.8";
        (Code::BadValue, format!("{message}, got {written}"))
    })
}

/// A length of time with its unit, in milliseconds; 0 and `off` are 0.
pub(crate) fn time(node: &Node) -> Option<u64> {
    match &node.value {
        Value::Whole(0) => Some(0),
        // TOML has no bare words, and false is what other files have for off.
        Value::Bool(false) => Some(0),
        Value::Text(text) if text == "off" || text == "0" => Some(0),
        Value::Text(text) => duration::parse(text),
        _ => None,
    }
}

/// Whether a value is a length of time with its unit, for a key that has this kind in milliseconds.
pub(crate) fn check_time(node: &Node, kind: Kind) -> Result<(), (Code, String)> {
    let must_end = kind == Kind::Timeout;
    match time(node) {
        Some(0) if must_end => Err((Code::BadValue, ENDS.to_owned())),
        Some(_) => Ok(()),
        None => {
            let off = if must_end { "" } else { " or off" };
            let message = match node.whole() {
                Some(number) if number < 0 => {
                    return Err((
                        Code::NegativeLimit,
                        format!("must not be negative, got {number}"),
                    ));
                }
                Some(_) => format!("has no unit, got {}", node.quoted()),
                None => format!("must be like 90s, 10m, 8h, 7d{off}, got {}", node.quoted()),
            };
            Err((Code::BadValue, message))
        }
    }
}

const ENDS: &str = "must be more than 0: this limit cannot be turned off";

/// How long something is kept; `Some(None)` is for ever.
pub(crate) fn span(node: &Node) -> Option<Option<u64>> {
    match &node.value {
        Value::Whole(0) => Some(Some(0)),
        Value::Text(text) if text == "forever" || text == "never" => Some(None),
        Value::Text(text) if text == "0" => Some(Some(0)),
        Value::Text(text) => duration::parse(text).map(Some),
        _ => None,
    }
}

/// The same, as it is written.
pub(crate) fn spelt_span(span: Option<u64>) -> String {
    span.map_or_else(|| "forever".to_owned(), duration::in_one_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_without_an_end_has_two_words() {
        let never = Node { line: 1, value: Value::Text("never".to_owned()) };
        assert_eq!(span(&never), Some(None));
    }

    #[test]
    fn spans_are_read_and_written_alike() {
        for text in ["7d", "36h", "30m", "45s", "1500ms", "forever", "0"] {
            let node = Node { line: 1, value: Value::Text(text.to_owned()) };
            assert_eq!(spelt_span(span(&node).unwrap()), text);
        }
        let odd = Node { line: 1, value: Value::Text("7 days".to_owned()) };
        assert_eq!(span(&odd), None);
    }
}
