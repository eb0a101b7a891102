//! What no recording shows: the bytes that are sent, refusals, limits and work beside the turn.

use serde_json::{Value, json};

use crate::adapter::event::{End, Event, Spent, Trouble, TroubleKind};
use crate::adapter::{
    Act, Adapter, ApprovalMode, Approvals, Decision, Heard, SessionMark, Transport, Turn, driven,
};

fn adapter(turn: Turn) -> Box<dyn Adapter> {
    driven("codex").expect("a driven kind").adapter(turn)
}

fn with(mode: ApprovalMode, allow: &[&str]) -> Turn {
    let allow = allow.iter().map(ToString::to_string).collect();
    let approvals = Approvals { mode, allow, ..Approvals::default() };
    Turn { prompt: "Do it.".to_owned(), dir: "/w".to_owned(), approvals, ..Turn::default() }
}

fn resuming() -> Turn {
    Turn { session: Some("T".to_owned()), ..with(ApprovalMode::Park, &[]) }
}

fn hear(adapter: &mut dyn Adapter, said: &Value) -> Vec<Act> {
    adapter.hear(Heard::Line(said.to_string().as_bytes()))
}

fn notice(adapter: &mut dyn Adapter, method: &str, params: Value) -> Vec<Act> {
    hear(adapter, &json!({ "method": method, "params": params }))
}

/// What was sent.
fn sent(acts: &[Act]) -> Vec<Value> {
    let value = |act: &Act| match act {
        Act::Send(bytes) => {
            assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
            Some(serde_json::from_slice(bytes).expect("JSON"))
        }
        _ => None,
    };
    acts.iter().filter_map(value).collect()
}

fn told(acts: &[Act]) -> Vec<Event> {
    let event = |act: &Act| if let Act::Tell(event) = act { Some(event.clone()) } else { None };
    acts.iter().filter_map(event).collect()
}

fn end(acts: &[Act]) -> Option<End> {
    told(acts).into_iter().find_map(|it| if let Event::Ended(end) = it { Some(end) } else { None })
}

fn trouble(acts: &[Act]) -> Trouble {
    match end(acts) {
        Some(End::Failed { trouble }) => trouble,
        other => panic!("not a failure: {other:?}"),
    }
}

/// An adapter whose turn `U` runs in thread `T`.
fn running(turn: Turn) -> Box<dyn Adapter> {
    let mut adapter = adapter(turn);
    adapter.begin();
    hear(adapter.as_mut(), &json!({ "id": 1, "result": {} }));
    hear(adapter.as_mut(), &json!({ "id": 2, "result": { "thread": { "id": "T" } } }));
    hear(adapter.as_mut(), &json!({ "id": 3, "result": { "turn": { "id": "U" } } }));
    notice(adapter.as_mut(), "turn/started", json!({ "threadId": "T", "turn": { "id": "U" } }));
    adapter
}

fn completed(adapter: &mut dyn Adapter, thread: &str, turn: &str) -> Vec<Act> {
    let turn = json!({ "id": turn, "status": "completed", "error": null, "items": [] });
    notice(adapter, "turn/completed", json!({ "threadId": thread, "turn": turn }))
}

fn says(adapter: &mut dyn Adapter, words: &str) -> Vec<Act> {
    let item = json!({ "type": "agentMessage", "id": "m", "text": words });
    notice(adapter, "item/completed", json!({ "threadId": "T", "turnId": "U", "item": item }))
}

fn used(adapter: &mut dyn Adapter, of: [&str; 2], total: u64, last: u64) -> Vec<Act> {
    let usage = json!({ "total": { "inputTokens": total }, "last": { "inputTokens": last } });
    let params = json!({ "threadId": of[0], "turnId": of[1], "tokenUsage": usage });
    notice(adapter, "thread/tokenUsage/updated", params)
}

fn spent(acts: &[Act]) -> Vec<(Option<u64>, bool)> {
    let one = |event| match event {
        Event::Spent(Spent { input_tokens, is_floor, .. }) => Some((input_tokens, is_floor)),
        _ => None,
    };
    told(acts).into_iter().filter_map(one).collect()
}

fn limit(adapter: &mut dyn Adapter, limits: Value) -> Vec<Act> {
    notice(adapter, "account/rateLimits/updated", json!({ "rateLimits": limits }))
}

fn error(adapter: &mut dyn Adapter, info: Value, will_retry: bool) -> Vec<Act> {
    let error = json!({ "message": "Oh.", "codexErrorInfo": info });
    let params = json!({ "threadId": "T", "turnId": "U", "error": error, "willRetry": will_retry });
    notice(adapter, "error", params)
}

fn failed(adapter: &mut dyn Adapter, info: Value) -> Vec<Act> {
    let error = json!({ "message": "Oh.", "codexErrorInfo": info });
    let turn = json!({ "id": "U", "status": "failed", "error": error, "items": [] });
    notice(adapter, "turn/completed", json!({ "threadId": "T", "turn": turn }))
}

/// Codex asks, by request 0.
fn asks(adapter: &mut dyn Adapter, method: &str, mut params: Value) -> Vec<Act> {
    params["threadId"] = json!("T");
    params["turnId"] = json!("U");
    hear(adapter, &json!({ "id": 0, "method": method, "params": params }))
}

fn asks_to_run(adapter: &mut dyn Adapter) -> Vec<Act> {
    asks(adapter, "item/commandExecution/requestApproval", json!({ "command": "make" }))
}

fn begins_item(adapter: &mut dyn Adapter, item: Value) -> Vec<Act> {
    notice(adapter, "item/started", json!({ "threadId": "T", "turnId": "U", "item": item }))
}

#[test]
fn the_program_can_be_replaced_and_arguments_go_last() {
    let plain = adapter(with(ApprovalMode::Park, &[])).launch();
    assert_eq!(
        (plain.argv, plain.transport),
        (vec!["codex".into(), "app-server".into()], Transport::Lines)
    );
    let turn = Turn {
        command: vec!["npx".into(), "codex".into()],
        args: vec!["-c".into(), "a=1".into()],
        model: Some("m".into()),
        session: Some("T".into()),
        ..Turn::default()
    };
    assert_eq!(adapter(turn).launch().argv, ["npx", "codex", "app-server", "-c", "a=1"]);
}

#[test]
fn a_new_thread_asks_before_it_writes_or_runs() {
    let mut codex = adapter(with(ApprovalMode::Park, &[]));
    let hello = sent(&codex.begin());
    assert_eq!(hello[0]["method"], "initialize");
    assert_eq!(hello[0]["params"]["capabilities"], json!({ "experimentalApi": true }));
    let opening = sent(&hear(codex.as_mut(), &json!({ "id": 1, "result": {} })));
    let params = json!({ "approvalPolicy": "untrusted", "approvalsReviewer": "user", "sandbox": "workspace-write" });
    assert_eq!(opening[0], json!({ "method": "initialized" }));
    assert_eq!(opening[1], json!({ "id": 2, "method": "thread/start", "params": params }));
    let opened = hear(
        codex.as_mut(),
        &json!({ "id": 2, "result": { "model": "m", "thread": { "id": "T" } } }),
    );
    assert_eq!(told(&opened)[0], Event::Session { id: "T".into() });
    let params = json!({ "threadId": "T", "input": [{ "type": "text", "text": "Do it." }] });
    assert_eq!(sent(&opened), [json!({ "id": 3, "method": "turn/start", "params": params })]);
}

#[test]
fn a_mode_a_model_and_an_effort_are_passed_on_by_their_names() {
    let policy = |turn: Turn| {
        let mut codex = adapter(turn);
        codex.begin();
        let params =
            sent(&hear(codex.as_mut(), &json!({ "id": 1, "result": {} })))[1]["params"].take();
        [params["approvalPolicy"].clone(), params["sandbox"].clone(), params["model"].clone()]
    };
    let mode =
        |mode: &str| Turn { permission_mode: Some(mode.into()), ..with(ApprovalMode::Park, &[]) };
    assert_eq!(policy(with(ApprovalMode::Deny, &[]))[..2], ["untrusted", "workspace-write"]);
    assert_eq!(policy(with(ApprovalMode::Allow, &[]))[..2], ["on-request", "workspace-write"]);
    assert_eq!(policy(mode("never"))[..2], ["never", "workspace-write"]);
    assert_eq!(policy(mode("workspace-write"))[..2], ["untrusted", "workspace-write"]);
    assert_eq!(policy(mode("never, danger-full-access"))[..2], ["never", "danger-full-access"]);
    let turn = Turn { model: Some("m".into()), effort: Some("high".into()), ..mode("") };
    assert_eq!(policy(turn.clone())[2], "m");
    let mut codex = adapter(turn);
    codex.begin();
    hear(codex.as_mut(), &json!({ "id": 1, "result": {} }));
    let opened = hear(codex.as_mut(), &json!({ "id": 2, "result": { "thread": { "id": "T" } } }));
    assert_eq!(sent(&opened)[0]["params"]["effort"], "high");
}

#[test]
fn a_thread_is_resumed_without_its_history_and_under_the_policy_of_now() {
    let refused = |code: i64, words: &str| {
        let mut codex = adapter(resuming());
        codex.begin();
        let opening = sent(&hear(codex.as_mut(), &json!({ "id": 1, "result": {} })));
        let params = json!({ "approvalPolicy": "untrusted", "approvalsReviewer": "user", "sandbox": "workspace-write",
            "threadId": "T", "cwd": "/w", "excludeTurns": true });
        assert_eq!(opening[1], json!({ "id": 2, "method": "thread/resume", "params": params }));
        let error = json!({ "code": code, "message": words });
        let acts = hear(codex.as_mut(), &json!({ "id": 2, "error": error }));
        assert!(acts.contains(&Act::CloseInput));
        trouble(&acts).kind
    };
    let unknown = "no rollout found for thread id T";
    assert_eq!(refused(-32600, unknown), TroubleKind::CannotResume);
    assert_eq!(refused(-32600, "thread T already has an active writer"), TroubleKind::SessionBusy);
    assert_eq!(refused(-32603, "the disk is full"), TroubleKind::Other);
}

#[test]
fn what_is_refused_before_the_turn_is_a_failure() {
    let mut codex = adapter(with(ApprovalMode::Park, &[]));
    codex.begin();
    let error = json!({ "code": -32600, "message": "no such sandbox", "data": { "codexErrorInfo": "unauthorized" } });
    let acts = hear(codex.as_mut(), &json!({ "id": 1, "error": error }));
    assert_eq!(trouble(&acts), Trouble::new(TroubleKind::Auth, "no such sandbox"));
    assert_eq!(codex.hear(Heard::End), []);
}

#[test]
fn a_person_decides_when_the_run_parks_and_the_bytes_are_these() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    let asked = asks_to_run(codex.as_mut());
    assert_eq!(sent(&asked), [] as [Value; 0]);
    let [Event::Asked(question)] = &told(&asked)[..] else { panic!("{asked:?}") };
    assert_eq!((question.id.as_str(), question.tool.as_deref()), ("U.0", Some("commandExecution")));
    assert_eq!(codex.decide("U.1", &Decision::Allow), []);
    let decided = codex.decide("U.0", &Decision::Allow);
    assert_eq!(
        decided[0],
        Act::Send(b"{\"id\":0,\"result\":{\"decision\":\"accept\"}}\n".to_vec())
    );
    assert_eq!(told(&decided), [Event::Decided { id: "U.0".into(), decision: Decision::Allow }]);
    assert_eq!(codex.decide("U.0", &Decision::Allow), [], "decided once");
}

#[test]
fn a_refusal_goes_on_and_its_reason_is_steered() {
    let mut codex = running(with(ApprovalMode::Deny, &["file*"]));
    let acts = sent(&asks_to_run(codex.as_mut()));
    assert_eq!(acts[0], json!({ "id": 0, "result": { "decision": "decline" } }));
    assert_eq!(
        (acts[1]["method"].as_str(), acts[1]["params"]["expectedTurnId"].as_str()),
        (Some("turn/steer"), Some("U"))
    );
    let words = acts[1]["params"]["input"][0]["text"].as_str().unwrap();
    assert!(
        words.starts_with("This was not allowed: commandExecution: make\nThe policy"),
        "{words}"
    );
    let item = json!({ "type": "fileChange", "id": "i", "changes": [{ "path": "a", "kind": { "type": "add" }, "diff": "+\u{1b}[2J\n+b" }] });
    begins_item(codex.as_mut(), item);
    let asked = asks(
        codex.as_mut(),
        "item/fileChange/requestApproval",
        json!({ "itemId": "i", "reason": "new" }),
    );
    assert_eq!(
        sent(&asked),
        [json!({ "id": 0, "result": { "decision": "accept" } })],
        "on the list"
    );
    let [Event::Asked(question), Event::Decided { .. }] = &told(&asked)[..] else { panic!() };
    assert_eq!(question.text, "fileChange: add a\n+ [2J\n+b\nReason: new");
}

#[test]
fn a_question_that_was_settled_elsewhere_is_not_answered() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    asks_to_run(codex.as_mut());
    notice(codex.as_mut(), "serverRequest/resolved", json!({ "threadId": "T", "requestId": 0 }));
    assert_eq!(codex.decide("U.0", &Decision::Allow), []);
}

#[test]
fn each_kind_of_question_has_its_own_form_of_answer() {
    let answer = |method: &str, params: Value, decision: &Decision| {
        let mut codex = running(with(ApprovalMode::Park, &[]));
        let call = |id: &str, tool: &str| json!({ "type": "mcpToolCall", "id": id, "server": "s", "tool": tool, "arguments": { "a": tool } });
        begins_item(codex.as_mut(), call("1", "one"));
        begins_item(codex.as_mut(), call("2", "two"));
        let asked = told(&asks(codex.as_mut(), method, params));
        let Some(Event::Asked(question)) = asked.first() else { panic!("{asked:?}") };
        let acts = sent(&codex.decide("U.0", decision));
        (question.tool.clone().unwrap_or_default(), acts[0]["result"].clone())
    };
    let text = Decision::Text { text: "blue".into() };
    let deny = Decision::Deny { why: "no".into() };
    let call = |input: &str| json!({ "serverName": "s", "message": "May I?", "_meta": { "codex_approval_kind": "mcp_tool_call", "tool_params": { "a": input } } });
    let elicits = "mcpServer/elicitation/request";
    let form = json!({ "message": "Which?", "_meta": null, "requestedSchema": { "properties": { "colour": {} } } });
    let is = |tool: &str, result: Value| (tool.to_owned(), result);
    assert_eq!(
        answer(elicits, call("two"), &Decision::Allow),
        is("mcp__s__two", json!({ "action": "accept" }))
    );
    assert_eq!(answer(elicits, call("three"), &deny), is("mcp__s", json!({ "action": "decline" })));
    assert_eq!(
        answer(elicits, form.clone(), &text),
        is("", json!({ "action": "accept", "content": { "colour": "blue" } }))
    );
    assert_eq!(answer(elicits, form, &deny), is("", json!({ "action": "decline" })));
    let rights = json!({ "permissions": { "network": { "enabled": true } } });
    let granted = json!({ "permissions": { "network": { "enabled": true } }, "scope": "turn" });
    let asks_for_rights = "item/permissions/requestApproval";
    assert_eq!(
        answer(asks_for_rights, rights.clone(), &Decision::Allow),
        is("permissions", granted)
    );
    assert_eq!(
        answer(asks_for_rights, rights, &deny),
        is("permissions", json!({ "permissions": {}, "scope": "turn" }))
    );
    let questions = json!({ "questions": [{ "id": "q", "question": "Which?" }] });
    assert_eq!(
        answer("item/tool/requestUserInput", questions, &text),
        is("", json!({ "answers": { "q": { "answers": ["blue"] } } }))
    );
    let network = json!({ "command": "curl", "networkApprovalContext": { "host": "a.b" } });
    assert_eq!(
        answer("item/commandExecution/requestApproval", network, &text),
        is("network", json!({ "decision": "decline" }))
    );
}

#[test]
fn an_unknown_request_is_answered_so_that_nothing_waits_for_it() {
    let mut codex = running(with(ApprovalMode::Allow, &[]));
    let acts =
        hear(codex.as_mut(), &json!({ "id": "x", "method": "item/tool/call", "params": {} }));
    assert_eq!(sent(&acts)[0]["id"], "x");
    assert_eq!(sent(&acts)[0]["error"]["code"], -32601);
    assert_eq!(told(&acts), [Event::NotUnderstood { lines: 1 }]);
}

#[test]
fn only_a_turn_that_runs_is_steered_or_interrupted() {
    let mut codex = adapter(with(ApprovalMode::Park, &[]));
    assert_eq!((codex.steer(7, "More."), codex.cancel()), (None, Vec::new()));
    let mut codex = running(with(ApprovalMode::Park, &[]));
    let params = json!({ "threadId": "T", "expectedTurnId": "U", "input": [{ "type": "text", "text": "More." }] });
    assert_eq!(
        sent(&codex.steer(7, "More.").unwrap()),
        [json!({ "id": 4, "method": "turn/steer", "params": params })]
    );
    let error = json!({ "code": -32600, "message": "no active turn to steer" });
    assert_eq!(hear(codex.as_mut(), &json!({ "id": 4, "error": error })), []);
    let params = json!({ "threadId": "T", "turnId": "U" });
    assert_eq!(
        sent(&codex.cancel()),
        [json!({ "id": 5, "method": "turn/interrupt", "params": params })]
    );
    says(codex.as_mut(), "Done.");
    assert_eq!(
        end(&completed(codex.as_mut(), "T", "U")),
        Some(End::Completed { text: "Done.".into() })
    );
    assert_eq!((codex.steer(7, "More."), codex.cancel()), (None, Vec::new()));
    assert_eq!(completed(codex.as_mut(), "T", "U"), [], "a turn ends once");
}

#[test]
fn errors_are_told_apart_by_their_types() {
    let kind =
        |info: Value| trouble(&failed(running(with(ApprovalMode::Park, &[])).as_mut(), info)).kind;
    let http = |word: &str, status: Value| kind(json!({ word: { "httpStatusCode": status } }));
    assert_eq!(kind(json!("usageLimitExceeded")), TroubleKind::Quota);
    assert_eq!(kind(json!("contextWindowExceeded")), TroubleKind::ContextFull);
    assert_eq!(kind(json!("sessionBudgetExceeded")), TroubleKind::OwnCap);
    assert_eq!(kind(json!("unauthorized")), TroubleKind::Auth);
    assert_eq!(kind(json!("rateLimitExceeded")), TroubleKind::Throttle);
    assert_eq!(kind(json!("modelNotFound")), TroubleKind::NoModel);
    assert_eq!(kind(json!("cyberPolicy")), TroubleKind::Refusal);
    assert_eq!(kind(json!("serverOverloaded")), TroubleKind::Overload);
    assert_eq!(kind(json!("a word to come")), TroubleKind::Other);
    assert_eq!(kind(Value::Null), TroubleKind::Other);
    assert_eq!(http("httpConnectionFailed", json!(401)), TroubleKind::Auth);
    assert_eq!(http("responseStreamDisconnected", json!(429)), TroubleKind::Throttle);
    assert_eq!(http("responseTooManyFailedAttempts", json!(503)), TroubleKind::Overload);
    assert_eq!(http("responseStreamDisconnected", Value::Null), TroubleKind::Overload);
}

#[test]
fn a_retry_without_a_number_is_counted() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    for attempt in 1..=2 {
        let trouble = Trouble::new(TroubleKind::Overload, "Oh.");
        let retries = Event::Retries { attempt, most: None, delay_ms: None, trouble };
        assert_eq!(told(&error(codex.as_mut(), json!("serverOverloaded"), true)), [retries]);
    }
}

#[test]
fn the_latest_end_of_the_spent_windows_counts_and_null_is_no_news() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    let window = |used: u64, at: u64| json!({ "usedPercent": used, "resetsAt": at });
    limit(codex.as_mut(), json!({ "primary": window(100, 50), "secondary": window(100, 70) }));
    let other = json!({ "limitId": "other", "primary": window(99, 90), "individualLimit": { "remainingPercent": 0, "resetsAt": 60 } });
    let [Event::Window { trouble }] = &told(&limit(codex.as_mut(), other.clone()))[..] else {
        panic!()
    };
    assert_eq!(trouble.until_ms, Some(70_000));
    assert_eq!(limit(codex.as_mut(), json!({ "primary": null, "secondary": null })), []);
    assert_eq!(limit(codex.as_mut(), other), [], "heard before");
    let acts = failed(codex.as_mut(), json!("usageLimitExceeded"));
    assert_eq!(self::trouble(&acts).until_ms, Some(70_000));
}

#[test]
fn a_completed_turn_is_no_success_if_an_error_or_nothing_came_before() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    error(codex.as_mut(), json!("contextWindowExceeded"), false);
    assert_eq!(trouble(&completed(codex.as_mut(), "T", "U")).kind, TroubleKind::ContextFull);
    let mut codex = running(with(ApprovalMode::Park, &[]));
    assert_eq!(trouble(&completed(codex.as_mut(), "T", "U")).kind, TroubleKind::Other);
    let mut codex = running(with(ApprovalMode::Park, &[]));
    limit(codex.as_mut(), json!({ "primary": { "usedPercent": 100, "resetsAt": 5 } }));
    let nothing = trouble(&completed(codex.as_mut(), "T", "U"));
    assert_eq!((nothing.kind, nothing.until_ms), (TroubleKind::Quota, Some(5000)));
    let mut codex = running(with(ApprovalMode::Park, &[]));
    error(codex.as_mut(), json!({ "activeTurnNotSteerable": { "turnKind": "review" } }), false);
    says(codex.as_mut(), "Done.");
    assert_eq!(
        end(&completed(codex.as_mut(), "T", "U")),
        Some(End::Completed { text: "Done.".into() })
    );
}

#[test]
fn a_call_is_counted_once_and_a_replay_never() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    assert_eq!(spent(&used(codex.as_mut(), ["T", "U"], 10, 10)), [(Some(10), true)]);
    assert_eq!(spent(&used(codex.as_mut(), ["T", "U"], 10, 10)), [], "again, with a limit");
    assert_eq!(spent(&used(codex.as_mut(), ["T", "U"], 15, 5)), [(Some(15), true)]);
    assert_eq!(spent(&used(codex.as_mut(), ["T", "before"], 99, 9)), []);
    assert_eq!(spent(&completed(codex.as_mut(), "T", "U")), [(Some(15), false)]);
}

#[test]
fn a_limit_after_a_resume_brings_the_last_count_of_an_earlier_turn() {
    let mut codex = running(resuming());
    assert_eq!(spent(&used(codex.as_mut(), ["T", "U"], 500, 80)), []);
    limit(codex.as_mut(), json!({ "primary": { "usedPercent": 100, "resetsAt": 5 } }));
    let acts = error(codex.as_mut(), json!("usageLimitExceeded"), false);
    assert_eq!(
        (spent(&acts), spent(&failed(codex.as_mut(), json!("usageLimitExceeded")))),
        (vec![], vec![])
    );
    let mut codex = running(resuming());
    used(codex.as_mut(), ["T", "U"], 500, 80);
    assert_eq!(spent(&says(codex.as_mut(), "Done.")), [(Some(80), true)]);
    assert_eq!(spent(&used(codex.as_mut(), ["T", "U"], 600, 100)), [(Some(180), true)]);
}

#[test]
fn a_turn_with_work_beside_it_is_over_when_that_is() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    begins_item(
        codex.as_mut(),
        json!({ "type": "commandExecution", "id": "c", "command": "serve" }),
    );
    notice(codex.as_mut(), "turn/started", json!({ "threadId": "S", "turn": { "id": "V" } }));
    says(codex.as_mut(), "Done.");
    assert_eq!(spent(&used(codex.as_mut(), ["S", "V"], 7, 7)), [(Some(7), true)], "a sub-agent's");
    assert_eq!(told(&completed(codex.as_mut(), "T", "U")), [Event::Background { live: 2 }]);
    assert_eq!((codex.steer(7, "More."), codex.cancel()), (None, Vec::new()));
    assert_eq!(told(&completed(codex.as_mut(), "S", "V")), [Event::Background { live: 1 }]);
    let item = json!({ "type": "commandExecution", "id": "c", "status": "completed" });
    let acts = notice(
        codex.as_mut(),
        "item/completed",
        json!({ "threadId": "T", "turnId": "U", "item": item }),
    );
    assert_eq!(end(&acts), Some(End::Completed { text: "Done.".into() }));
    assert_eq!(spent(&acts), [(Some(7), false)]);
}

#[test]
fn a_turn_that_the_thread_takes_by_itself_is_waited_for_and_has_the_last_word() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    let serve = json!({ "type": "commandExecution", "id": "c", "command": "serve" });
    begins_item(codex.as_mut(), serve.clone());
    says(codex.as_mut(), "Half.");
    completed(codex.as_mut(), "T", "U");
    notice(codex.as_mut(), "turn/started", json!({ "threadId": "T", "turn": { "id": "V" } }));
    let params = json!({ "threadId": "T", "turnId": "U", "item": serve });
    assert_eq!(
        told(&notice(codex.as_mut(), "item/completed", params))[1..],
        [Event::Background { live: 1 }]
    );
    says(codex.as_mut(), "Done.");
    assert_eq!(
        end(&completed(codex.as_mut(), "T", "V")),
        Some(End::Completed { text: "Done.".into() })
    );
}

#[test]
fn after_a_retry_the_count_may_be_too_low() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    let cut = json!({ "responseStreamDisconnected": { "httpStatusCode": null } });
    error(codex.as_mut(), cut, true);
    used(codex.as_mut(), ["T", "U"], 10, 10);
    says(codex.as_mut(), "Done.");
    let acts = completed(codex.as_mut(), "T", "U");
    assert_eq!((spent(&acts), end(&acts).is_some()), (vec![], true), "it stays a floor");
}

#[test]
fn work_beside_a_turn_that_is_cut_off_makes_it_interrupted() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    begins_item(
        codex.as_mut(),
        json!({ "type": "commandExecution", "id": "c", "command": "serve" }),
    );
    says(codex.as_mut(), "Done.");
    completed(codex.as_mut(), "T", "U");
    assert_eq!(end(&codex.hear(Heard::End)), Some(End::Interrupted));
}

#[test]
fn a_turn_of_another_thread_or_of_before_does_not_end_ours() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    says(codex.as_mut(), "Half.");
    assert_eq!(completed(codex.as_mut(), "T", "before"), []);
    assert_eq!(completed(codex.as_mut(), "S", "V"), []);
    let item = json!({ "type": "agentMessage", "id": "m", "text": "Old." });
    let params = json!({ "threadId": "T", "turnId": "before", "item": item });
    assert_eq!(notice(codex.as_mut(), "item/completed", params), []);
}

#[test]
fn what_is_not_understood_is_counted_and_harmless() {
    let mut codex = running(with(ApprovalMode::Park, &[]));
    let lines: [&[u8]; 7] = [
        b"\xff",
        b"[]",
        b"{}",
        b"{\"id\":99,\"result\":{}}",
        b"{\"method\":\"of/a/version/to/come\",\"params\":{}}",
        b"{\"method\":\"turn/completed\"}",
        b"{\"method\":\"item/completed\",\"params\":{\"item\":{}}}",
    ];
    for (at, line) in (1..).zip(lines) {
        assert_eq!(told(&codex.hear(Heard::Line(line))), [Event::NotUnderstood { lines: at }]);
    }
    assert_eq!(codex.hear(Heard::Line(b"  ")), []);
    let unknown = json!({ "threadId": "T", "turn": { "id": "U", "status": "a status to come" } });
    assert_eq!(
        told(&notice(codex.as_mut(), "turn/completed", unknown)),
        [Event::NotUnderstood { lines: 8 }]
    );
    assert_eq!(end(&codex.hear(Heard::End)), Some(End::Interrupted));
}

#[test]
fn a_thread_is_forked_at_a_turn_and_any_refusal_of_that_begins_another() {
    let forking = || {
        let mark = SessionMark { at: Some("U3".to_owned()), ..SessionMark::default() };
        let mut codex = adapter(Turn { fork: Some(mark), ..resuming() });
        codex.begin();
        let opening = sent(&hear(codex.as_mut(), &json!({ "id": 1, "result": {} })));
        assert_eq!(opening[1]["method"], "thread/fork");
        let params = &opening[1]["params"];
        assert_eq!((&params["threadId"], &params["lastTurnId"]), (&json!("T"), &json!("U3")));
        assert_eq!((&params["cwd"], &params["excludeTurns"]), (&json!("/w"), &json!(true)));
        codex
    };
    for code in [-32600, -32601] {
        let error = json!({ "code": code, "message": "turn not found: U3" });
        let acts = hear(forking().as_mut(), &json!({ "id": 2, "error": error }));
        assert_eq!(trouble(&acts).kind, TroubleKind::CannotResume);
    }
    let mut codex = forking();
    assert_eq!(codex.turn_name(), None);
    hear(codex.as_mut(), &json!({ "id": 2, "result": { "thread": { "id": "F" } } }));
    hear(codex.as_mut(), &json!({ "id": 3, "result": { "turn": { "id": "U4" } } }));
    assert_eq!(codex.turn_name(), Some("U4"), "what the next copy needs");
}
