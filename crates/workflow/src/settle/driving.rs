//! How an agent that speaks a protocol is driven: the vendor's own names, and who decides when it asks.

use outlast_agents::adapter::Declared;
use outlast_engine::{Approvals, Driving};

use super::sheet::Sheet;
use super::{Origin, agent};
use crate::problem::Code;

pub(super) fn driving(sheet: &mut Sheet<'_>, kind: &str) -> Driving {
    let table = agent::declared(sheet, kind);
    if let Some(table) = table.filter(|table| table.declared.like.is_none()) {
        refuse_without_flag(sheet, kind, &table.declared);
        remark_on_approvals(sheet);
    }
    Driving {
        model: text(sheet, "agent.model"),
        effort: text(sheet, "agent.effort"),
        permission_mode: text(sheet, "agent.permission_mode"),
        args: texts(sheet, "agent.args"),
        approvals: approvals(sheet),
        allow: texts(sheet, "approvals.allow"),
        declared: table.map(|table| table.json.clone()),
    }
}

/// What the agent's program has no flag for cannot be asked of it.
fn refuse_without_flag(sheet: &mut Sheet<'_>, kind: &str, table: &Declared) {
    for (key, name, flag) in [
        ("agent.model", "model_flag", &table.model_flag),
        ("agent.effort", "effort_flag", &table.effort_flag),
        ("agent.permission_mode", "permission_flag", &table.permission_flag),
    ] {
        let Some(node) = sheet.given(key).filter(|_| flag.is_none()) else { continue };
        let message = format!("agents of kind {kind} take none");
        let problem = sheet.problem(Code::BadValue, key, message).at(node.line);
        let hint = format!("agents.{kind}.{name} in {} would say how", sheet.config.file);
        sheet.errors.push(problem.hint(hint));
    }
}

/// It asks nothing, so no answer holds it back.
fn remark_on_approvals(sheet: &mut Sheet<'_>) {
    let mode = sheet.given("approvals.mode").filter(|node| node.text() != Some("allow"));
    let given = [("approvals.mode", mode), ("approvals.allow", sheet.given("approvals.allow"))];
    for (key, node) in given {
        let Some(node) = node else { continue };
        let message =
            "has no effect on an agent that asks nothing: it may do what its command lets it do";
        sheet.warnings.push(sheet.problem(Code::NoEffect, key, message).at(node.line));
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
