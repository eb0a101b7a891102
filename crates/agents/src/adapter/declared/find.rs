//! Finding and recognising: paths with `*`, and what a line must have to be the one that is meant.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All that is at a path such as `content.*.text`, where `*` is each of a list or of an object.
pub(super) fn find<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    path.split('.').fold(vec![value], |found, key| {
        found.into_iter().flat_map(|value| step(value, key)).collect()
    })
}

fn step<'v>(value: &'v Value, key: &str) -> Vec<&'v Value> {
    match (value, key) {
        (Value::Array(list), "*") => list.iter().collect(),
        (Value::Object(fields), "*") => fields.values().collect(),
        (Value::Array(list), key) => {
            key.parse().ok().and_then(|at: usize| list.get(at)).into_iter().collect()
        }
        (value, key) => value.get(key).into_iter().collect(),
    }
}

/// One path or several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrMore")]
pub struct Paths(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged, expecting = "a path such as \"message.usage\", or a list of paths")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl From<OneOrMore> for Paths {
    fn from(paths: OneOrMore) -> Self {
        match paths {
            OneOrMore::One(path) => Self(vec![path]),
            OneOrMore::More(paths) => Self(paths),
        }
    }
}

impl Paths {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn all<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        self.0.iter().flat_map(|path| find(value, path)).collect()
    }

    pub(super) fn text(&self, value: &Value) -> Option<String> {
        self.all(value).into_iter().find_map(Value::as_str).map(str::to_owned)
    }
}

/// What a line has at which paths; all of it must be there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct When(BTreeMap<String, Is>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "true, false, a whole number, a text with * for anything, or a list of those"
)]
enum Is {
    Flag(bool),
    Number(i64),
    Text(String),
    Any(Vec<Self>),
    /// `part.reason = "stop"` without quotes is a table in a table.
    Within(When),
}

impl When {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fits(&self, value: &Value) -> bool {
        self.0.iter().all(|(path, is)| find(value, path).into_iter().any(|it| is.fits(it)))
    }
}

impl Is {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Flag(flag) => value.as_bool() == Some(*flag),
            Self::Number(number) => value.as_i64() == Some(*number),
            Self::Text(pattern) => value.as_str().is_some_and(|text| is_like(pattern, text)),
            Self::Any(several) => several.iter().any(|is| is.fits(value)),
            Self::Within(when) => when.fits(value),
        }
    }
}

fn is_like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(inner) = text.strip_prefix(start).and_then(|text| text.strip_suffix(end)) else {
        return false;
    };
    middle.split('*').try_fold(inner, |text, part| Some(text.split_once(part)?.1)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_star_is_each_of_a_list_or_an_object() {
        let value =
            json!({ "a": [{ "b": 1 }, { "c": 2 }, { "b": 3 }], "m": { "x": { "b": 4 }, "y": 5 } });
        assert_eq!(find(&value, "a.*.b"), [&json!(1), &json!(3)]);
        assert_eq!(find(&value, "m.*.b"), [&json!(4)]);
        assert_eq!(find(&value, "a.2.b"), [&json!(3)]);
        assert!(find(&value, "m.y.*").is_empty() && find(&value, "a.b").is_empty());
    }

    #[test]
    fn a_star_in_a_text_is_anything() {
        let fits = [("*", ""), ("a*", "abc"), ("*c", "abc"), ("*b*", "abc"), ("a*b*c", "a-b-c")];
        assert!(fits.iter().all(|(pattern, text)| is_like(pattern, text)));
        let does_not = [("a", "ab"), ("a*a", "a"), ("*x*", "abc"), ("a*b*c", "acb"), ("a*", "ba")];
        assert!(does_not.iter().all(|(pattern, text)| !is_like(pattern, text)));
    }

    #[test]
    fn a_line_fits_if_it_has_all_of_it() {
        let when = json!({ "type": ["result", "end"], "part.reason": "stop", "error": { "code": 3 }, "ok": true });
        let when: When = serde_json::from_value(when).unwrap();
        let line = json!({ "type": "end", "part": { "reason": "stop" }, "error": { "code": 3 }, "ok": true });
        assert!(when.fits(&line));
        for (key, other) in [("type", json!("start")), ("ok", json!(null)), ("error", json!({}))] {
            let mut line = line.clone();
            line[key] = other;
            assert!(!when.fits(&line), "{line}");
        }
    }
}
