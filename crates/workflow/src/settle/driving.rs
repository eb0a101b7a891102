//! How an agent that speaks a protocol is driven: the vendor's own names, and who decides when it asks.

use outlast_engine::{Approvals, Driving};

use super::Origin;
use super::sheet::Sheet;
use crate::values;

pub(super) fn driving(sheet: &mut Sheet<'_>) -> Driving {
    Driving {
        model: text(sheet, "agent.model"),
        effort: text(sheet, "agent.effort"),
        permission_mode: text(sheet, "agent.permission_mode"),
        args: texts(sheet, "agent.args"),
        approvals: approvals(sheet),
        allow: texts(sheet, "approvals.allow"),
        patience_ms: patience(sheet),
        timeout_ms: timeout(sheet),
    }
}

/// Only what is given is noted: an agent of another kind has none of these.
fn text(sheet: &mut Sheet<'_>, key: &str) -> Option<String> {
    let (text, line) = sheet.text(key)?;
    sheet.note(key, text, Origin::Workflow { line });
    Some(text.to_owned())
}

fn texts(sheet: &mut Sheet<'_>, key: &str) -> Vec<String> {
    let Some(node) = sheet.given(key) else { return Vec::new() };
    let texts = node.texts();
    sheet.note(key, texts.join(" "), Origin::Workflow { line: node.line });
    texts
}

fn patience(sheet: &mut Sheet<'_>) -> Option<u64> {
    let key = "approvals.patience_ms";
    let (ms, line) = sheet.whole(key)?;
    sheet.note(key, ms, Origin::Workflow { line });
    Some(ms)
}

fn timeout(sheet: &mut Sheet<'_>) -> Option<u64> {
    let key = "approvals.timeout";
    let node = sheet.given(key)?;
    let span = values::span(node)?;
    let spelt = span.map_or_else(|| "never".to_owned(), |ms| values::spelt_span(Some(ms)));
    sheet.note(key, spelt, Origin::Workflow { line: node.line });
    span
}

fn approvals(sheet: &mut Sheet<'_>) -> Approvals {
    let key = "approvals.mode";
    let Some((word, line)) = sheet.text(key) else { return Approvals::default() };
    sheet.note(key, word, Origin::Workflow { line });
    match word {
        "deny" => Approvals::Deny,
        "allow" => Approvals::Allow,
        // Any other word was refused before.
        _ => Approvals::Park,
    }
}
