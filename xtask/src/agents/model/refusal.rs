//! HTTP errors, in each vendor's own headers and body.

use serde_json::{Value, json};

use super::request::Dialect;

pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

/// `reset` is when a quota is there again: in so many seconds, and the time of that since 1970.
pub(super) fn refusal(dialect: Dialect, status: u16, reset: Option<(u64, u64)>) -> Refusal {
    let mut refusal = Refusal { status, headers: Vec::new(), body: plain(dialect, status) };
    if let Some((in_s, at)) = reset {
        refusal.limit(dialect, in_s, at);
    }
    refusal
}

fn plain(dialect: Dialect, status: u16) -> Value {
    let message = format!("scripted {status}");
    let (kind, google) = match status {
        401 => ("authentication_error", "UNAUTHENTICATED"),
        429 => ("rate_limit_error", "RESOURCE_EXHAUSTED"),
        _ => ("api_error", "INTERNAL"),
    };
    match dialect {
        Dialect::Anthropic => {
            json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_fake" })
        }
        Dialect::Gemini => {
            json!({ "error": { "code": status, "message": message, "status": google } })
        }
        Dialect::Responses | Dialect::Chat => {
            json!({ "error": { "type": kind, "code": kind, "message": message, "param": null } })
        }
    }
}

impl Refusal {
    fn limit(&mut self, dialect: Dialect, in_s: u64, at: u64) {
        const DAY_S: u64 = 86_400;
        let mut set = |start: &str, pairs: &[(&str, String)]| {
            let named = pairs.iter().map(|(name, value)| (format!("{start}{name}"), value.clone()));
            self.headers.extend(named);
        };
        match dialect {
            Dialect::Anthropic => {
                set("", &[("retry-after", in_s.to_string())]);
                let unified = [
                    ("status", "rejected".to_owned()),
                    ("reset", at.to_string()),
                    ("representative-claim", "five_hour".to_owned()),
                    ("5h-status", "rejected".to_owned()),
                    ("5h-reset", at.to_string()),
                    ("5h-utilization", "1.0".to_owned()),
                    ("7d-status", "allowed".to_owned()),
                    ("7d-reset", (at + DAY_S).to_string()),
                    ("7d-utilization", "0.4".to_owned()),
                    ("overage-status", "rejected".to_owned()),
                    ("overage-disabled-reason", "org_level_disabled".to_owned()),
                ];
                set("anthropic-ratelimit-unified-", &unified);
            }
            Dialect::Gemini => {
                let types = "type.googleapis.com/google.rpc";
                self.body["error"]["details"] = json!([
                    { "@type": format!("{types}.QuotaFailure"),
                      "violations": [{ "quotaId": "GenerateRequestsPerDayPerProjectPerModel" }] },
                    { "@type": format!("{types}.RetryInfo"), "retryDelay": format!("{in_s}s") }
                ]);
            }
            Dialect::Responses | Dialect::Chat => {
                set("", &[("retry-after", in_s.to_string())]);
                let windows = [
                    ("primary-used-percent", "100.0".to_owned()),
                    ("primary-window-minutes", "300".to_owned()),
                    ("primary-reset-at", at.to_string()),
                    ("secondary-used-percent", "40.0".to_owned()),
                    ("secondary-window-minutes", "10080".to_owned()),
                    ("secondary-reset-at", (at + DAY_S).to_string()),
                ];
                set("x-codex-", &windows);
                self.body = json!({ "error": { "type": "usage_limit_reached", "plan_type": "pro",
                    "message": "The usage limit has been reached", "resets_at": at, "resets_in_seconds": in_s } });
            }
        }
    }
}
