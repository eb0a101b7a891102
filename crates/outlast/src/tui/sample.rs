//! Rows for tests to show.

use outlast_wire::api::RunRow;
use outlast_wire::words::{Health, ReasonCode, StateName, Word};

/// A run that was made so many minutes before [`NOW`].
pub(crate) fn row(id: &str, state: &str, minutes: i64) -> RunRow {
    let now: jiff::Timestamp = NOW.parse().expect("a time");
    let created = now - jiff::SignedDuration::from_mins(minutes);
    let state = Word::<StateName>::of(state);
    let is_blocked = state == StateName::Blocked;
    RunRow {
        id: id.to_owned(),
        name: None,
        state: state.clone(),
        reason_code: is_blocked.then(|| ReasonCode::AgentBlocked.into()),
        health: Health::Healthy.into(),
        health_since: None,
        health_why: None,
        changed_at: None,
        wake_at: None,
        paused: false,
        worked_ms: None,
        attempts_failed: 0,
        max_attempts: None,
        stalls: 0,
        trigger: None,
        asks_seq: None,
        what: "make -j8".to_owned(),
        task: None,
        turn: 1,
        attempt: 1,
        created_at: created.to_string(),
        started_at: Some(created.to_string()),
        ended_at: state.has_ended().then(|| NOW.to_owned()),
        exit: None,
        labels: std::collections::BTreeMap::new(),
        survivors: 0,
        trouble: None,
        phase: None,
        question: None,
        summary: None,
        last_line: None,
        max_turns: None,
        cost_usd: 0.0,
        tokens: 0,
        known: true,
        money_known: true,
        tokens_known: true,
        unreported_usd: 0.0,
        unreported_tokens: 0,
        unreported_attempts: 0,
        parent: None,
        agent: None,
    }
}

pub(crate) const NOW: &str = "2026-11-15T12:00:00Z";
