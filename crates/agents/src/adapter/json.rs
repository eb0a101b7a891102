//! Finding one's way in JSON of others: what is absent or of another type is not there.

use serde_json::Value;

/// A line as an object; `None` for anything else.
pub(super) fn object(line: &[u8]) -> Option<Value> {
    serde_json::from_slice::<Value>(line).ok().filter(Value::is_object)
}

/// What is at a path such as `message.usage`, where a number is a place in a list.
pub(super) fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, key| match value {
        Value::Array(list) => list.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    })
}

pub(super) fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    at(value, path)?.as_str()
}

pub(super) fn whole(value: &Value, path: &str) -> Option<u64> {
    at(value, path)?.as_u64()
}

pub(super) fn yes(value: &Value, path: &str) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or(false)
}

pub(super) fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    at(value, path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Dollars as millionths, rounded up: less than was spent is never said. What a binary fraction is off by, below a
/// thousandth of a millionth, is not counted.
pub(super) fn micros(value: &Value, path: &str) -> Option<u64> {
    micros_of(at(value, path)?)
}

pub(super) fn micros_of(value: &Value) -> Option<u64> {
    let dollars = value.as_f64().filter(|dollars| (0.0..1e9).contains(dollars))?;
    let written = format!("{dollars:.9}");
    let (whole, fraction) = written.split_once('.')?;
    let (millionths, rest) = fraction.split_at(6);
    let micros = whole.parse::<u64>().ok()? * 1_000_000 + millionths.parse::<u64>().ok()?;
    Some(micros + u64::from(rest.bytes().any(|digit| digit != b'0')))
}

/// Of a long text the start, on one line.
pub(super) fn brief(text: &str, most: usize) -> String {
    let words =
        text.split(|it: char| it.is_whitespace() || is_hidden(it)).filter(|word| !word.is_empty());
    let whole = words.collect::<Vec<_>>().join(" ");
    let mut line: String = whole.chars().take(most).collect();
    if whole.chars().nth(most).is_some() {
        line.push('…');
    }
    line
}

/// All of a text, line by line, without what changes how it is shown; a very long one ends in a sign for that.
pub(super) fn whole_text(text: &str) -> String {
    let is_shown = |it: &char| !is_hidden(*it) || matches!(it, '\n' | '\t');
    let mut shown: String = text.chars().filter(is_shown).take(MOST_ASKED).collect();
    if text.chars().filter(is_shown).nth(MOST_ASKED).is_some() {
        shown.push('…');
    }
    shown
}

/// More of a question is not kept.
const MOST_ASKED: usize = 8000;

/// True of what shows nothing by itself and changes how the rest is shown.
fn is_hidden(it: char) -> bool {
    it.is_control()
        || matches!(it, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// One line of JSON, with its end.
pub(super) fn line(value: &Value) -> Vec<u8> {
    let mut bytes = value.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn money_is_whole_millionths_and_never_too_little() {
        let micros = |dollars: f64| micros(&json!({ "cost": dollars }), "cost");
        assert_eq!(micros(0.014400000000000001), Some(14_400));
        assert_eq!(micros(0.00596), Some(5960));
        assert_eq!((micros(0.000_000_4), micros(0.1 + 0.2)), (Some(1), Some(300_000)));
        assert_eq!((micros(0.0), micros(-1.0)), (Some(0), None));
    }

    #[test]
    fn what_is_of_another_type_is_not_there() {
        let value = json!({ "a": [{ "b": "c" }], "n": 3 });
        assert_eq!(text(&value, "a.0.b"), Some("c"));
        assert_eq!(
            (text(&value, "a.1.b"), text(&value, "n"), whole(&value, "n")),
            (None, None, Some(3))
        );
    }
}
