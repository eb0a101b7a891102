//! Values of secret variables, kept out of every file and of the output.
//!
//! The agent needs them, so they are in its environment; what it prints of them is replaced line by line, as it is and as
//! JSON writes it. A value that is printed in pieces, or encoded in another way, is out of reach.

use std::borrow::Cow;
use std::ffi::OsString;

/// Parts of names whose values are secret.
const SECRET: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"];

/// Shorter values are words that occur by themselves.
const SHORTEST: usize = 8;

#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets(Vec<(String, String)>);

impl Secrets {
    pub(crate) fn new(env: &[(OsString, OsString)], more: &[&str]) -> Self {
        let secret = env.iter().filter_map(|(name, value)| {
            let (name, value) = (name.to_str()?, value.to_str()?);
            let is_ours = name.starts_with("OUTLAST_") && name != "OUTLAST_TOKEN";
            let is_path = value.starts_with('/');
            let is_secret = SECRET.iter().any(|part| name.to_uppercase().contains(part));
            (is_secret && !is_ours && !is_path).then(|| (value.to_owned(), format!("[{name}]")))
        });
        let more = more.iter().map(|value| ((*value).to_owned(), "[secret]".to_owned()));
        let mut all: Vec<(String, String)> = Vec::new();
        for (value, shown) in secret.chain(more).filter(|(value, _)| value.len() >= SHORTEST) {
            let escaped = serde_json::to_string(&value).unwrap_or_default();
            let escaped = escaped.trim_matches('"').to_owned();
            if escaped != value {
                all.push((escaped, shown.clone()));
            }
            all.push((value, shown));
        }
        // One that is part of another must not take its middle out.
        all.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self(all)
    }

    pub(crate) fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for (value, shown) in &self.0 {
            if text.contains(value.as_str()) {
                text = Cow::Owned(text.replace(value.as_str(), shown));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let env = [
            ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
            ("DB_PASSWORD", "a\"b\\c\nd-123"),
            ("SSH_AUTH_SOCK", "/run/user/1/agent"),
            ("GH_TOKEN", "short"),
            ("LONG_TOKEN", "sk-ant-0123456789-and-more"),
            ("PATH", "sk-not-secret-at-all"),
        ];
        Secrets::new(&env.map(|(name, value)| (name.into(), value.into())), &["made-by-driver"])
    }

    #[test]
    fn values_are_hidden_as_they_are_and_as_json_writes_them() {
        let secrets = secrets();
        assert_eq!(secrets.hide("key=sk-ant-0123456789."), "key=[ANTHROPIC_API_KEY].");
        assert_eq!(secrets.hide("sk-ant-0123456789-and-more"), "[LONG_TOKEN]");
        assert_eq!(secrets.hide("a\"b\\c\nd-123"), "[DB_PASSWORD]");
        let json = serde_json::json!({ "said": "a\"b\\c\nd-123" }).to_string();
        assert_eq!(secrets.hide(&json), r#"{"said":"[DB_PASSWORD]"}"#);
        assert_eq!(secrets.hide("made-by-driver"), "[secret]");
    }

    #[test]
    fn what_is_no_secret_stays() {
        let text = "short /run/user/1/agent sk-not-secret-at-all";
        assert!(matches!(secrets().hide(text), Cow::Borrowed(same) if same == text));
    }
}
