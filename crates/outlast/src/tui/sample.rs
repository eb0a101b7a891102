//! Rows for tests to show.

use outlast_wire::api::RunRow;

/// A run that was made so many minutes before [`NOW`].
pub(crate) fn row(id: &str, state: &str, minutes: i64) -> RunRow {
    let now: jiff::Timestamp = NOW.parse().expect("a time");
    let created = now - jiff::SignedDuration::from_mins(minutes);
    let ended = ["completed", "failed", "stopped", "exhausted"].contains(&state);
    RunRow {
        id: id.to_owned(),
        name: None,
        state: state.to_owned(),
        reason_code: (state == "blocked").then(|| "agent_blocked".to_owned()),
        health: "healthy".to_owned(),
        health_since: None,
        health_why: None,
        trigger: None,
        asks_seq: None,
        what: "make -j8".to_owned(),
        turn: 1,
        attempt: 1,
        created_at: created.to_string(),
        started_at: Some(created.to_string()),
        ended_at: ended.then(|| NOW.to_owned()),
        exit: None,
        labels: std::collections::BTreeMap::new(),
        survivors: 0,
        trouble: None,
        phase: None,
        last_line: None,
        max_turns: None,
        cost_usd: 0.0,
        tokens: 0,
        parent: None,
    }
}

pub(crate) const NOW: &str = "2026-11-15T12:00:00Z";
