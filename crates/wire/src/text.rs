//! Text from the operating system, which need not be UTF-8.
//!
//! JSON has no bytes, so what is not UTF-8 travels as `{"hex": "…"}` and comes back unchanged.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OsText(pub OsString);

impl OsText {
    pub fn as_os_str(&self) -> &OsStr {
        &self.0
    }
}

impl From<&str> for OsText {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<OsString> for OsText {
    fn from(text: OsString) -> Self {
        Self(text)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Utf8(String),
    Bytes { hex: String },
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(utf8) => serializer.serialize_str(utf8),
            None => Written::Bytes { hex: to_hex(self.0.as_bytes()) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Utf8(utf8) => Ok(Self(utf8.into())),
            Written::Bytes { hex } => from_hex(&hex)
                .map(|bytes| Self(OsString::from_vec(bytes)))
                .ok_or_else(|| de::Error::custom("hex holds an odd count or a non-hex digit")),
        }
    }
}

fn to_hex(bytes: &[u8]) -> String {
    let digit = |four_bits: u8| char::from_digit(u32::from(four_bits), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok().and_then(|two| u8::from_str_radix(two, 16).ok()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_come_back_unchanged() {
        for bytes in [&b"plain"[..], b"", b"\xff\x00odd", "größe".as_bytes()] {
            let text = OsText(OsString::from_vec(bytes.to_vec()));
            let json = serde_json::to_string(&text).expect("text always serializes");
            assert_eq!(serde_json::from_str::<OsText>(&json).expect("what we wrote reads"), text);
        }
    }

    #[test]
    fn broken_hex_is_refused() {
        for json in [r#"{"hex":"f"}"#, r#"{"hex":"zz"}"#] {
            assert!(serde_json::from_str::<OsText>(json).is_err(), "{json}");
        }
    }
}
