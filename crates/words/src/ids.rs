//! The small values everything else is made of.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub u64);

impl Time {
    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    pub fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub String);

impl RunId {
    /// Run ids are this many characters of [`RunId::ALPHABET`].
    pub const LENGTH: usize = 12;

    /// Crockford's base 32 in lower case: nothing that is mistaken for something else.
    pub const ALPHABET: &'static [u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

    /// True of a text that may be the id of a run.
    pub fn has_form(text: &str) -> bool {
        text.len() == Self::LENGTH && text.bytes().all(|byte| Self::ALPHABET.contains(&byte))
    }

    /// An id from random bytes.
    pub fn from_random(random: [u8; Self::LENGTH]) -> Self {
        Self(random.iter().map(|byte| char::from(Self::ALPHABET[usize::from(byte % 32)])).collect())
    }

    pub fn is_well_formed(&self) -> bool {
        self.0.len() == Self::LENGTH && self.0.bytes().all(|byte| Self::ALPHABET.contains(&byte))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which boot of the machine a process belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub String);
