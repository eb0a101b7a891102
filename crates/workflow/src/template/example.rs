//! An item that has all that templates name of theirs, so that a trigger can be tried before anything has arrived.

use serde_json::{Map, Value};

/// What stands in place of each value.
const SAMPLE: &str = "test";

/// An object with a text at each `item.a.b` that these templates name.
pub fn example_item<'a>(templates: impl IntoIterator<Item = &'a str>) -> Value {
    let mut item = Map::new();
    for path in templates.into_iter().flat_map(paths) {
        put(&mut item, &path, Value::from(SAMPLE));
    }
    Value::Object(item)
}

/// Puts a value where the path leads; what stands deeper already stays.
pub fn put(into: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [last] => {
            let there = into.entry(*last).or_insert_with(|| value.clone());
            if !there.is_object() {
                *there = value;
            }
        }
        [first, rest @ ..] => {
            let there = into.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            if !there.is_object() {
                *there = Value::Object(Map::new());
            }
            if let Value::Object(there) = there {
                put(there, rest, value);
            }
        }
    }
}

/// The paths below `item` that a template names, in its tags alone.
fn paths(template: &str) -> Vec<Vec<&str>> {
    let tags = template.split('{').filter_map(|part| part.split('}').next());
    tags.flat_map(|tag| {
        tag.match_indices("item.").filter_map(|(at, _)| {
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
            if tag[..at].chars().next_back().is_some_and(is_word) {
                return None;
            }
            let rest = &tag[at + "item.".len()..];
            let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
            let path: Vec<&str> = rest[..end].split('.').filter(|it| !it.is_empty()).collect();
            Some(path).filter(|path| !path.is_empty())
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_example_has_what_the_templates_name() {
        let task =
            "{{ item.issue.title }}: {% if item.issue %}{{item.n | upcase}}{% endif %} item.not";
        let prompt = "{{ task }} {{ item.issue.user.login }} {{ my_item.x }} {{ item }}";
        assert_eq!(
            example_item([task, prompt]),
            json!({ "issue": { "title": "test", "user": { "login": "test" } }, "n": "test" })
        );
        assert_eq!(example_item(["{{ task }}"]), json!({}));
    }
}
