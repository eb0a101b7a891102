//! Errors of agents, by their types. The protocol has few codes of its own; each agent has put its types into `data`.

use serde_json::Value;

use crate::adapter::event::{Trouble, TroubleKind};
use crate::adapter::json::{at, brief, text, whole};

const AUTH_REQUIRED: i64 = -32000;
const NOT_FOUND: i64 = -32002;
const INVALID_PARAMS: i64 = -32602;

const MOST_WORDS: usize = 2000;

pub(super) fn trouble(error: &Value) -> Trouble {
    let message = text(error, "message").unwrap_or_default();
    let more = ["data.message", "data.details", "data.error"].iter().find_map(|it| text(error, it));
    let words = match more {
        Some(more) if !message.contains(more) => format!("{message}: {more}"),
        _ => message.to_owned(),
    };
    Trouble::new(kind(error, message), brief(&words, MOST_WORDS))
}

/// An error that codex-acp tells of while its turn goes on.
pub(super) fn of_thread(error: &Value) -> Trouble {
    let words = text(error, "additionalDetails").or_else(|| text(error, "message"));
    let kind = of_codex(at(error, "codexErrorInfo").unwrap_or(&Value::Null));
    Trouble::new(kind, brief(words.unwrap_or_default(), MOST_WORDS))
}

fn kind(error: &Value, message: &str) -> TroubleKind {
    if let Some(kind) = text(error, "data.errorKind") {
        return of_claude(kind);
    }
    if let Some(info) = at(error, "data.codexErrorInfo").filter(|it| !it.is_null()) {
        return of_codex(info);
    }
    match at(error, "code").and_then(Value::as_i64) {
        Some(AUTH_REQUIRED) => TroubleKind::Auth,
        Some(NOT_FOUND) => TroubleKind::CannotResume,
        Some(INVALID_PARAMS) if message.starts_with("Session not found") => {
            TroubleKind::CannotResume
        }
        Some(code) => u64::try_from(code).map_or(TroubleKind::Other, of_status),
        None => TroubleKind::Other,
    }
}

/// What is left of a limit after the agent's own retries is one that lasts: the type does not tell which it is.
fn of_claude(kind: &str) -> TroubleKind {
    match kind {
        "rate_limit" | "billing_error" => TroubleKind::Quota,
        "authentication_failed" | "oauth_org_not_allowed" => TroubleKind::Auth,
        "overloaded" | "server_error" => TroubleKind::Overload,
        "model_not_found" => TroubleKind::NoModel,
        "max_output_tokens" => TroubleKind::OwnCap,
        _ => TroubleKind::Other,
    }
}

/// A word, or an object of one key whose value may have the status of a response.
fn of_codex(info: &Value) -> TroubleKind {
    let name = info.as_str().or_else(|| info.as_object()?.keys().next().map(String::as_str));
    match name {
        Some("usageLimitExceeded" | "sessionBudgetExceeded") => TroubleKind::Quota,
        Some("contextWindowExceeded") => TroubleKind::ContextFull,
        Some("unauthorized") => TroubleKind::Auth,
        Some("cyberPolicy") => TroubleKind::Refusal,
        Some("serverOverloaded" | "internalServerError") => TroubleKind::Overload,
        Some(name) => {
            let status = at(info, name).and_then(|it| whole(it, "httpStatusCode"));
            status.map_or_else(|| of_connection(name), of_status)
        }
        None => TroubleKind::Other,
    }
}

/// Without a status the provider could not be reached, or has broken off.
fn of_connection(name: &str) -> TroubleKind {
    match name {
        "httpConnectionFailed"
        | "responseStreamConnectionFailed"
        | "responseStreamDisconnected"
        | "responseTooManyFailedAttempts" => TroubleKind::Overload,
        _ => TroubleKind::Other,
    }
}

/// Gemini puts the status of the response into the code.
fn of_status(status: u64) -> TroubleKind {
    match status {
        401 | 403 => TroubleKind::Auth,
        404 => TroubleKind::NoModel,
        413 => TroubleKind::ContextFull,
        429 => TroubleKind::Quota,
        500..=599 => TroubleKind::Overload,
        _ => TroubleKind::Other,
    }
}
