//! Which variables are secret, by their names.

use outlast_words::SecretRules;

/// Parts of names whose values are secret.
const PARTS: [&str; 8] =
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH"];

/// Words between underscores that mean a secret only when they stand alone.
const WORDS: [&str; 2] = ["PASS", "PWD"];

/// Words between underscores that have one of the parts in them and mean something else.
const INNOCENT: [&str; 8] = [
    "AUTHOR",
    "AUTHORS",
    "COAUTHOR",
    "KEYBOARD",
    "KEYMAP",
    "KEYTIMEOUT",
    "TOKENIZER",
    "TOKENIZERS",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Not secret.
    Open,
    /// Secret by its looks: a value that is plainly none does not count.
    Looks,
    /// Secret because the operator says so.
    Named,
}

pub(crate) fn standing(rules: &SecretRules, name: &str) -> Standing {
    let is_in = |list: &[String]| list.iter().any(|pattern| matches(pattern, name));
    // What a step is told of itself; of that only its token opens something.
    let is_ours = name.starts_with("OUTLAST_") && name != "OUTLAST_TOKEN";
    if is_in(&rules.off) {
        Standing::Open
    } else if is_in(&rules.names) {
        Standing::Named
    } else if !is_ours && looks_secret(name) {
        Standing::Looks
    } else {
        Standing::Open
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

fn looks_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    let is_directory = name == "PWD";
    let mut words = name.split('_').filter(|word| !INNOCENT.contains(word));
    !is_directory
        && words.any(|word| WORDS.contains(&word) || PARTS.iter().any(|part| word.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        let secret = [
            "ANTHROPIC_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GH_TOKEN",
            "npm_config__authToken",
            "PGPASSWORD",
            "DB_PASS",
            "HTTP_AUTHORIZATION",
            "APIKEY",
            "OUTLAST_TOKEN",
        ];
        let open = [
            "PATH",
            "PWD",
            "OLDPWD",
            "GIT_AUTHOR_NAME",
            "KEYBOARD_LAYOUT",
            "TOKENIZERS_PARALLELISM",
            "COMPASS_HOME",
            "OUTLAST_KEY_BASE",
        ];
        let rules = SecretRules::default();
        for name in secret {
            assert_eq!(standing(&rules, name), Standing::Looks, "{name}");
        }
        for name in open {
            assert_eq!(standing(&rules, name), Standing::Open, "{name}");
        }
    }

    #[test]
    fn what_is_off_is_off_whatever_else_is_said() {
        let list = |name: &str| vec![name.to_owned()];
        let rules = SecretRules { names: list("MY_*"), off: list("MY_KEY_ID"), redact: true };
        assert_eq!(standing(&rules, "MY_URL"), Standing::Named);
        assert_eq!(standing(&rules, "MY_KEY_ID"), Standing::Open);
        assert_eq!(standing(&rules, "NOT_MY_URL"), Standing::Open);
    }
}
