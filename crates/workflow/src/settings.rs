//! Every setting of config.toml with its value and where the value comes from, for people.
//!
//! Secrets stay hidden: of sinks and listeners only words of closed lists and numbers are shown.

use crate::keys::{CONFIG, Effect, Kind, lookup};
use crate::node::{Node, Value};
use crate::settle::{Explained, Origin};
use crate::tables;

/// What stands for a value that may be secret.
const HIDDEN: &str = "(set)";

/// The settings of a file that is valid; those that the file does not have, with their defaults.
pub fn config_settings(text: &str) -> Vec<Explained> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut settings = Vec::new();
    if let Ok(root) = tables::parse(text) {
        collect(&root, "", &mut settings);
    }
    for key in CONFIG.iter().filter(|key| key.effect == Effect::Acts && !key.default.is_empty()) {
        let is_one = !key.path.contains('*') && !key.path.contains("[]");
        // A time may be written under its name without the unit.
        let is_it = |known: &Explained| {
            known.key == key.path || key.path.strip_suffix("_ms") == Some(known.key.as_str())
        };
        if is_one && !settings.iter().any(is_it) {
            let (key, value) = (key.path.to_owned(), key.default.to_owned());
            settings.push(Explained { key, value, origin: Origin::Default });
        }
    }
    settings
}

fn collect(node: &Node, path: &str, settings: &mut Vec<Explained>) {
    for entry in node.entries() {
        let key = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
        match &entry.node.value {
            Value::Map(_) => collect(&entry.node, &key, settings),
            _ => {
                let value = shown(&entry.node, &key);
                let origin = Origin::Config { line: entry.node.line };
                settings.push(Explained { key, value, origin });
            }
        }
    }
}

fn shown(node: &Node, path: &str) -> String {
    let kind = lookup(CONFIG, path).map(|key| key.kind);
    let may_be_secret = ["sinks.", "listen.token", "ping.", "otlp.", "agents.", "secrets."]
        .iter()
        .any(|start| path.starts_with(start));
    match (&node.value, kind) {
        (Value::Null | Value::Bool(_) | Value::Whole(_) | Value::Decimal(_), Some(_)) => {
            node.quoted()
        }
        (Value::Text(text), Some(Kind::Word(words))) if words.contains(&text.as_str()) => {
            text.clone()
        }
        _ if may_be_secret => HIDDEN.to_owned(),
        (Value::Text(text), _) => text.clone(),
        (Value::List(_), _) => node.texts().join(", "),
        _ => node.quoted(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_says_where_it_comes_from_and_no_secret_is_shown() {
        let text = "[concurrency]\nmax_runs = 3\n\n[sinks.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.sh/s3cret\"\n\n[listen]\naddress = \"127.0.0.1:9797\"\ntoken = \"s3cret\"\n\n[env]\nallow = [\"PATH\", \"HOME\"]\n";
        let settings = config_settings(text);
        let of = |key: &str| {
            let found = settings.iter().find(|it| it.key == key).expect("it is there");
            (found.value.as_str(), found.origin)
        };
        assert_eq!(of("concurrency.max_runs"), ("3", Origin::Config { line: 2 }));
        assert_eq!(of("sinks.phone.kind"), ("ntfy", Origin::Config { line: 5 }));
        assert_eq!(of("sinks.phone.url").0, HIDDEN);
        assert_eq!(of("listen.token").0, HIDDEN);
        assert_eq!(of("env.allow").0, "PATH, HOME");
        assert_eq!(of("log.level").1, Origin::Default);
        assert!(settings.iter().all(|it| !it.value.contains("s3cret")));
    }
}
