//! One turn of a run: what was asked, what was answered, and what the host did about it.

use jiff::Timestamp;
use outlast_wire::api::{AttemptView, CommittedView, ErrandView, ToolsView, TurnView};
use outlast_wire::shim::Exit;
use outlast_workflow::duration::short;
use serde_json::Value;

use super::{exit_value, spend_words, transcript};
use crate::output::figures;
use crate::output::page::{Page, shell_words};
use crate::output::state::spaced;
use crate::output::time::local;

/// `typed` is what the person calls the run.
pub(super) fn page(view: &TurnView, typed: &str, columns: Option<usize>) -> String {
    let mut page = Page::fitting(columns);
    let is_name = !view.run.starts_with(typed);
    let id = if is_name { format!(" ({})", view.run) } else { String::new() };
    page.line("run", &format!("{}{id}", if is_name { typed } else { &view.run }));
    page.line("turn", &view.turn.to_string());
    match &view.committed {
        Some(turn) => committed(&mut page, turn),
        None => page.line("status", "not committed"),
    }
    if let Some(known) = &view.snapshot {
        let (files, added, deleted) = (known.files, known.added, known.deleted);
        let what = format!(
            "{}, +{added} -{deleted}",
            figures::count(usize::try_from(files).unwrap_or(usize::MAX), "file")
        );
        page.line("changes", &format!("{what}: outlast diff {} {}", view.run, view.turn));
        known.left_out.iter().for_each(|name| page.line("left out", name));
    }
    if let Some(offered) = &view.tools {
        tools(&mut page, offered);
    }
    view.attempts.iter().for_each(|one| attempt(&mut page, view, one));
    view.errands.iter().for_each(|view| errand(&mut page, view));
    page.text
}

fn committed(page: &mut Page, turn: &CommittedView) {
    page.line("status", &status(turn));
    page.line("committed", &format!("{} by attempt {}", local(&turn.at), turn.attempt));
    page.some("summary", turn.summary.as_deref().map(str::trim));
    page.some("next task", turn.next_task.as_deref().map(str::trim));
    page.some("spend", turn.usage.as_ref().and_then(spend_words).as_deref());
    let changed =
        turn.workspace_changed.map(|changed| if changed { "changed" } else { "unchanged" });
    page.some("workspace", changed);
    for call in &turn.tool_calls {
        page.line("tool call", &call_words(call));
    }
}

/// `continue, files changed`
fn status(turn: &CommittedView) -> String {
    match (turn.status.as_str(), turn.outcome.as_str()) {
        ("continue", "meaningful_completion") => "continue, files changed".to_owned(),
        ("continue", "no_op_success") => "continue, nothing changed".to_owned(),
        (status, _) => spaced(status),
    }
}

/// `fetch {"url":"…"}`
fn call_words(call: &Value) -> String {
    let Some(name) = call.get("name").and_then(Value::as_str) else { return call.to_string() };
    let input = match call.get("input") {
        // The journal keeps the input as it was written.
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let key = call.get("key").and_then(Value::as_str).map(|key| format!(" (key {key})"));
    format!("{name} {input}{}", key.unwrap_or_default())
}

fn tools(page: &mut Page, offered: &ToolsView) {
    if !offered.model_class.is_empty() {
        page.line("model", &spaced(&offered.model_class));
    }
    if !offered.allowed.is_empty() {
        page.line("tools", &offered.allowed.join(" "));
    }
    for tool in &offered.unavailable {
        page.line("not there", &format!("{}: {}", tool.name, spaced(&tool.reason_code)));
    }
    for call in &offered.refused {
        let (number, name, code) = (call.call, &call.name, spaced(&call.reason_code));
        page.line("refused", &format!("call {number}, {name}: {code}: {}", call.why));
    }
}

fn attempt(page: &mut Page, turn: &TurnView, view: &AttemptView) {
    page.heading(&format!("attempt {}", view.attempt));
    page.line("outcome", &ending(view.outcome.as_deref(), view.exit));
    page.some("started", view.started_at.as_deref().map(local).as_deref());
    page.some("took", took(view.started_at.as_deref(), view.ended_at.as_deref()).as_deref());
    page.some("spend", view.usage.as_ref().and_then(spend_words).as_deref());
    page.line("output", &figures::bytes(view.output_bytes));
    page.text("note", &view.note.as_ref().map(note).unwrap_or_default());
    page.text("prompt", view.prompt.as_deref().unwrap_or_default());
    if let Some(agent) = &view.agent {
        let all =
            format!("outlast logs {} --turn {} --attempt {}", turn.run, turn.turn, view.attempt);
        let is_over = view.outcome.is_some();
        page.text("transcript", &transcript::text(agent, &all, is_over));
    }
    page.text("response", &view.response.as_ref().map(response).unwrap_or_default());
    if !is_told(view) {
        page.verbatim("output ends with", &view.output_tail);
    }
    if view.output_gone {
        page.line("output", "gone from the disk");
    }
}

/// True if the output of a driven agent has nothing that its transcript has not.
fn is_told(view: &AttemptView) -> bool {
    let has_events = view.agent.as_ref().is_some_and(|agent| !agent.events.is_empty());
    has_events && matches!(view.exit, None | Some(Exit::Code(0)))
}

/// The attempts whose output is gone, as an error says it.
pub(super) fn gone(view: &TurnView) -> Vec<String> {
    let gone = view.attempts.iter().filter(|attempt| attempt.output_gone);
    gone.map(|attempt| format!("t{}.a{}", view.turn, attempt.attempt)).collect()
}

fn errand(page: &mut Page, view: &ErrandView) {
    page.heading(&view.purpose);
    page.line("command", &shell_words(&view.command));
    page.line("outcome", &ending(view.outcome.as_deref(), view.exit));
    page.some("took", took(view.started_at.as_deref(), view.ended_at.as_deref()).as_deref());
    page.verbatim("output ends with", &view.output_tail);
}

/// `exited, code 1`
fn ending(outcome: Option<&str>, exit: Option<Exit>) -> String {
    let exit = exit.map(|exit| format!(", {}", exit_value(exit))).unwrap_or_default();
    outcome.map_or_else(|| "running".to_owned(), |outcome| format!("{}{exit}", spaced(outcome)))
}

fn took(from: Option<&str>, to: Option<&str>) -> Option<String> {
    let time = |at: Option<&str>| at?.parse::<Timestamp>().ok();
    let ms = time(to)?.as_millisecond() - time(from)?.as_millisecond();
    Some(short(u64::try_from(ms).ok()?))
}

/// Its sentence; what else it carries is for the agent.
fn note(note: &Value) -> String {
    match note.get("text").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => pretty(note),
    }
}

/// What was not JSON is shown as it was written.
fn response(response: &Value) -> String {
    match response {
        Value::String(raw) => raw.clone(),
        other => pretty(other),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON can be written")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_turn_can_be_followed_from_the_prompt_to_the_checks() {
        let view: TurnView = serde_json::from_value(json!({
            "run": "k3mx7q9w2r5t", "turn": 2,
            "committed": {"attempt": 2, "at": "2026-11-15T11:59:00Z", "status": "continue",
                "outcome": "meaningful_completion", "summary": "the lexer is there",
                "next_task": "write the parser", "workspace_changed": true,
                "tool_calls": [{"name": "fetch", "input": "{\"url\":\"x\"}", "key": "a1"}],
                "usage": {"input_tokens": 900, "output_tokens": 100, "cached_tokens": 0, "cost_usd": 0.1, "known": false}},
            "attempts": [
                {"attempt": 1, "started_at": "2026-11-15T11:57:00Z", "ended_at": "2026-11-15T11:58:00Z",
                    "outcome": "stalled", "exit": {"signal": 9}, "output_bytes": 10,
                    "prompt": "Port it.\n\nKeep the tests.\n", "output_tail": "working…\n"},
                {"attempt": 2, "started_at": "2026-11-15T11:58:10Z", "ended_at": "2026-11-15T11:59:00Z",
                    "outcome": "exited", "exit": {"code": 0}, "output_bytes": 2048,
                    "note": {"cause": "stalled", "text": "the previous attempt stalled"},
                    "response": {"status": "continue"}}
            ],
            "errands": [{"number": 3, "purpose": "check done 1/1", "command": ["sh", "-c", "cargo test"],
                "outcome": "exited", "exit": {"code": 1}, "output_tail": "1 failed\n",
                "started_at": "2026-11-15T11:59:00Z", "ended_at": "2026-11-15T11:59:03Z"}],
            "tools": {"model_class": "small_local", "allowed": ["fetch"],
                "unavailable": [{"name": "build", "reason_code": "heavy_tool"}],
                "refused": [{"call": 2, "name": "rm", "reason_code": "unknown_tool", "why": "there is none"}]}
        }))
        .expect("a turn");
        insta::assert_snapshot!(page(&view, "k3m", None), @r#"
        run        k3mx7q9w2r5t
        turn       2
        status     continue, files changed
        committed  2026-11-15 11:59:00 UTC by attempt 2
        summary    the lexer is there
        next task  write the parser
        spend      $0.10, 1000 tokens (900 in, 100 out, 0 cached), not all of it reported
        workspace  changed
        tool call  fetch {"url":"x"} (key a1)
        model      small local
        tools      fetch
        not there  build: heavy tool
        refused    call 2, rm: unknown tool: there is none

        attempt 1
        outcome    stalled, SIGKILL
        started    2026-11-15 11:57:00 UTC
        took       1m
        output     10 B
        prompt
          Port it.

          Keep the tests.
        output ends with
          working…

        attempt 2
        outcome    exited, code 0
        started    2026-11-15 11:58:10 UTC
        took       50s
        output     2.0 KiB
        note
          the previous attempt stalled
        response
          {
            "status": "continue"
          }

        check done 1/1
        command    sh -c 'cargo test'
        outcome    exited, code 1
        took       3s
        output ends with
          1 failed
        "#);
    }

    #[test]
    fn a_turn_that_is_under_way_says_so() {
        let view: TurnView = serde_json::from_value(
            json!({"run": "k3m", "turn": 1, "attempts": [{"attempt": 1, "response": "not json"}]}),
        )
        .expect("a turn");
        insta::assert_snapshot!(page(&view, "k3m", None), @r"
        run        k3m
        turn       1
        status     not committed

        attempt 1
        outcome    running
        output     0 B
        response
          not json
        ");
    }
}
