//! Secrets in the strings of a JSON document.
//!
//! Each string is read and, if there is a secret in it, written anew. Everything else keeps its bytes, so that what the
//! document means stays the same, also to a strict reader.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::Secrets;

pub(crate) fn hide<'t>(secrets: &Secrets, document: &'t [u8]) -> Cow<'t, [u8]> {
    if serde_json::from_slice::<&RawValue>(document).is_err() {
        return secrets.hide_bytes(document);
    }
    let mut hidden = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(opens) = document[at..].iter().position(|byte| *byte == b'"') {
        let opens = at + opens;
        let ends = end_of_string(document, opens);
        if let Some(string) = without_secrets(secrets, &document[opens..ends]) {
            hidden.extend_from_slice(&document[from..opens]);
            hidden.extend_from_slice(&string);
            from = ends;
        }
        at = ends;
    }
    if from == 0 {
        return Cow::Borrowed(document);
    }
    hidden.extend_from_slice(&document[from..]);
    Cow::Owned(hidden)
}

/// Behind the quote that closes the string.
fn end_of_string(document: &[u8], opens: usize) -> usize {
    let mut at = opens + 1;
    while let Some(byte) = document.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    document.len()
}

/// `None` if there is none in it.
fn without_secrets(secrets: &Secrets, literal: &[u8]) -> Option<Vec<u8>> {
    let Ok(text) = serde_json::from_slice::<String>(literal) else {
        // Half of a pair of codes, which is JSON and no text.
        return match secrets.hide_bytes(literal) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(hidden),
        };
    };
    match secrets.hide(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(hidden) => serde_json::to_vec(&hidden).ok(),
    }
}
