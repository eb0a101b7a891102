//! Which variables the operator calls secret.

use outlast_engine::SecretRules;

use crate::node::Node;
use crate::problem::{Code, Problem};

/// A name that cannot be one is an error: what it was meant to keep secret would be shown.
pub(crate) fn rules(file: &str, root: &Node) -> Result<SecretRules, Vec<Problem>> {
    let list = |path: &'static str| {
        let items = root.get(path).map_or(&[][..], Node::items).iter();
        let named = items.map(move |item| {
            let name = item.text().unwrap_or_default();
            let message = format!("must be names of variables, got {}", item.quoted());
            let problem = Problem::new(Code::BadValue, file, message).at(item.line).key(path);
            let hint = "such as MY_DSN or MY_*; * alone would be every variable";
            if is_name(name) { Ok(name.to_owned()) } else { Err(problem.hint(hint)) }
        });
        named.collect::<Vec<Result<String, Problem>>>()
    };
    let (names, off) = (list("secrets.names"), list("secrets.off"));
    let wrong: Vec<Problem> =
        names.iter().chain(&off).filter_map(|it| it.as_ref().err()).cloned().collect();
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(SecretRules {
        redact: root.get("secrets.redact").and_then(Node::flag).unwrap_or(true),
        names: names.into_iter().flatten().collect(),
        off: off.into_iter().flatten().collect(),
    })
}

fn is_name(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    !name.is_empty() && !name.contains(['*', '=', '\0']) && !name.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Config, Source};

    fn parse(text: &str) -> Result<(Config, Vec<Problem>), crate::Refused> {
        Config::parse(&Source { path: Path::new("config.toml"), text })
    }

    #[test]
    fn names_are_added_and_taken_away() {
        let (config, warnings) = parse("").unwrap();
        assert_eq!((config.secrets, warnings), (SecretRules::default(), Vec::new()));
        let text = "[secrets]\nredact = false\nnames = [\"MY_*\", \"DSN\"]\noff = [\"KEY_ID\"]\n";
        let (config, warnings) = parse(text).unwrap();
        assert_eq!(warnings, []);
        let SecretRules { redact, names, off } = config.secrets;
        assert_eq!(
            (redact, names, off.join(" ")),
            (false, vec!["MY_*".into(), "DSN".into()], "KEY_ID".into())
        );
    }

    #[test]
    fn what_is_no_name_and_what_is_no_key_are_said() {
        for name in ["*", "", "A=b", "MY KEY", "A*B"] {
            let problems = parse(&format!("[secrets]\nnames = [{name:?}]\n")).unwrap_err();
            let expected =
                format!("config.toml:2: secrets.names: must be names of variables, got {name:?}");
            assert_eq!(problems.errors[0].to_string(), expected);
        }
        assert!(parse("[secrets]\nredact = \"no\"\n").is_err());
        let problems = parse("[secrets]\nname = [\"A\"]\n").unwrap_err().errors;
        assert_eq!(problems[0].hint.as_deref(), Some("did you mean secrets.names?"));
    }
}
