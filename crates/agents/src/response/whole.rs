//! Whether bytes are one whole JSON text that can be read in one way only. What it says is not looked at.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{BadResponse, MAX_BYTES};
use crate::quote::quote;

/// Lists and objects within each other. Less than JSON readers allow, since others wrap what is in here.
const DEEPEST: usize = 64;

pub(super) fn check(bytes: &[u8]) -> Result<&str, BadResponse> {
    if bytes.len() > MAX_BYTES {
        return Err(BadResponse::TooLarge);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| BadResponse::NotUtf8 { at: error.valid_up_to() })?;
    if text.trim_ascii().is_empty() {
        return Err(BadResponse::Empty);
    }
    let flaw = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_str(text);
    let walked = Walk { left: DEEPEST, flaw: &flaw }.deserialize(&mut reader);
    match walked.and_then(|()| reader.end()) {
        Ok(()) => Ok(text),
        Err(error) => Err(bad(&error, flaw.take())),
    }
}

enum Flaw {
    Twice { key: String },
    TooDeep,
}

fn bad(error: &serde_json::Error, flaw: Option<Flaw>) -> BadResponse {
    let (line, column) = (error.line(), error.column());
    match flaw {
        Some(Flaw::Twice { key }) => BadResponse::TwiceTheKey { key: quote(&key), line, column },
        Some(Flaw::TooDeep) => BadResponse::TooDeep { line, column },
        None if error.is_eof() => BadResponse::CutShort { line, column },
        None => BadResponse::NotJson { why: error.to_string() },
    }
}

/// Visits every value and keeps none. What only we mind is left in `flaw`, because the reader's own error
/// would tell it as text.
#[derive(Clone, Copy)]
struct Walk<'a> {
    left: usize,
    flaw: &'a RefCell<Option<Flaw>>,
}

impl Walk<'_> {
    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        match self.left.checked_sub(1) {
            Some(left) => Ok(Self { left, ..self }),
            None => Err(self.refuse(Flaw::TooDeep)),
        }
    }

    fn refuse<E: serde::de::Error>(self, flaw: Flaw) -> E {
        self.flaw.replace(Some(flaw));
        E::custom("refused")
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while list.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut keys = HashSet::new();
        while let Some(key) = object.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(self.refuse(Flaw::Twice { key }));
            }
            keys.insert(key);
            object.next_value_seed(inner)?;
        }
        Ok(())
    }
}
