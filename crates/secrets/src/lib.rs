//! Secret values, kept out of everything that is written and shown.
//!
//! Pure: an environment and the operator's rules in, [`Secrets`] out; text in, text out. A value is looked for as it is and
//! as JSON writes it. One that is encoded in another way (base64, a hash, another alphabet) is not found.
//!
//! In reading order: `names` says which variables are secret, `values` which of their values count and in what forms they are
//! looked for, `search` finds them, `stream` does so in bytes that come in pieces, `json` in strings of a document.

#![forbid(unsafe_code)]

mod names;

mod values;

mod search;

mod stream;

mod json;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

pub use outlast_words::SecretRules;
pub use search::TELLING;
pub use stream::Redactor;
pub use values::{LEAST_LOOKING, LEAST_NAMED};

use crate::names::Standing;
use crate::search::Search;

/// The secret values of one environment. A clone is cheap.
#[derive(Debug, Clone, Default)]
pub struct Secrets(Option<Arc<Search>>);

impl Secrets {
    /// The secrets in `env` by the operator's rules, and `more`, which are secret whatever the rules say.
    pub fn of<'a>(
        rules: &SecretRules,
        env: impl IntoIterator<Item = (&'a OsStr, &'a OsStr)>,
        more: &[&str],
    ) -> Self {
        let mut search = Search::default();
        for value in more {
            search.add("secret", values::forms(value.as_bytes(), LEAST_NAMED));
        }
        let env = env.into_iter().filter(|_| rules.redact);
        for (name, value) in env {
            let (name, value) = (name.to_string_lossy(), value.as_bytes());
            let forms = match names::standing(rules, &name) {
                Standing::Open => continue,
                Standing::Looks if !values::looks_secret(&name, value) => continue,
                Standing::Looks => values::forms(value, LEAST_LOOKING),
                Standing::Named => values::forms(value, LEAST_NAMED),
            };
            search.add(&name, forms);
        }
        Self(search.ready().map(Arc::new))
    }

    /// True if nothing is hidden.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text without its secrets, and without more than half of one at its end.
    pub fn hide<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.hide_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The same in place.
    pub fn hide_in(&self, text: &mut String) {
        if let Cow::Owned(hidden) = self.hide(text) {
            *text = hidden;
        }
    }

    pub fn hide_bytes<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let Some(search) = &self.0 else { return Cow::Borrowed(bytes) };
        let mut hidden = Vec::new();
        match search.pass_all(bytes, &mut hidden) {
            0 => Cow::Borrowed(bytes),
            _ => Cow::Owned(hidden),
        }
    }

    /// A JSON document without secrets in its strings, in whatever way they are escaped; the rest of it stays as it is.
    /// What is not JSON is read as text.
    pub fn hide_json<'t>(&self, document: &'t [u8]) -> Cow<'t, [u8]> {
        if self.is_empty() { Cow::Borrowed(document) } else { json::hide(self, document) }
    }

    /// For bytes that come in pieces.
    pub fn redactor(&self) -> Redactor {
        Redactor::new(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(rules: &SecretRules) -> Secrets {
        let env = [
            ("ANTHROPIC_API_KEY", "sk-ant-0123456789"),
            ("DB_PASSWORD", "a\"b\\c\nd-123/é"),
            ("SSH_AUTH_SOCK", "/run/user/1/agent"),
            ("GH_TOKEN", "short"),
            ("LONG_TOKEN", "sk-ant-0123456789-and-more"),
            ("PLAIN", "sk-not-secret-at-all"),
        ];
        let env = env.map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
        Secrets::of(rules, env, &["made-by-driver"])
    }

    #[test]
    fn values_are_hidden_as_they_are_and_as_json_writes_them() {
        let secrets = secrets(&SecretRules::default());
        assert_eq!(secrets.hide("key=sk-ant-0123456789."), "key=[ANTHROPIC_API_KEY].");
        assert_eq!(secrets.hide("sk-ant-0123456789-and-more"), "[LONG_TOKEN]");
        assert_eq!(secrets.hide("sk-ant-0123456789-and-mor!"), "[ANTHROPIC_API_KEY]-and-mor!");
        assert_eq!(secrets.hide("a\"b\\c\nd-123/é"), "[DB_PASSWORD]");
        assert_eq!(secrets.hide("a\"b\\c\r\nd-123/é"), "[DB_PASSWORD]", "as a terminal has it");
        let json = serde_json::json!({ "said": "a\"b\\c\nd-123/é" }).to_string();
        assert_eq!(secrets.hide(&json), r#"{"said":"[DB_PASSWORD]"}"#);
        assert_eq!(secrets.hide(r#"a\"b\\c\nd-123\/é"#), "[DB_PASSWORD]", "a slash escaped");
        assert_eq!(
            secrets.hide(r#"a\"b\\c\nd-123/\u00e9"#),
            "[DB_PASSWORD]",
            "as Python writes it"
        );
        assert_eq!(secrets.hide("made-by-driver"), "[secret]");
    }

    #[test]
    fn what_is_no_secret_stays() {
        let text = "short /run/user/1/agent sk-not-secret-at-all";
        let secrets = secrets(&SecretRules::default());
        assert!(matches!(secrets.hide(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn the_operator_adds_names_takes_some_back_and_turns_all_of_it_off() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        let more =
            secrets(&SecretRules { names: names(&["PL*", "GH_TOKEN"]), ..Default::default() });
        assert_eq!(more.hide("sk-not-secret-at-all, short"), "[PLAIN], [GH_TOKEN]");
        let less = secrets(&SecretRules { off: names(&["ANTHROPIC_*"]), ..Default::default() });
        assert_eq!(less.hide("sk-ant-0123456789!"), "sk-ant-0123456789!");
        let none = secrets(&SecretRules { redact: false, ..Default::default() });
        assert_eq!(none.hide("sk-ant-0123456789 made-by-driver"), "sk-ant-0123456789 [secret]");
    }

    #[test]
    fn a_document_is_hidden_in_its_strings_however_they_are_escaped() {
        let secrets = secrets(&SecretRules::default());
        let document = r#"{ "a" : "\u0073k-ant-\u00301234\u00356789", "n": 12.50, "n": [true] }"#;
        let hidden = secrets.hide_json(document.as_bytes());
        let expected = r#"{ "a" : "[ANTHROPIC_API_KEY]", "n": 12.50, "n": [true] }"#;
        assert_eq!(String::from_utf8_lossy(&hidden), expected);
        let plain = br#"{"a":"\u0073k"}"#;
        assert!(matches!(secrets.hide_json(plain), Cow::Borrowed(same) if same == plain));
        let broken = br#"{"a":"sk-ant-0123456789 and no end"#;
        let expected = br#"{"a":"[ANTHROPIC_API_KEY] and no end"#;
        assert_eq!(&*secrets.hide_json(broken), expected);
    }
}
