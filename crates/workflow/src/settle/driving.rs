//! How an agent that speaks a protocol is driven: the vendor's own names, and who decides when it asks.

use outlast_engine::{Approvals, Driving, SessionRules};

use super::Origin;
use super::sheet::Sheet;
use crate::node::Value;
use crate::problem::Code;
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
        session: session(sheet),
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

fn session(sheet: &mut Sheet<'_>) -> SessionRules {
    let key = "agent.session";
    let Some(node) = sheet.given(key) else { return SessionRules::default() };
    if let Some(word) = node.text() {
        sheet.note(key, word, Origin::Workflow { line: node.line });
        let every = (word == "fresh").then_some(1);
        return SessionRules { every, ..SessionRules::default() };
    }
    let refresh_at = sheet.given("agent.session.refresh_at");
    let every = sheet.given("agent.session.every");
    let is_map = matches!(node.value, Value::Map(_));
    if is_map && refresh_at.is_none() && every.is_none() {
        let message = "must be keep, fresh, or a map with refresh_at or every";
        let problem = sheet.problem(Code::BadValue, key, message).at(node.line);
        sheet.errors.push(problem.hint("such as `session: { refresh_at: 0.8 }`"));
    }
    // What is no number of its kind was refused before.
    let rules = SessionRules {
        every: every.and_then(|it| u32::try_from(it.whole()?).ok()),
        refresh_at_millionths: refresh_at.and_then(|it| values::share(it).ok()),
    };
    for (name, node) in [("refresh_at", refresh_at), ("every", every)] {
        if let Some(node) = node {
            let origin = Origin::Workflow { line: node.line };
            sheet.note(&format!("{key}.{name}"), node.quoted(), origin);
        }
    }
    rules
}
