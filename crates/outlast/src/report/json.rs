//! The report for scripts. Every object of a list has the same keys.

use outlast_wire::api::NightView;
use serde_json::{Value, json};

use super::facts::Facts;
use super::sort::{Groups, Item};

pub(crate) fn json(facts: &Facts, groups: &Groups) -> Value {
    let items = |items: &[Item]| items.iter().map(item).collect::<Value>();
    let NightView { known_from, unknown_before, problem, starts, missed, .. } = &facts.night;
    json!({
        "now": facts.now.to_string(),
        "since": facts.since.to_string(),
        "needs_person": groups.needs_person(facts),
        "needs_you": items(&groups.needs_you),
        "done": items(&groups.done),
        "not_done": items(&groups.not_done),
        "waiting": items(&groups.waiting),
        "running": items(&groups.running),
        "spent": {
            "reported_usd": groups.spent.reported_usd,
            "unreported_usd": groups.spent.unreported_usd,
            "unreported_runs": groups.spent.unreported_runs,
            "tokens": groups.spent.tokens,
            "unreported_tokens": groups.spent.unreported_tokens,
        },
        "budgets": facts.budgets,
        "night": {
            "known_from": known_from,
            "unknown_before": unknown_before,
            "problem": problem,
            "starts": starts,
            "missed": missed,
            "lost_runs": groups.lost,
            "sinks": facts.sinks,
            "held_since": facts.held_since,
        },
        "config_problems": facts.config,
    })
}

fn item(item: &Item) -> Value {
    json!({
        "id": item.id,
        "name": item.name,
        "state": item.state.as_str(),
        "reason_code": item.reason_code,
        "at": item.at.map(|at| at.to_string()),
        "took_ms": item.took_ms,
        "note": item.note,
        "branch": item.branch,
        "runs": item.runs,
        "trigger": item.trigger,
        "wake_at": item.wake_at.map(|at| at.to_string()),
        "commands": item.commands,
    })
}
