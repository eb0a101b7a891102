//! What comes in by a webhook: whether it is genuine, what it is called, and whether it is wanted.
//!
//! Pure: headers, bytes and the time are arguments. Signatures are compared in constant time.

use hmac::{Hmac, KeyInit, Mac};
use outlast_engine::Time;
use outlast_wire::codes::Code;
use outlast_workflow::notify::base64;
use regex::Regex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::refusal::Refusal;

/// How far a signed time may be off, as Standard Webhooks has it.
const TOLERANCE_MS: u64 = 5 * 60_000;
/// A delivery that calls itself longer than this goes by its hash.
const LONGEST_ID: usize = 200;
const SECRET_PREFIX: &str = "whsec_";

type HmacSha256 = Hmac<Sha256>;

/// The head of a request, as far as it is asked for: a header by its name in lower case.
pub(crate) type Headers<'a> = &'a dyn Fn(&str) -> Option<String>;

/// For how long a body that is signed by itself is known, under whatever id it comes.
pub(crate) const SAME_BODY_MS: u64 = 30 * 24 * 60 * 60_000;

/// By what the sender has shown that it knows the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// A signature over the body and nothing else: a sender that has seen one delivery can send it again under any id.
    OfBody,
    /// A signature over id, time and body, or the secret itself.
    OfDelivery,
}

/// How the sender has shown that it knows the secret, if it has: by a signature over the body
/// (`X-Hub-Signature-256`), by one over the whole delivery (Standard Webhooks), or by the secret itself as a bearer
/// token. A signature that is there has to be right.
pub(crate) fn proof(secret: &str, headers: Headers<'_>, body: &[u8], now: Time) -> Option<Proof> {
    if let Some(signature) = headers("x-hub-signature-256") {
        let tag = signature.strip_prefix("sha256=").and_then(from_hex)?;
        return is_signed(secret.as_bytes(), &[body], &tag).then_some(Proof::OfBody);
    }
    if let Some(signatures) = headers("webhook-signature") {
        return is_standard(secret, &signatures, headers, body, now).then_some(Proof::OfDelivery);
    }
    let bearer = headers("authorization")?;
    let token = bearer.strip_prefix("Bearer ")?;
    is_same(secret, token.trim()).then_some(Proof::OfDelivery)
}

/// What is the same about two deliveries with equal bodies. It has a space, which no id has.
pub(crate) fn body_mark(body: &[u8]) -> String {
    format!("body {}", sha256(body))
}

fn is_standard(
    secret: &str,
    signatures: &str,
    headers: Headers<'_>,
    body: &[u8],
    now: Time,
) -> bool {
    let (Some(id), Some(at)) = (headers("webhook-id"), headers("webhook-timestamp")) else {
        return false;
    };
    let Some(at_ms) = at.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1000)) else {
        return false;
    };
    if at_ms.abs_diff(now.0) > TOLERANCE_MS {
        return false;
    }
    let key = match secret.strip_prefix(SECRET_PREFIX) {
        Some(encoded) => base64::decode(encoded),
        None => Some(secret.as_bytes().to_vec()),
    };
    let Some(key) = key else { return false };
    let signed = [id.as_bytes(), b".", at.as_bytes(), b".", body];
    // Several are sent while a secret is being replaced.
    let of_ours = signatures.split(' ').filter_map(|one| base64::decode(one.strip_prefix("v1,")?));
    of_ours.fold(false, |is_genuine, tag| is_genuine | is_signed(&key, &signed, &tag))
}

fn is_signed(key: &[u8], parts: &[&[u8]], tag: &[u8]) -> bool {
    mac(key, parts).verify_slice(tag).is_ok()
}

/// Both are hashed under one key, so that comparing them tells nothing of either.
fn is_same(secret: &str, token: &str) -> bool {
    let key = secret.as_bytes();
    is_signed(key, &[token.as_bytes()], &mac(key, &[key]).finalize().into_bytes())
}

fn mac(key: &[u8], parts: &[&[u8]]) -> HmacSha256 {
    let mut mac = HmacSha256::new_from_slice(key).expect("a key may have any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

/// What a delivery is called: by its sender, or by its content.
pub(crate) fn delivery_id(id_header: Option<&str>, headers: Headers<'_>, body: &[u8]) -> String {
    let named = id_header.map(str::to_ascii_lowercase);
    let known = named.as_deref().into_iter().chain(["webhook-id", "x-github-delivery"]);
    let id = known.filter_map(headers).find(|id| !id.trim().is_empty());
    match id {
        Some(id) if id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic()) => id,
        Some(id) => sha256(id.as_bytes()),
        None => sha256(body),
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret that cannot be guessed, in the form that Standard Webhooks gives it.
pub(crate) fn new_secret(random: [u8; 32]) -> String {
    format!("{SECRET_PREFIX}{}", base64::encode(&random))
}

/// What is wrong with a secret, if something is.
pub(crate) fn check_secret(secret: &str) -> Result<(), Refusal> {
    let is_good = match secret.strip_prefix(SECRET_PREFIX) {
        Some(encoded) => base64::decode(encoded).is_some_and(|key| key.len() >= 16),
        None => secret.len() >= 8,
    };
    if is_good {
        return Ok(());
    }
    Err(Refusal::new(
        Code::BadSecret,
        "a secret has at least 8 bytes, or is whsec_ and base64 of 16",
    )
    .hint("leave --secret out: a secret is made and shown"))
}

/// One condition on a JSON body.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pointer: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Is(String),
    IsNot(String),
    Matches(Regex),
    Exists,
}

impl Condition {
    /// `/pointer=value`, `/pointer!=value`, `/pointer~regex` or `/pointer`
    pub(crate) fn parse(text: &str) -> Result<Self, Refusal> {
        let bad = |why: String| {
            Refusal::new(Code::BadFilter, why)
                .hint("/action=opened, /action!=closed, /issue/title~^fix, or /issue")
        };
        if !text.starts_with('/') {
            return Err(bad(format!("{text:?} does not begin with a JSON pointer")));
        }
        let Some(at) = text.find(['=', '~', '!']) else {
            return Ok(Self { pointer: text.to_owned(), test: Test::Exists });
        };
        let (pointer, test) = text.split_at(at);
        let test = if let Some(value) = test.strip_prefix("!=") {
            Test::IsNot(value.to_owned())
        } else if let Some(value) = test.strip_prefix('=') {
            Test::Is(value.to_owned())
        } else if let Some(pattern) = test.strip_prefix('~') {
            let pattern = Regex::new(pattern);
            Test::Matches(pattern.map_err(|error| bad(format!("{text:?}: {error}")))?)
        } else {
            return Err(bad(format!("{text:?} has a ! without a =")));
        };
        Ok(Self { pointer: pointer.to_owned(), test })
    }

    pub(crate) fn holds(&self, body: &Value) -> bool {
        let found = body.pointer(&self.pointer);
        let text = found.map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        match (&self.test, text) {
            (Test::Exists, text) => text.is_some(),
            (Test::Is(value), text) => text.as_ref() == Some(value),
            (Test::IsNot(value), text) => text.as_ref() != Some(value),
            (Test::Matches(pattern), text) => text.is_some_and(|text| pattern.is_match(&text)),
        }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests;
