//! Runs that would go on if a budget or a slot let them. Nothing is wrong with them, and nothing else says that they stand.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlast_engine::ReasonCode;
use outlast_wire::api::{Finding, Level, WaitingView};

use super::finding;
use crate::runs::waiting;
use crate::supervisor::Supervisor;

/// So many runs are named for each cause.
const MOST_NAMED: usize = 5;

pub(super) fn runs(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let mut by_reason: BTreeMap<String, (WaitingView, Vec<String>)> = BTreeMap::new();
    for (id, handle) in supervisor.handles() {
        let run = handle.snapshot.borrow().run.clone();
        let Some(waiting) = waiting::of(supervisor, &run) else { continue };
        let name = run.spec.name.clone().unwrap_or(id.0);
        let reason = waiting.reason.clone();
        by_reason.entry(reason).or_insert_with(|| (waiting, Vec::new())).1.push(name);
    }
    by_reason.into_values().map(|(waiting, names)| told(&waiting, &names)).collect()
}

fn told(waiting: &WaitingView, names: &[String]) -> Finding {
    let count = match names.len() {
        1 => "1 run waits".to_owned(),
        count => format!("{count} runs wait"),
    };
    let is_budget = waiting.cause.known() == Some(ReasonCode::Budget);
    let until = match &waiting.until {
        Some(until) => format!(", until {until}"),
        None if is_budget => String::new(),
        None => ", until a run ends".to_owned(),
    };
    let named = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = if names.len() > MOST_NAMED { ", …" } else { "" };
    let setting = waiting.setting.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    let message = format!("{count}: {}{setting}{until}: {named}{more}", waiting.reason);
    if let Some(child) = waiting.held_by.first() {
        let hint = format!("wait until a child ends, or stop one:\noutlast stop {child}");
        return finding(Level::Warning, waiting.cause.as_str(), message, Some(&hint));
    }
    let hint = match is_budget {
        true => "raise it in config.toml; to see what is left:\noutlast budgets",
        false => "outlast ps",
    };
    finding(Level::Warning, waiting.cause.as_str(), message, Some(hint))
}
