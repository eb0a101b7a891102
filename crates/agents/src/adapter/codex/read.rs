//! What the parts of Codex's messages mean: items, counts, limits and errors.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::adapter::event::{Spent, TroubleKind};
use crate::adapter::json::{at, brief, list, text, whole};

/// The code of nearly every refusal.
pub(super) const INVALID_REQUEST: i64 = -32600;

const MOST_ABOUT: usize = 200;

/// Known, and nothing that we need.
pub(super) const NOT_NEEDED: [&str; 41] = [
    "account/login/completed",
    "account/updated",
    "app/list/updated",
    "configWarning",
    "deprecationNotice",
    "guardianWarning",
    "hook/completed",
    "hook/started",
    "item/agentMessage/delta",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "mcpServer/oauthLogin/completed",
    "mcpServer/startupStatus/updated",
    "model/verification",
    "rawResponseItem/completed",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/archived",
    "thread/closed",
    "thread/compacted",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "thread/unarchived",
    "turn/diff/updated",
    "turn/plan/updated",
    "turn/settings/updated",
    "warning",
];

/// An item that is the use of a tool: the tool's name, and what it is used on.
pub(super) fn tool(item: &Value) -> Option<(String, String)> {
    let of = |name| text(item, name).unwrap_or_default().to_owned();
    let (name, about) = match text(item, "type")? {
        "commandExecution" => (of("type"), of("command")),
        "fileChange" => (of("type"), paths(item)),
        "mcpToolCall" => (mcp_name(&of("server"), &of("tool")), arguments(item)),
        "dynamicToolCall" => (of("tool"), arguments(item)),
        "collabAgentToolCall" => (of("tool"), of("prompt")),
        "webSearch" => (of("type"), of("query")),
        "imageView" => (of("type"), of("path")),
        "imageGeneration" | "sleep" => (of("type"), String::new()),
        _ => return None,
    };
    Some((name, brief(&about, MOST_ABOUT)))
}

/// As the model has it, and as other agents name it.
pub(super) fn mcp_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

fn arguments(item: &Value) -> String {
    at(item, "arguments").map(Value::to_string).unwrap_or_default()
}

pub(super) fn paths(item: &Value) -> String {
    let of = |change: &Value| {
        let kind = text(change, "kind.type").unwrap_or("change");
        format!("{kind} {}", text(change, "path").unwrap_or("a file"))
    };
    let all: Vec<String> = list(item, "changes").iter().map(of).collect();
    all.join(", ")
}

pub(super) fn has_failed(item: &Value) -> bool {
    matches!(text(item, "status"), Some("failed" | "declined"))
        || at(item, "success").and_then(Value::as_bool) == Some(false)
}

/// One call. What was read from a cache is part of `inputTokens`, reasoning of `outputTokens`.
pub(super) fn spent(last: &Value) -> Spent {
    let (input, cached) = (whole(last, "inputTokens"), whole(last, "cachedInputTokens"));
    Spent {
        input_tokens: input.map(|input| input.saturating_sub(cached.unwrap_or(0))),
        output_tokens: whole(last, "outputTokens"),
        cached_tokens: cached,
        cost_usd_micros: None,
        is_floor: true,
    }
}

/// `codexErrorInfo` is a word, or an object of one word and a status of HTTP.
pub(super) fn kind(info: &Value) -> TroubleKind {
    let (word, status) = match info {
        Value::String(word) => (word.as_str(), None),
        Value::Object(of) => of
            .iter()
            .next()
            .map_or(("", None), |(word, more)| (word.as_str(), whole(more, "httpStatusCode"))),
        _ => ("", None),
    };
    match (word, status) {
        ("usageLimitExceeded", _) => TroubleKind::Quota,
        ("sessionBudgetExceeded", _) => TroubleKind::OwnCap,
        ("contextWindowExceeded", _) | (_, Some(413)) => TroubleKind::ContextFull,
        ("unauthorized", _) | (_, Some(401 | 403)) => TroubleKind::Auth,
        ("rateLimitExceeded", _) | (_, Some(429)) => TroubleKind::Throttle,
        ("modelNotFound", _) | (_, Some(404)) => TroubleKind::NoModel,
        ("cyberPolicy", _) => TroubleKind::Refusal,
        (_, Some(500..=599))
        | (
            "serverOverloaded" | "internalServerError" | "policyCapacityUnavailable" | "flexUnavailable",
            _,
        )
        // The provider could not be reached at all.
        | (
            "httpConnectionFailed"
            | "responseStreamConnectionFailed"
            | "responseStreamDisconnected"
            | "responseTooManyFailedAttempts",
            None,
        ) => TroubleKind::Overload,
        _ => TroubleKind::Other,
    }
}

/// An error of a request of ours, by which no turn fails.
pub(super) fn is_of_a_request(error: &Value) -> bool {
    let info = at(error, "codexErrorInfo").unwrap_or(&Value::Null);
    info == "threadRollbackFailed" || at(info, "activeTurnNotSteerable").is_some()
}

/// `Reconnecting... 2/5`: the protocol has it in no other place.
pub(super) fn attempt(words: &str) -> Option<(u32, u32)> {
    let (attempt, most) = words.split(' ').find_map(|word| word.split_once('/'))?;
    Some((attempt.parse().ok()?, most.parse().ok()?))
}

/// The limits of the account as they were last heard, by their names.
#[derive(Default)]
pub(super) struct Windows(BTreeMap<String, Window>);

#[derive(PartialEq)]
struct Window {
    used_percent: f64,
    resets_at: Option<u64>,
}

impl Windows {
    /// Takes over what is news, and says whether anything was: a window that is null has none.
    pub(super) fn merge(&mut self, limits: &Value) -> bool {
        let limit = text(limits, "limitId").unwrap_or("codex");
        let mut is_news = false;
        for name in ["primary", "secondary", "individualLimit"] {
            let Some(window) = at(limits, name).and_then(window) else { continue };
            let name = format!("{limit} {name}");
            is_news |= self.0.get(&name) != Some(&window);
            self.0.insert(name, window);
        }
        is_news
    }

    /// When the last of the windows that are spent is open again.
    pub(super) fn until_ms(&self) -> Option<u64> {
        let spent = self.0.values().filter(|window| window.used_percent >= 100.0);
        let seconds = spent.filter_map(|window| window.resets_at).max()?;
        Some(seconds.saturating_mul(1000))
    }
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (name, window)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{name}: {} % used", window.used_percent)?;
        }
        Ok(())
    }
}

fn window(value: &Value) -> Option<Window> {
    let percent = |name| at(value, name).and_then(Value::as_f64);
    let used_percent =
        percent("usedPercent").or(percent("remainingPercent").map(|it| 100.0 - it))?;
    Some(Window { used_percent, resets_at: whole(value, "resetsAt") })
}
