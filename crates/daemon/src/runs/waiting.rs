//! Why a run that wants to go on does not: a budget that is spent, or no free slot.

use outlast_conduct::budgets::BudgetStatus;
use outlast_conduct::slots::Full;
use outlast_engine::{Channel, ReasonCode, Run, RunId, State, WaitCause};
use outlast_wire::api::WaitingView;
use outlast_workflow::{Period, money};

use super::names;
use crate::supervisor::Supervisor;
use crate::view;

/// What a run waits for that a person can change in the config; `None` if it goes on, or waits for something else.
pub(crate) fn of(supervisor: &Supervisor, run: &Run) -> Option<WaitingView> {
    match run.state {
        State::Waiting { cause: WaitCause::Budget, until, .. } => {
            if let Some((channel, held)) = run.held_by() {
                return Some(by_children(supervisor, channel, &held));
            }
            let budgets = supervisor.budgets();
            let is_full = |it: &&BudgetStatus| it.is_full() && it.rule.covers(&run.spec.labels);
            let full = budgets.iter().filter(is_full).max_by_key(|it| it.resets_at());
            Some(WaitingView {
                cause: ReasonCode::Budget.into(),
                reason: full.map_or_else(|| run.why.reason.clone(), reason),
                until: until.map(view::rfc3339),
                tz: full.and_then(|it| it.day.as_ref()).map(|day| day.zone.clone()),
                held_by: Vec::new(),
                setting: full.map(setting),
            })
        }
        // Its workspace is made first, or it was let go on a moment ago: it comes to its next turn, and then it would wait.
        State::Preparing | State::Running
            if run.live().is_none() && run.live_errand().is_none() && run.counts_in_budgets() =>
        {
            let budgets = supervisor.budgets();
            let is_spent = |it: &&BudgetStatus| it.is_spent() && it.rule.covers(&run.spec.labels);
            let spent = budgets.iter().filter(is_spent).max_by_key(|it| it.resets_at())?;
            Some(WaitingView {
                cause: ReasonCode::Budget.into(),
                reason: reason(spent),
                until: spent.resets_at().map(view::rfc3339),
                tz: spent.day.as_ref().map(|day| day.zone.clone()),
                held_by: Vec::new(),
                setting: Some(setting(spent)),
            })
        }
        State::Queued | State::Waiting { cause: WaitCause::Slot, .. } => {
            let full = supervisor.full(run)?;
            let (reason, setting) = full_words(&full);
            let (cause, until, tz) = (ReasonCode::Slot.into(), None, None);
            Some(WaitingView { cause, reason, until, tz, held_by: Vec::new(), setting })
        }
        _ => None,
    }
}

/// So many children are named.
const MOST_NAMED: usize = 3;

/// No setting is in the way: the run's own children hold what it lacks, and give back what is left when they end.
fn by_children(supervisor: &Supervisor, channel: Channel, held: &[(&RunId, u64)]) -> WaitingView {
    let name = |id: &RunId| {
        let run = supervisor.handle(id).map(|it| it.snapshot.borrow().run.clone());
        let called = run.and_then(|run| names::called(&*supervisor.ground.store, &run).ok());
        called.unwrap_or_else(|| id.0.clone())
    };
    let amount = |amount: u64| match channel {
        Channel::Money => money::shown(amount),
        Channel::Tokens => format!("{amount} tokens"),
        Channel::Turns => format!("{amount} turns"),
        Channel::Runs => format!("{amount} runs"),
    };
    let what = match channel {
        Channel::Money => "money",
        Channel::Tokens => "tokens",
        Channel::Turns => "turns",
        Channel::Runs => "runs",
    };
    let held: Vec<(String, u64)> = held.iter().map(|(id, amount)| (name(id), *amount)).collect();
    let told: Vec<String> = held
        .iter()
        .take(MOST_NAMED)
        .map(|(name, held)| format!("{name} holds {}", amount(*held)))
        .collect();
    let more = if held.len() > MOST_NAMED { ", …" } else { "" };
    WaitingView {
        cause: ReasonCode::Budget.into(),
        reason: format!("its children hold what is left of its {what} ({}{more})", told.join(", ")),
        until: None,
        tz: None,
        held_by: held.into_iter().map(|(name, _)| name).collect(),
        setting: None,
    }
}

fn reason(budget: &BudgetStatus) -> String {
    let BudgetStatus { rule, used, reserved, .. } = budget;
    let whose = match (rule.label.as_deref(), rule.per) {
        (None, Period::Day) => "today's budget".to_owned(),
        (None, Period::Total) => format!("the budget {}", rule.name),
        (Some(label), Period::Day) => format!("today's budget of {label}"),
        (Some(label), Period::Total) => format!("the budget of {label}"),
    };
    let most = rule.max_cost_usd_micros.filter(|most| {
        used.amount.cost_usd_micros.saturating_add(reserved.cost_usd_micros) >= *most
    });
    let (used_words, held_words, max_words) = match most {
        Some(most) => (
            money::shown(used.amount.cost_usd_micros),
            money::shown(reserved.cost_usd_micros),
            money::shown(most),
        ),
        None => (
            used.amount.tokens.to_string(),
            reserved.tokens.to_string(),
            format!("{} tokens", rule.max_tokens.unwrap_or(0)),
        ),
    };
    let unreported = match most {
        Some(_) => used.reserved.cost_usd_micros > 0,
        None => used.reserved.tokens > 0,
    };
    let reported = match most {
        Some(_) => used.amount.cost_usd_micros > used.reserved.cost_usd_micros,
        None => used.amount.tokens > used.reserved.tokens,
    };
    // A figure that nothing has reported is a bound, and no fact.
    let (bound, mark) = match (unreported, reported) {
        (false, _) => ("", ""),
        (true, false) => ("≤ ", ", not reported"),
        (true, true) => ("≤ ", ", not all of it reported"),
    };
    if budget.is_spent() {
        format!("{whose} is spent ({bound}{used_words} of {max_words}{mark})")
    } else {
        format!(
            "{whose} has no room ({bound}{used_words} used{mark}, {held_words} held for running turns, of {max_words})"
        )
    }
}

fn setting(budget: &BudgetStatus) -> String {
    match &budget.rule.label {
        None => format!("[budgets.{}]", budget.rule.name),
        Some(label) => format!("[budgets.labels.\"{label}\"]"),
    }
}

/// What holds the run, and the setting that says so.
fn full_words(full: &Full) -> (String, Option<String>) {
    let several = |count: u32, what: &str| match count {
        1 => format!("1 {what} is"),
        count => format!("{count} {what}s are"),
    };
    match full {
        Full::InAll { most } => (
            format!("{} running, which is the limit", several(*most, "run")),
            Some("max_runs in [concurrency]".to_owned()),
        ),
        Full::Label { label, most } => (
            format!("{} running with label {label}, which is the limit", several(*most, "run")),
            Some("[concurrency.per_label]".to_owned()),
        ),
        Full::File { most } => (
            format!("{} running from this file, which is the limit", several(*most, "run")),
            Some("agent.max_concurrent_agents in the loop file".to_owned()),
        ),
        Full::Queue { name, most } => (
            format!("{} running in queue {name}, which is the limit", several(*most, "run")),
            Some(format!("--queue {name}:N of the newest run")),
        ),
        Full::Memory { least_mb } => (
            format!("less than {least_mb} MiB of memory are free"),
            Some("min_free_memory_mb in [concurrency]".to_owned()),
        ),
        Full::Behind => ("other queued runs start first".to_owned(), None),
    }
}
