//! Values that must not be shown: given in the config, or found elsewhere by the code that needs them.

use std::fmt;

use super::base64;

/// What begins a key of Standard Webhooks.
const PREFIX: &str = "whsec_";

#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    Given(String),
    /// A variable of the daemon's environment.
    Env(String),
    /// The first line of a file.
    File(String),
}

impl Secret {
    /// `env:NAME`, `file:PATH`, or the value itself.
    pub(crate) fn read(text: &str) -> Self {
        if let Some(name) = text.strip_prefix("env:") {
            return Self::Env(name.to_owned());
        }
        match text.strip_prefix("file:") {
            Some(path) => Self::File(path.to_owned()),
            None => Self::Given(text.to_owned()),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given(…)"),
            Self::Env(name) => write!(f, "Env({name:?})"),
            Self::File(path) => write!(f, "File({path:?})"),
        }
    }
}

/// The bytes to sign with, or why there are none.
pub fn signing_key(text: &str) -> Result<Vec<u8>, String> {
    let encoded = text
        .strip_prefix(PREFIX)
        .ok_or_else(|| format!("a signing secret begins with {PREFIX}"))?;
    let key = base64::decode(encoded)
        .ok_or_else(|| format!("what follows {PREFIX} in a signing secret is not Base64"))?;
    match key.len() {
        24..=64 => Ok(key),
        bytes => Err(format!("a signing secret has 24 to 64 bytes, this one has {bytes}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_says_where_it_is_and_never_what() {
        let told = ["hunter2", "env:HOOK", "file:/run/hook"]
            .map(|text| format!("{:?}", Secret::read(text)));
        assert_eq!(told, ["Given(…)", "Env(\"HOOK\")", "File(\"/run/hook\")"]);
    }

    #[test]
    fn only_a_key_of_the_right_length_signs() {
        let key = format!("whsec_{}", base64::encode(&[7; 24]));
        assert_eq!(signing_key(&key), Ok(vec![7; 24]));
        let short = format!("whsec_{}", base64::encode(&[7; 23]));
        for bad in ["whsec_", "whsec_?", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &short] {
            assert!(signing_key(bad).is_err(), "{bad}");
        }
    }
}
