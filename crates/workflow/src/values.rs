//! Single values: whether one is of its key's kind, and what it amounts to.
//!
//! Knows no key by name, and no file.

use crate::keys::Kind;
use crate::node::{Node, Value};
use crate::problem::code;

/// Why not, as a code and a message that goes on from the key.
pub(crate) fn check(node: &Node, kind: Kind) -> Result<(), (&'static str, String)> {
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
        Kind::Texts => wanted(is_texts(node), node, "a list of texts"),
        Kind::Command => {
            let is_command = node.text().is_some() || is_texts(node);
            wanted(is_command, node, "a line for the shell or a list of arguments")
        }
        Kind::Span => match span(node) {
            Some(_) => Ok(()),
            None => Err((
                code::BAD_VALUE,
                format!("must be like 7d, 12h, 30m or forever, got {}", node.quoted()),
            )),
        },
        Kind::Map => wanted(matches!(node.value, Value::Map(_)), node, "a map"),
        Kind::Any => Ok(()),
    }
}

fn wanted(is_so: bool, node: &Node, what: &str) -> Result<(), (&'static str, String)> {
    if is_so {
        return Ok(());
    }
    Err((code::WRONG_TYPE, format!("must be {what}, got {}", node.quoted())))
}

fn within(node: &Node, most: u64) -> Result<(), (&'static str, String)> {
    let Some(number) = node.whole() else {
        return wanted(false, node, "a whole number");
    };
    match u64::try_from(number) {
        Err(_) => Err((code::NEGATIVE_LIMIT, format!("must not be negative, got {number}"))),
        Ok(number) if number > most => {
            Err((code::BAD_VALUE, format!("must be at most {most}, got {number}")))
        }
        Ok(_) => Ok(()),
    }
}

fn not_zero(node: &Node) -> Result<(), (&'static str, String)> {
    match node.whole() {
        Some(0) => {
            Err((code::BAD_VALUE, "must be more than 0: what it bounds has to end".to_owned()))
        }
        _ => Ok(()),
    }
}

fn word(node: &Node, words: &[&str]) -> Result<(), (&'static str, String)> {
    let Some(text) = node.text() else {
        return wanted(false, node, "text");
    };
    if words.contains(&text) {
        return Ok(());
    }
    Err((code::BAD_VALUE, format!("must be one of {}, got {}", words.join(", "), node.quoted())))
}

fn is_texts(node: &Node) -> bool {
    match &node.value {
        Value::List(items) => items.iter().all(|item| item.text().is_some()),
        _ => false,
    }
}

const MICROS: u64 = 1_000_000;

/// Dollars as written, in millionths, without a float in between.
pub(crate) fn money(node: &Node) -> Result<u64, (&'static str, String)> {
    let text = match &node.value {
        Value::Whole(number) => number.to_string(),
        Value::Decimal(text) => text.clone(),
        _ => {
            return Err((
                code::WRONG_TYPE,
                format!("must be an amount in US dollars, got {}", node.quoted()),
            ));
        }
    };
    if text.starts_with('-') {
        return Err((code::NEGATIVE_LIMIT, format!("must not be negative, got {text}")));
    }
    micros(&text).ok_or_else(|| {
        (
            code::BAD_VALUE,
            format!("must be an amount with at most 6 decimals, like 2.50, got {text}"),
        )
    })
}

/// `"2.50"` in millionths.
pub fn micros(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole)
        || !is_digits(fraction)
        || fraction.len() > 6
        || (whole.is_empty() && fraction.is_empty())
    {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(MICROS)?.checked_add(fraction)
}

/// Millionths as a person writes dollars.
pub fn dollars(micros: u64) -> String {
    let fraction = format!("{:06}", micros % MICROS);
    let fraction = fraction.trim_end_matches('0');
    format!("{}.{fraction:0<2}", micros / MICROS)
}

/// How long something is kept; `Some(None)` is for ever.
pub(crate) fn span(node: &Node) -> Option<Option<u64>> {
    match &node.value {
        Value::Whole(0) => Some(Some(0)),
        Value::Text(text) if text == "forever" => Some(None),
        Value::Text(text) => spelt(text).map(Some),
        _ => None,
    }
}

fn spelt(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let unit = text.chars().next_back()?;
    let unit_ms: u64 = match unit {
        's' => 1000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        'w' => 7 * 86_400_000,
        _ => return None,
    };
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    number.checked_mul(unit_ms)
}

/// The same, as it is written.
pub(crate) fn spelt_span(span: Option<u64>) -> String {
    let Some(ms) = span else { return "forever".to_owned() };
    let units = [(86_400_000, 'd'), (3_600_000, 'h'), (60_000, 'm'), (1000, 's')];
    match units.iter().find(|(unit_ms, _)| ms > 0 && ms % unit_ms == 0) {
        Some((unit_ms, unit)) => format!("{}{unit}", ms / unit_ms),
        None => "0".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_does_not_drift() {
        let amounts = [
            ("0.1", 100_000),
            ("2.50", 2_500_000),
            ("3", 3_000_000),
            (".000001", 1),
            ("1_000.5", 1_000_500_000),
        ];
        for (text, expected) in amounts {
            assert_eq!(micros(text), Some(expected), "{text}");
        }
        for text in ["", ".", "1e3", "0.0000001", "1.2.3", "-1", "99999999999999999999"] {
            assert_eq!(micros(text), None, "{text}");
        }
        assert_eq!(
            (dollars(100_000), dollars(3_000_000), dollars(1)),
            ("0.10".into(), "3.00".into(), "0.000001".into())
        );
    }

    #[test]
    fn spans_are_read_and_written_alike() {
        for text in ["7d", "12h", "30m", "45s", "forever", "0"] {
            let node = Node { line: 1, value: Value::Text(text.to_owned()) };
            assert_eq!(spelt_span(span(&node).unwrap()), text);
        }
        let odd = Node { line: 1, value: Value::Text("7 days".to_owned()) };
        assert_eq!(span(&odd), None);
    }
}
