//! HTTP errors, in each vendor's own headers and body.

use serde_json::{Value, json};

use super::request::Dialect;

pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Value,
}

/// When a quota is there again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reset {
    in_s: u64,
    /// The same, since 1970.
    at: u64,
    /// The end of a shorter window that is used up as well, since 1970.
    earlier: Option<u64>,
}

impl Reset {
    /// All in seconds: now is since 1970, the rest is from now on.
    pub(super) fn new(now: u64, earlier: Option<u64>, in_s: u64) -> Self {
        Self { in_s, at: now + in_s, earlier: earlier.map(|earlier| now + earlier) }
    }
}

/// With `is_quota` it is a quota that is used up, whether or not it is said until when.
pub(super) fn refusal(
    dialect: Dialect,
    status: u16,
    is_quota: bool,
    reset: Option<Reset>,
) -> Refusal {
    let mut refusal = Refusal { status, headers: Vec::new(), body: plain(dialect, status) };
    match reset {
        Some(reset) => refusal.limit(dialect, reset),
        None if is_quota => refusal.quota(dialect),
        None => {}
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
    /// A quota, and no word on its end.
    fn quota(&mut self, dialect: Dialect) {
        if matches!(dialect, Dialect::Responses) {
            self.body = json!({ "error": { "type": "usage_limit_reached", "plan_type": "pro",
                "message": "The usage limit has been reached" } });
        }
    }

    fn limit(&mut self, dialect: Dialect, reset: Reset) {
        const DAY_S: u64 = 86_400;
        let Reset { in_s, at, earlier } = reset;
        // Of two windows that are used up, the shorter one ends first, and is the one that is named.
        let (short, long) = earlier.map_or((at, at + DAY_S), |earlier| (earlier, at));
        let is_both = earlier.is_some();
        let mut set = |start: &str, pairs: &[(&str, String)]| {
            let named = pairs.iter().map(|(name, value)| (format!("{start}{name}"), value.clone()));
            self.headers.extend(named);
        };
        match dialect {
            Dialect::Anthropic => {
                set("", &[("retry-after", (in_s - (at - short).min(in_s)).to_string())]);
                let unified = [
                    ("status", "rejected".to_owned()),
                    ("reset", short.to_string()),
                    ("representative-claim", "five_hour".to_owned()),
                    ("5h-status", "rejected".to_owned()),
                    ("5h-reset", short.to_string()),
                    ("5h-utilization", "1.0".to_owned()),
                    ("7d-status", if is_both { "rejected" } else { "allowed" }.to_owned()),
                    ("7d-reset", long.to_string()),
                    ("7d-utilization", if is_both { "1.0" } else { "0.4" }.to_owned()),
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
                    ("primary-reset-at", short.to_string()),
                    ("secondary-used-percent", if is_both { "100.0" } else { "40.0" }.to_owned()),
                    ("secondary-window-minutes", "10080".to_owned()),
                    ("secondary-reset-at", long.to_string()),
                ];
                set("x-codex-", &windows);
                self.body = json!({ "error": { "type": "usage_limit_reached", "plan_type": "pro",
                    "message": "The usage limit has been reached", "resets_at": short, "resets_in_seconds": in_s - (at - short).min(in_s) } });
            }
        }
    }
}
