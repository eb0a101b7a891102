//! How an agent that speaks a protocol is driven: the vendor's own names, and who decides when it asks.

use outlast_agents::adapter::{DRIVEN, Declared};
use outlast_engine::{Approvals, Driving, SessionRules};

use super::sheet::Sheet;
use super::{Origin, agent};
use crate::node::Value;
use crate::problem::{Code, Problem};
use crate::values;

pub(super) fn driving(sheet: &mut Sheet<'_>, kind: &str) -> Driving {
    refuse_flags(sheet, kind);
    let table = agent::declared(sheet, kind);
    if let Some(table) = table.filter(|table| table.declared.like.is_none()) {
        refuse_without_flag(sheet, kind, &table.declared);
        remark_on_approvals(sheet);
    }
    let (flags, args) = (sheet.overrides, texts(sheet, "agent.args", None));
    Driving {
        model: text(sheet, "agent.model", flags.model.as_ref()),
        effort: text(sheet, "agent.effort", flags.effort.as_ref()),
        permission_mode: text(sheet, "agent.permission_mode", None),
        args,
        approvals: approvals(sheet),
        allow: texts(sheet, "approvals.allow", flags.allow.as_ref()),
        patience_ms: patience(sheet),
        timeout_ms: timeout(sheet),
        session: session(sheet),
        declared: table.map(|table| table.json.clone()),
    }
}

/// What the agent's program has no flag for cannot be asked of it.
fn refuse_without_flag(sheet: &mut Sheet<'_>, kind: &str, table: &Declared) {
    let flags = sheet.overrides;
    for (key, name, flag, given) in [
        ("agent.model", "model_flag", &table.model_flag, flags.model.is_some()),
        ("agent.effort", "effort_flag", &table.effort_flag, flags.effort.is_some()),
        ("agent.permission_mode", "permission_flag", &table.permission_flag, false),
    ] {
        let node = sheet.given(key);
        if flag.is_some() || (node.is_none() && !given) {
            continue;
        }
        let message = format!("agents of kind {kind} take none");
        let problem = sheet.problem(Code::BadValue, key, message);
        let problem = if let Some(node) = node { problem.at(node.line) } else { problem };
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

/// A command takes no part in any of this, and what a flag asks for is not passed over in silence.
fn refuse_flags(sheet: &mut Sheet<'_>, kind: &str) {
    if agent::is_driven(sheet, kind) {
        return;
    }
    let flags = sheet.overrides;
    let given = [
        ("--approvals", flags.approvals.is_some()),
        ("--allow", flags.allow.is_some()),
        ("--model", flags.model.is_some()),
        ("--effort", flags.effort.is_some()),
    ];
    let kinds: Vec<&str> = DRIVEN.iter().map(|driven| driven.name).collect();
    let kinds = kinds.join(", ");
    for (flag, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        let message =
            format!("{flag} is for an agent that is driven; an agent of kind {kind} is a command");
        let problem = Problem::new(Code::NotDriven, sheet.file, message);
        sheet.errors.push(problem.hint(format_args!("--agent KIND names one of {kinds}")));
    }
}

/// Only what is given is noted: an agent of another kind has none of these.
fn text(sheet: &mut Sheet<'_>, key: &str, flag: Option<&String>) -> Option<String> {
    if let Some(flag) = flag {
        sheet.note(key, flag, Origin::CommandLine);
        return Some(flag.clone());
    }
    let (text, line) = sheet.text(key)?;
    sheet.note(key, text, Origin::Workflow { line });
    Some(text.to_owned())
}

fn texts(sheet: &mut Sheet<'_>, key: &str, flag: Option<&Vec<String>>) -> Vec<String> {
    if let Some(flag) = flag {
        sheet.note(key, flag.join(" "), Origin::CommandLine);
        return flag.clone();
    }
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
    if let Some(flag) = sheet.overrides.approvals {
        sheet.note(key, flag.word(), Origin::CommandLine);
        return flag;
    }
    let Some((word, line)) = sheet.text(key) else { return Approvals::default() };
    sheet.note(key, word, Origin::Workflow { line });
    // Any other word was refused before.
    Approvals::of(word).unwrap_or_default()
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
