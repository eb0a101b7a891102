//! What goes wrong in opencode, by its own types; by its words only where it gives none.

use serde_json::Value;

use super::super::event::{Trouble, TroubleKind};
use super::super::json::{brief, object, text, whole};
use super::MOST_TEXT;

/// Its own pauses are no longer than 30 s. A longer one is the provider's word.
const MOST_OWN_WAIT_MS: u64 = 30_000;

/// A pause that is longer is a limit that is spent, whatever it is called.
const MOST_WAIT_MS: u64 = 300_000;

/// An event's id begins with its time in milliseconds, the lowest 36 bits of it, and 12 bits of a counter.
const TIME_BITS: u32 = 36;

/// How long the pause is: from the event to the next attempt. There is no clock here, and the event has no other time.
pub(super) fn wait_ms(event: &Value, status: &Value) -> Option<u64> {
    let stamp = text(event, "id")?.strip_prefix("evt_")?.get(..12)?;
    let at_ms = u64::from_str_radix(stamp, 16).ok()? >> 12;
    let mask = (1 << TIME_BITS) - 1;
    let wait = whole(status, "next")?.wrapping_sub(at_ms) & mask;
    // In the upper half, the time is past.
    Some(wait).filter(|wait| *wait <= mask >> 1).or(Some(0))
}

pub(super) fn of_retry(status: &Value, wait_ms: Option<u64>) -> Trouble {
    let words = text(status, "message").unwrap_or("unknown");
    let is_long = wait_ms.is_some_and(|wait| wait > MOST_WAIT_MS);
    let kind = match text(status, "action.reason") {
        Some("free_tier_limit" | "account_rate_limit") => TroubleKind::Quota,
        _ if is_long || says_quota(words) => TroubleKind::Quota,
        _ if says_throttle(words) => TroubleKind::Throttle,
        _ => TroubleKind::Overload,
    };
    let is_of_provider = wait_ms.is_some_and(|wait| wait > MOST_OWN_WAIT_MS);
    let until_ms = whole(status, "next").filter(|_| is_of_provider);
    Trouble { kind, until_ms, text: brief(words, MOST_TEXT) }
}

pub(super) fn of_error(error: &Value) -> Trouble {
    let words = text(error, "data.message").unwrap_or_default();
    let kind = match text(error, "name") {
        Some("MessageAbortedError") => TroubleKind::Cancelled,
        Some("ProviderAuthError") => TroubleKind::Auth,
        Some("ContextOverflowError") => TroubleKind::ContextFull,
        Some("ContentFilterError") => TroubleKind::Refusal,
        Some("ProviderModelNotFoundError") => TroubleKind::NoModel,
        Some("APIError") => of_provider(error, words),
        // A model that it does not know has no type of its own here.
        Some("UnknownError") if words.contains("Model not found") => TroubleKind::NoModel,
        Some("UnknownError") if words.contains("ProviderModelNotFoundError") => {
            TroubleKind::NoModel
        }
        _ => TroubleKind::Other,
    };
    let words = if words.is_empty() { text(error, "name").unwrap_or("unknown") } else { words };
    Trouble::new(kind, brief(words, MOST_TEXT))
}

fn of_provider(error: &Value, words: &str) -> TroubleKind {
    let body = text(error, "data.responseBody").and_then(|it| object(it.as_bytes()));
    let word = |path: &str| body.as_ref().and_then(|it| text(it, path)).unwrap_or_default();
    let codes = [word("error.code"), word("error.type")];
    let has = |wanted: &[&str]| codes.iter().any(|code| wanted.contains(code));
    match whole(error, "data.statusCode") {
        _ if has(&["insufficient_quota", "usage_limit_reached", "billing_error"]) => {
            TroubleKind::Quota
        }
        _ if has(&["context_length_exceeded"]) => TroubleKind::ContextFull,
        _ if has(&["model_not_found"]) => TroubleKind::NoModel,
        Some(401 | 403) => TroubleKind::Auth,
        Some(402) => TroubleKind::Quota,
        Some(404) => TroubleKind::NoModel,
        Some(413) => TroubleKind::ContextFull,
        Some(429) if says_quota(words) => TroubleKind::Quota,
        Some(429) => TroubleKind::Throttle,
        Some(500..=599) => TroubleKind::Overload,
        _ => TroubleKind::Other,
    }
}

/// A call for the session or the prompt that was not answered well.
pub(super) fn of_answer(status: u16, body: &[u8], is_resumed: bool) -> Trouble {
    let said = object(body);
    let words = ["data.message", "message", "name"]
        .iter()
        .find_map(|path| text(said.as_ref()?, path))
        .map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned);
    // An id of another form than its own is a bad request.
    let kind = match status {
        400 | 404 if is_resumed => TroubleKind::CannotResume,
        _ => TroubleKind::Other,
    };
    Trouble::new(kind, format!("opencode answered {status}: {}", brief(&words, MOST_TEXT)))
}

/// A turn that went idle, and not because the agent was done.
pub(super) fn of_finish(finish: Option<&str>) -> Trouble {
    match finish {
        Some("content-filter") => {
            Trouble::new(TroubleKind::Refusal, "the provider filtered the answer")
        }
        Some(finish) => {
            Trouble::new(TroubleKind::Other, format!("the last step ended with {finish}"))
        }
        None => Trouble::new(TroubleKind::Other, "the turn ended without a finished step"),
    }
}

fn says_quota(words: &str) -> bool {
    let words = words.to_lowercase();
    ["usage limit", "usage exceeded", "quota", "add credits", "credit balance", "billing"]
        .iter()
        .any(|it| words.contains(it))
}

fn says_throttle(words: &str) -> bool {
    let words = words.to_lowercase();
    ["rate limit", "rate-limit", "too many requests"].iter().any(|it| words.contains(it))
}
