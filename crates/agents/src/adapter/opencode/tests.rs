//! What the recordings do not show.

use serde_json::{Value, json};

use super::super::{
    Act, Adapter, ApprovalMode, Approvals, Decision, End, Event, Heard, Spent, Trouble,
    TroubleKind, Turn, driven,
};

const OWN: &str = "ses_1";

fn turn() -> Turn {
    Turn {
        prompt: "Fix it.\nAll of it.".to_owned(),
        dir: "/repo".to_owned(),
        secret: "s3cret".to_owned(),
        ..Turn::default()
    }
}

fn mode(mode: ApprovalMode) -> Turn {
    Turn { approvals: Approvals { mode, ..Approvals::default() }, ..turn() }
}

fn adapter(turn: Turn) -> Box<dyn Adapter> {
    driven("opencode").unwrap().adapter(turn)
}

fn push(adapter: &mut dyn Adapter, name: &str, properties: Value) -> Vec<Act> {
    let event =
        json!({ "id": "evt_1e30a9efd001RKz89j4IWNltG8", "type": name, "properties": properties });
    adapter.hear(Heard::Pushed(event.to_string().as_bytes()))
}

/// The address is known and the stream has begun: the call for the session.
fn connected(adapter: &mut dyn Adapter) -> Vec<Act> {
    let acts = adapter.hear(Heard::Line(b"opencode server listening on http://127.0.0.1:4096"));
    let connect = Act::Connect { address: "http://127.0.0.1:4096".to_owned(), user: "opencode" };
    assert_eq!(acts, [connect, Act::Listen { path: "/event".to_owned() }]);
    push(adapter, "server.connected", json!({}))
}

/// At work on its prompt.
fn busy(turn: Turn) -> Box<dyn Adapter> {
    let mut it = adapter(turn);
    connected(&mut *it);
    it.hear(Heard::Answer { call: 0, status: 200, body: br#"{"id":"ses_1"}"# });
    it.hear(Heard::Answer { call: 1, status: 204, body: b"" });
    status(&mut *it, OWN, json!({ "type": "busy" }));
    it
}

fn status(adapter: &mut dyn Adapter, session: &str, status: Value) -> Vec<Act> {
    push(adapter, "session.status", json!({ "sessionID": session, "status": status }))
}

fn idle(adapter: &mut dyn Adapter, session: &str) -> Vec<Act> {
    status(adapter, session, json!({ "type": "idle" }))
}

fn message(adapter: &mut dyn Adapter, session: &str, id: &str) -> Vec<Act> {
    let info = json!({ "id": id, "role": "assistant", "sessionID": session });
    push(adapter, "message.updated", json!({ "sessionID": session, "info": info }))
}

fn part(adapter: &mut dyn Adapter, message: &str, id: &str, mut part: Value) -> Vec<Act> {
    part["messageID"] = json!(message);
    part["id"] = json!(id);
    push(adapter, "message.part.updated", json!({ "part": part }))
}

fn finish(reason: &str) -> Value {
    let tokens =
        json!({ "input": 10, "output": 2, "reasoning": 3, "cache": { "read": 5, "write": 1 } });
    json!({ "type": "step-finish", "reason": reason, "tokens": tokens, "cost": 0.001 })
}

fn error(adapter: &mut dyn Adapter, error: Value) -> Vec<Act> {
    push(adapter, "session.error", json!({ "sessionID": OWN, "error": error }))
}

fn calls(acts: &[Act]) -> Vec<(String, Value)> {
    let called = |act: &Act| match act {
        Act::Call { method, path, body, .. } => {
            let body = body.as_ref().map_or(Value::Null, |it| serde_json::from_str(it).unwrap());
            Some((format!("{method} {path}"), body))
        }
        _ => None,
    };
    acts.iter().filter_map(called).collect()
}

fn end(acts: &[Act]) -> Option<&End> {
    acts.iter()
        .find_map(|act| if let Act::Tell(Event::Ended(end)) = act { Some(end) } else { None })
}

fn failure(acts: &[Act]) -> &Trouble {
    match end(acts) {
        Some(End::Failed { trouble }) => trouble,
        other => panic!("{other:?}"),
    }
}

fn variable(turn: Turn, name: &str) -> Option<String> {
    let env = adapter(turn).launch().env;
    env.into_iter().find(|(it, _)| it == name).map(|(_, value)| value)
}

#[test]
fn neither_the_prompt_nor_the_password_is_in_the_command_line() {
    let asked = Turn {
        command: vec!["/opt/opencode".to_owned()],
        args: vec!["--print-logs".to_owned()],
        ..turn()
    };
    let launch = adapter(asked).launch();
    assert_eq!(
        launch.argv.join(" "),
        "/opt/opencode serve --port 0 --hostname 127.0.0.1 --print-logs"
    );
    assert_eq!(variable(turn(), "OPENCODE_SERVER_PASSWORD").as_deref(), Some("s3cret"));
    assert_eq!(variable(turn(), "OPENCODE_SERVER_USERNAME").as_deref(), Some("opencode"));
}

#[test]
fn a_strangers_repository_brings_no_configuration_and_everything_that_acts_asks() {
    for wary in [ApprovalMode::Park, ApprovalMode::Deny] {
        assert_eq!(variable(mode(wary), "OPENCODE_DISABLE_PROJECT_CONFIG").as_deref(), Some("1"));
        let config = variable(mode(wary), "OPENCODE_CONFIG_CONTENT").unwrap();
        let config: Value = serde_json::from_str(&config).unwrap();
        for tool in ["*", "bash", "edit", "webfetch", "external_directory"] {
            assert_eq!(config["permission"][tool], "ask", "{tool}");
        }
        assert_eq!((&config["lsp"], &config["formatter"]), (&json!(false), &json!(false)));
        assert_eq!(config["instructions"], json!(["/repo/AGENTS.md"]));
    }
    let trusted = || mode(ApprovalMode::Allow);
    assert_eq!(variable(trusted(), "OPENCODE_DISABLE_PROJECT_CONFIG"), None);
    let config = variable(trusted(), "OPENCODE_CONFIG_CONTENT").unwrap();
    assert!(config.contains(r#""bash":"ask""#) && !config.contains("lsp"), "{config}");
}

/// Of rules that fit the last counts, so the general one has to be written first.
#[test]
fn the_general_rule_comes_first() {
    let config = variable(turn(), "OPENCODE_CONFIG_CONTENT").unwrap();
    assert!(config.contains(r#""permission":{"*":"ask","#), "{config}");
    assert!(config.contains(r#""read":{"*":"allow","*.env":"ask""#), "{config}");
}

#[test]
fn only_an_address_on_loopback_is_believed() {
    for line in [
        "see http://127.0.0.1:4096",
        "listening on http://127.0.0.1:4096@example.org",
        "listening on http://127.0.0.1.example.org:4096",
        "listening on http://192.168.0.2:4096",
    ] {
        let acts = adapter(turn()).hear(Heard::Line(line.as_bytes()));
        assert_eq!(acts, [Act::Tell(Event::NotUnderstood { lines: 1 })], "{line}");
    }
}

#[test]
fn a_session_is_begun_with_a_title_and_the_prompt_names_model_effort_and_agent() {
    let asked = Turn {
        model: Some("openrouter/z-ai/glm".to_owned()),
        effort: Some("high".to_owned()),
        permission_mode: Some("plan".to_owned()),
        ..turn()
    };
    let mut it = adapter(asked);
    assert!(it.begin().is_empty());
    let opened = connected(&mut *it);
    assert_eq!(calls(&opened), [("POST /session".to_owned(), json!({ "title": "Fix it." }))]);
    let acts = it.hear(Heard::Answer { call: 0, status: 200, body: br#"{"id":"ses_1"}"# });
    assert_eq!(acts[0], Act::Tell(Event::Session { id: OWN.to_owned() }));
    let expected = json!({
        "parts": [{ "type": "text", "text": "Fix it.\nAll of it." }],
        "model": { "providerID": "openrouter", "modelID": "z-ai/glm" },
        "variant": "high",
        "agent": "plan",
    });
    assert_eq!(calls(&acts), [("POST /session/ses_1/prompt_async".to_owned(), expected)]);
}

#[test]
fn a_session_is_gone_on_with_only_if_the_server_knows_it() {
    let resumed = || Turn { session: Some(OWN.to_owned()), ..turn() };
    let mut it = adapter(resumed());
    let opened = connected(&mut *it);
    assert_eq!(calls(&opened), [("GET /session/ses_1".to_owned(), Value::Null)]);
    let acts = it.hear(Heard::Answer { call: 0, status: 200, body: br#"{"id":"ses_1"}"# });
    assert_eq!(calls(&acts).len(), 1);

    let mut it = adapter(resumed());
    connected(&mut *it);
    let body = br#"{"name":"NotFoundError","data":{"message":"Session not found: ses_1"}}"#;
    let acts = it.hear(Heard::Answer { call: 0, status: 404, body });
    assert_eq!(failure(&acts).kind, TroubleKind::CannotResume);
    assert!(failure(&acts).text.contains("Session not found"), "{acts:?}");

    let mut it = adapter(Turn { session: Some("../config".to_owned()), ..turn() });
    assert_eq!(failure(&connected(&mut *it)).kind, TroubleKind::CannotResume);
}

#[test]
fn a_call_that_fails_before_the_turn_has_begun_ends_it() {
    let mut it = adapter(turn());
    connected(&mut *it);
    let acts = it.hear(Heard::Answer { call: 0, status: 0, body: b"connection refused" });
    assert_eq!(failure(&acts).kind, TroubleKind::Other);
    assert_eq!(failure(&acts).text, "opencode answered 0: connection refused");
}

fn ask(adapter: &mut dyn Adapter, session: &str) -> Vec<Act> {
    let properties = json!({ "id": "per_1", "sessionID": session, "permission": "bash",
        "patterns": ["rm x"], "metadata": {}, "tool": { "messageID": "m", "callID": "c" } });
    push(adapter, "permission.asked", properties)
}

#[test]
fn a_parked_question_waits_and_is_answered_once() {
    let mut it = busy(turn());
    message(&mut *it, OWN, "m");
    let input = json!({ "command": "cd y && rm x" });
    let tool = json!({ "type": "tool", "tool": "bash", "callID": "c",
        "state": { "status": "running", "input": input } });
    part(&mut *it, "m", "p", tool);
    let acts = ask(&mut *it, OWN);
    let Act::Tell(Event::Asked(question)) = &acts[0] else { panic!("{acts:?}") };
    assert_eq!(question.tool.as_deref(), Some("bash"));
    assert_eq!(question.text, "bash: rm x\nbash: cd y && rm x");
    assert_eq!(acts.len(), 1);
    let acts = it.decide("per_1", &Decision::Allow);
    let path = "POST /permission/per_1/reply".to_owned();
    assert_eq!(calls(&acts), [(path, json!({ "reply": "once" }))]);
    assert!(it.decide("per_1", &Decision::Allow).is_empty());
    assert!(push(&mut *it, "permission.replied", json!({ "requestID": "per_1" })).is_empty());
}

/// Without a message opencode would end the turn.
#[test]
fn a_refusal_has_a_reason_always_and_a_sub_agents_question_is_answered_too() {
    let mut it = busy(mode(ApprovalMode::Deny));
    let (_, body) = calls(&ask(&mut *it, "ses_child")).remove(0);
    assert_eq!(body["reply"], "reject");
    assert!(body["message"].as_str().unwrap().contains("does not allow it"));

    let mut it = busy(turn());
    ask(&mut *it, OWN);
    let (_, body) = calls(&it.decide("per_1", &Decision::Deny { why: " ".to_owned() })).remove(0);
    assert!(!body["message"].as_str().unwrap().trim().is_empty());

    let mut it = busy(mode(ApprovalMode::Allow));
    let (_, body) = calls(&ask(&mut *it, OWN)).remove(0);
    assert_eq!(body, json!({ "reply": "once" }));
}

#[test]
fn a_question_that_opencode_closes_itself_is_not_open_any_more() {
    let mut it = busy(turn());
    ask(&mut *it, OWN);
    let acts =
        push(&mut *it, "permission.replied", json!({ "requestID": "per_1", "reply": "reject" }));
    assert!(matches!(&acts[0], Act::Tell(Event::Decided { decision: Decision::Deny { .. }, .. })));
    assert!(it.decide("per_1", &Decision::Allow).is_empty());
}

#[test]
fn questions_of_the_model_wait_for_a_person_in_every_mode_and_each_gets_an_answer() {
    let mut it = busy(mode(ApprovalMode::Allow));
    let options = json!([{ "label": "A" }, { "label": "B" }]);
    let questions = json!([{ "question": "Which?", "options": options }, { "question": "Why?" }]);
    let properties = json!({ "id": "que_1", "sessionID": OWN, "questions": questions });
    let acts = push(&mut *it, "question.asked", properties);
    let Act::Tell(Event::Asked(question)) = &acts[0] else { panic!("{acts:?}") };
    assert_eq!((&question.tool, question.text.as_str()), (&None, "Which? [A | B]\nWhy? []"));
    assert_eq!(acts.len(), 1);
    let acts = it.decide("que_1", &Decision::Text { text: "B".to_owned() });
    let path = "POST /question/que_1/reply".to_owned();
    assert_eq!(calls(&acts), [(path, json!({ "answers": [["B"], ["B"]] }))]);
}

#[test]
fn a_message_goes_to_a_turn_that_runs_and_to_no_other() {
    let mut it = adapter(turn());
    assert_eq!(it.steer(7, "early"), None);
    let mut it = busy(turn());
    let acts = it.steer(7, "also this").unwrap();
    let body = json!({ "parts": [{ "type": "text", "text": "also this" }] });
    assert_eq!(calls(&acts), [("POST /session/ses_1/prompt_async".to_owned(), body)]);
    it.cancel();
    assert_eq!(it.steer(7, "late"), None);
}

#[test]
fn a_cancel_is_over_once_the_session_is_idle() {
    let mut it = busy(turn());
    assert_eq!(calls(&it.cancel()), [("POST /session/ses_1/abort".to_owned(), Value::Null)]);
    assert!(it.cancel().is_empty());
    let aborted = json!({ "name": "MessageAbortedError", "data": { "message": "Aborted" } });
    assert!(error(&mut *it, aborted).is_empty());
    assert_eq!(failure(&idle(&mut *it, OWN)).kind, TroubleKind::Cancelled);
    assert!(idle(&mut *it, OWN).is_empty() && it.hear(Heard::End).is_empty());

    let mut it = busy(turn());
    it.cancel();
    let acts = it.hear(Heard::Answer { call: 2, status: 500, body: b"" });
    assert_eq!(failure(&acts).kind, TroubleKind::Cancelled);

    assert_eq!(failure(&adapter(turn()).cancel()).kind, TroubleKind::Cancelled);
}

#[test]
fn idle_without_a_stop_is_no_success() {
    let after = |reason: Option<&str>| {
        let mut it = busy(turn());
        message(&mut *it, OWN, "m");
        part(&mut *it, "m", "p0", json!({ "type": "step-start" }));
        reason.map(|reason| part(&mut *it, "m", "p1", finish(reason)));
        failure(&idle(&mut *it, OWN)).kind
    };
    assert_eq!(after(None), TroubleKind::Other);
    assert_eq!(after(Some("tool-calls")), TroubleKind::Other);
    assert_eq!(after(Some("length")), TroubleKind::Other);
    assert_eq!(after(Some("content-filter")), TroubleKind::Refusal);
}

#[test]
fn errors_are_told_by_their_type() {
    let kind = |it: Value| {
        let mut adapter = busy(turn());
        assert!(error(&mut *adapter, it).is_empty());
        failure(&idle(&mut *adapter, OWN)).kind
    };
    let api = |status: u16, body: &str| {
        json!({ "name": "APIError", "data":
            { "message": "no", "statusCode": status, "isRetryable": false, "responseBody": body } })
    };
    assert_eq!(kind(api(401, "{}")), TroubleKind::Auth);
    assert_eq!(kind(api(404, "{}")), TroubleKind::NoModel);
    assert_eq!(kind(api(429, "{}")), TroubleKind::Throttle);
    let spent = r#"{"error":{"code":"insufficient_quota"}}"#;
    assert_eq!(kind(api(429, spent)), TroubleKind::Quota);
    assert_eq!(kind(api(503, "not json")), TroubleKind::Overload);
    let long = r#"{"error":{"code":"context_length_exceeded"}}"#;
    assert_eq!(kind(api(400, long)), TroubleKind::ContextFull);
    assert_eq!(kind(json!({ "name": "ProviderAuthError" })), TroubleKind::Auth);
    assert_eq!(kind(json!({ "name": "ContextOverflowError" })), TroubleKind::ContextFull);
    let unknown = json!({ "name": "UnknownError", "data": { "message": "Model not found: a/b." } });
    assert_eq!(kind(unknown), TroubleKind::NoModel);
    assert_eq!(kind(json!({ "name": "LaterError" })), TroubleKind::Other);
}

/// A prompt that cannot begin is never busy, so it is never idle.
#[test]
fn an_error_before_the_session_was_busy_ends_the_turn() {
    let mut it = adapter(turn());
    connected(&mut *it);
    it.hear(Heard::Answer { call: 0, status: 200, body: br#"{"id":"ses_1"}"# });
    let unknown = json!({ "name": "UnknownError", "data": { "message": "Model not found: a/b." } });
    assert_eq!(failure(&error(&mut *it, unknown)).kind, TroubleKind::NoModel);
}

/// It sums up its conversation and goes on by itself.
#[test]
fn a_full_context_that_is_followed_by_another_step_is_no_failure() {
    let mut it = busy(turn());
    error(&mut *it, json!({ "name": "ContextOverflowError" }));
    let info = json!({ "id": "m1", "role": "assistant", "summary": true });
    push(&mut *it, "message.updated", json!({ "sessionID": OWN, "info": info }));
    let summary = json!({ "type": "text", "text": "So far …", "time": { "end": 1 } });
    assert!(part(&mut *it, "m1", "p1", summary).is_empty());
    message(&mut *it, OWN, "m2");
    part(&mut *it, "m2", "p2", json!({ "type": "step-start" }));
    part(&mut *it, "m2", "p3", json!({ "type": "text", "text": "Done.", "time": { "end": 1 } }));
    part(&mut *it, "m2", "p4", finish("stop"));
    assert_eq!(end(&idle(&mut *it, OWN)), Some(&End::Completed { text: "Done.".to_owned() }));
}

/// The event's time is in its id: 1794810486525.
#[test]
fn a_short_pause_is_a_retry_and_a_long_one_is_a_limit() {
    const NOW: u64 = 1_794_810_486_525;
    let paused = |words: &str, wait_ms: u64, action: Value| {
        let retry = json!({ "type": "retry", "attempt": 2, "message": words,
            "next": NOW + wait_ms, "action": action });
        status(&mut *busy(turn()), OWN, retry)
    };
    let acts = paused("Provider is overloaded", 2000, Value::Null);
    let trouble = Trouble::new(TroubleKind::Overload, "Provider is overloaded");
    let retries = Event::Retries { attempt: 2, most: None, delay_ms: Some(2000), trouble };
    assert_eq!(acts, [Act::Tell(retries)]);

    // A minute is more than its own pauses, so the provider has said it.
    let acts = paused("Rate Limited: rate limit", 60_000, Value::Null);
    let [Act::Tell(Event::Retries { trouble, .. })] = acts.as_slice() else { panic!("{acts:?}") };
    assert_eq!((trouble.kind, trouble.until_ms), (TroubleKind::Throttle, Some(NOW + 60_000)));

    let limit = |acts: Vec<Act>| {
        let Act::Tell(Event::Window { trouble }) = &acts[0] else { panic!("{acts:?}") };
        assert_eq!(calls(&acts), [("POST /session/ses_1/abort".to_owned(), Value::Null)]);
        (trouble.kind, trouble.until_ms)
    };
    let hour = 3_600_000;
    assert_eq!(limit(paused("no", hour, Value::Null)), (TroubleKind::Quota, Some(NOW + hour)));
    // Its own pause is no end of a limit.
    let quota = paused("You exceeded your current quota", 4000, Value::Null);
    assert_eq!(limit(quota), (TroubleKind::Quota, None));
    let action = json!({ "reason": "free_tier_limit" });
    assert_eq!(limit(paused("any", 1000, action)), (TroubleKind::Quota, None));
}

#[test]
fn a_turn_is_not_over_while_a_sub_agent_is_at_work_and_its_spend_counts() {
    let mut it = busy(turn());
    message(&mut *it, OWN, "m");
    part(&mut *it, "m", "p1", json!({ "type": "text", "text": "Begun.", "time": { "end": 1 } }));
    status(&mut *it, "ses_child", json!({ "type": "busy" }));
    message(&mut *it, "ses_child", "mc");
    let words = json!({ "type": "text", "text": "Found.", "time": { "end": 1 } });
    assert!(part(&mut *it, "mc", "pc1", words).is_empty());
    part(&mut *it, "mc", "pc2", finish("stop"));
    part(&mut *it, "m", "p2", finish("stop"));
    let acts = idle(&mut *it, OWN);
    assert_eq!(acts, [Act::Tell(Event::Background { live: 1 })]);
    assert!(push(&mut *it, "session.idle", json!({ "sessionID": OWN })).is_empty());
    let acts = idle(&mut *it, "ses_child");
    let spent = Spent {
        input_tokens: Some(22),
        output_tokens: Some(10),
        cached_tokens: Some(10),
        cost_usd_micros: Some(2000),
        is_floor: false,
    };
    let ended = Event::Ended(End::Completed { text: "Begun.".to_owned() });
    let told = [Event::Background { live: 0 }, Event::Spent(spent), ended];
    assert_eq!(acts, told.map(Act::Tell));
}

#[test]
fn what_is_of_an_earlier_turn_or_comes_twice_is_dropped() {
    let mut it = busy(turn());
    assert!(part(&mut *it, "old", "p", finish("stop")).is_empty());
    let output = json!({ "status": "completed", "input": {}, "metadata": { "exit": 3 } });
    let tool = json!({ "type": "tool", "tool": "bash", "callID": "c", "state": output });
    assert!(part(&mut *it, "old", "p", tool.clone()).is_empty());
    message(&mut *it, OWN, "m");
    let acts = part(&mut *it, "m", "p1", tool.clone());
    let failed = Event::ToolEnded { id: "c".to_owned(), is_error: true };
    assert_eq!((acts.len(), &acts[1]), (2, &Act::Tell(failed)));
    assert!(part(&mut *it, "m", "p1", tool).is_empty());
    part(&mut *it, "m", "p2", finish("stop"));
    let acts = part(&mut *it, "m", "p2", finish("stop"));
    let Act::Tell(Event::Spent(spent)) = &acts[0] else { panic!("{acts:?}") };
    assert_eq!((spent.input_tokens, spent.is_floor), (Some(11), true));
}

#[test]
fn garbage_is_counted_and_the_end_of_output_is_an_interruption() {
    let mut it = busy(turn());
    for data in [&b"\xff"[..], b"[1]", b"{}", br#"{"type":"session.later"}"#] {
        assert!(matches!(it.hear(Heard::Pushed(data))[0], Act::Tell(Event::NotUnderstood { .. })));
    }
    it.hear(Heard::Answer { call: 99, status: 200, body: b"" });
    message(&mut *it, OWN, "m");
    part(&mut *it, "m", "p", finish("stop"));
    assert_eq!(end(&it.hear(Heard::End)), Some(&End::Interrupted));
    assert!(idle(&mut *it, OWN).is_empty());
}
