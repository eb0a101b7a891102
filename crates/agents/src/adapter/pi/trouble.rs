//! How a turn of pi ended, and why: its errors are texts, a status and after it what the provider has answered.

use serde_json::Value;

use super::texts;
use crate::adapter::event::{End, Event, Trouble, TroubleKind};
use crate::adapter::json::{at, brief, object, text, whole};

pub(super) fn retries(message: &Value) -> Event {
    let number = |name: &str| whole(message, name).and_then(|it| u32::try_from(it).ok());
    Event::Retries {
        attempt: number("attempt").unwrap_or(0),
        most: number("maxAttempts"),
        delay_ms: whole(message, "delayMs"),
        trouble: trouble_of(text(message, "errorMessage").unwrap_or_default()),
    }
}

pub(super) fn failed(kind: TroubleKind, words: &str) -> End {
    End::Failed { trouble: Trouble::new(kind, words) }
}

pub(super) fn end_of(message: &Value) -> End {
    let words = text(message, "errorMessage").unwrap_or_default();
    match text(message, "stopReason") {
        Some("stop") => End::Completed { text: texts(message).collect::<Vec<_>>().join("\n") },
        Some("aborted") => failed(TroubleKind::Cancelled, &brief(words, 2000)),
        Some("error") => End::Failed { trouble: trouble_of(words) },
        Some(reason) => failed(TroubleKind::Other, &format!("its last answer ended with {reason}")),
        None => failed(TroubleKind::Other, "its last answer does not say how it ended"),
    }
}

/// The HTTP status that an error starts with: `429: {…}`, or `529 {…}`.
pub(super) fn status(words: &str) -> Option<u64> {
    let digits = words.split(|it: char| !it.is_ascii_digit()).next()?;
    digits.parse().ok().filter(|status| (400..600).contains(status))
}

fn trouble_of(words: &str) -> Trouble {
    let body = words.find('{').and_then(|start| object(&words.as_bytes()[start..]));
    let body = body.unwrap_or(Value::Null);
    let inner = at(&body, "error").filter(|it| it.is_object()).unwrap_or(&body);
    let named = |name: &str| text(inner, name).or_else(|| text(&body, name));
    let resets_at = whole(inner, "resets_at").or_else(|| whole(&body, "resets_at"));
    let kind = kind_of(status(words), [named("type"), named("code")], words);
    Trouble {
        kind,
        until_ms: resets_at
            .filter(|_| matches!(kind, TroubleKind::Quota | TroubleKind::Throttle))
            .map(|seconds| seconds.saturating_mul(1000)),
        text: brief(words, 2000),
    }
}

fn kind_of(status: Option<u64>, named: [Option<&str>; 2], words: &str) -> TroubleKind {
    let is = |name: &str| named.contains(&Some(name));
    let lower = words.to_lowercase();
    match status {
        _ if is("usage_limit_reached") || is("usage_not_included") || is("insufficient_quota") => {
            TroubleKind::Quota
        }
        _ if is("context_length_exceeded") || lower.contains("prompt is too long") => {
            TroubleKind::ContextFull
        }
        Some(401 | 403) => TroubleKind::Auth,
        Some(402) => TroubleKind::Quota,
        Some(404) => TroubleKind::NoModel,
        Some(413) => TroubleKind::ContextFull,
        Some(429) => TroubleKind::Throttle,
        Some(500..=599) => TroubleKind::Overload,
        _ if is("overloaded_error") || lower == "terminated" => TroubleKind::Overload,
        // For a subscription to ChatGPT pi writes a sentence of its own.
        _ if lower.contains("usage limit") => TroubleKind::Quota,
        _ => TroubleKind::Other,
    }
}

/// Why a prompt was not taken. It is a sentence, and has no type.
pub(super) fn refusal(words: &str) -> Trouble {
    let kind = match words {
        _ if words.contains("No API key") || words.contains("/login") => TroubleKind::Auth,
        _ if words.contains("No model") => TroubleKind::NoModel,
        _ => TroubleKind::Other,
    };
    Trouble::new(kind, brief(words, 2000))
}
