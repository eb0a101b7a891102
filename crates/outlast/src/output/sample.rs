//! Runs for tests to show.

use outlast_wire::api::{AsksView, BlockedView, RunView};
use outlast_wire::words::{StateName, Word};

/// A loop in its third turn, with some of everything.
pub(crate) fn running_loop() -> RunView {
    serde_json::from_str(
        r#"{
        "id": "k3mx7q9w2r5t", "name": "port", "key": null, "state": "running",
        "reason": null, "reason_code": null, "outcome": null,
        "health": "healthy", "task": "port the parser",
        "agent": {"kind": "claude", "command": []},
        "turn": 3, "attempt": 1, "turns_committed": 2,
        "created_at": "2026-11-15T11:57:00Z", "started_at": "2026-11-15T11:57:30Z",
        "ended_at": null, "last_progress_at": "2026-11-15T11:59:00Z", "wake_at": null, "exit": null,
        "usage": {"input_tokens": 12000, "output_tokens": 3400, "cached_tokens": 8000, "cost_usd": 0.42, "known": true},
        "limits": {"max_turns": {"used": 2, "max": 20}, "max_cost_usd_micros": {"used": 420000, "max": 5000000},
            "run_timeout_ms": {"used": 180000, "max": 7200000}},
        "workspace": "/src/.wt/port", "tty": false, "parent": null, "root": "k3mx7q9w2r5t",
        "children": [], "labels": {}, "pid": 41, "shim_pid": 40, "output_bytes": 2048,
        "restarts": {"stall": 1, "crash": 0}, "notices": {"pending": 0, "delivered": 0},
        "summary": "the lexer is there", "survivors": [], "containment": "subreaper", "trouble": null, "seq": 19,
        "phase": "turn 3 attempt 1", "checkpoint": "turn 2 committed", "inbox": {"unread": 2},
        "workflow": {"path": "/src/WORKFLOW.md", "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
        "priority": 5, "strategy": "worktree"
    }"#,
    )
    .expect("a view")
}

/// The same loop, at rest.
pub(crate) fn blocked(code: &str, question: Option<&str>) -> RunView {
    RunView {
        state: StateName::Blocked.into(),
        reason: Some("it needs a person".to_owned()),
        reason_code: Some(Word::of(code)),
        phase: None,
        blocked: Some(BlockedView {
            reason_code: Word::of(code),
            question: question.map(str::to_owned),
            since: "2026-11-15T11:59:00Z".to_owned(),
        }),
        asks: Some(AsksView { seq: 7, turn: 3, kind: "block".to_owned(), tool: None, text: None }),
        ..running_loop()
    }
}
