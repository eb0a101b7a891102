//! How turns end over ACP, what of a history is left out, and what was used up.

use super::*;

#[test]
fn errors_are_of_a_kind_by_their_type() {
    let kind = |error: Value| {
        let mut talking = Talking::open("unknown", turn());
        talking.refuses(error);
        talking.trouble()
    };
    let claude =
        |it: &str| kind(json!({ "code": -32603, "message": "x", "data": { "errorKind": it } }));
    assert_eq!(claude("rate_limit"), TroubleKind::Quota);
    assert_eq!(claude("authentication_failed"), TroubleKind::Auth);
    assert_eq!(claude("overloaded"), TroubleKind::Overload);
    let codex = |it: Value| {
        kind(json!({ "code": -32603, "message": "x", "data": { "codexErrorInfo": it } }))
    };
    assert_eq!(codex(json!("usageLimitExceeded")), TroubleKind::Quota);
    assert_eq!(codex(json!("contextWindowExceeded")), TroubleKind::ContextFull);
    let status = json!({ "httpConnectionFailed": { "httpStatusCode": 401 } });
    assert_eq!(codex(status), TroubleKind::Auth);
    assert_eq!(codex(json!({ "new": {} })), TroubleKind::Other);
    let code = |code: i64| kind(json!({ "code": code, "message": "x" }));
    assert_eq!((code(429), code(401)), (TroubleKind::Quota, TroubleKind::Auth));
    assert_eq!((code(-32000), code(503)), (TroubleKind::Auth, TroubleKind::Overload));
    assert_eq!(code(-32603), TroubleKind::Other);
}

#[test]
fn reasons_to_stop_are_of_a_kind() {
    let kind = |reason: &str| {
        let mut talking = Talking::open("unknown", turn());
        talking.answers(json!({ "stopReason": reason }));
        talking.trouble()
    };
    assert_eq!(kind("max_tokens"), TroubleKind::OwnCap);
    assert_eq!(kind("max_turn_requests"), TroubleKind::OwnCap);
    assert_eq!(kind("refusal"), TroubleKind::Refusal);
    assert_eq!(kind("something_new"), TroubleKind::Other);
    let mut without = Talking::open("unknown", turn());
    without.answers(json!({}));
    assert_eq!(without.trouble(), TroubleKind::Other);
}

#[test]
fn gemini_without_a_model_is_no_success() {
    let end = |tokens: u64| {
        let mut talking = Talking::open("gemini-cli", turn());
        let count = json!({ "input_tokens": tokens, "output_tokens": tokens });
        talking.answers(
            json!({ "stopReason": "end_turn", "_meta": { "quota": { "token_count": count } } }),
        );
        talking.end().clone()
    };
    assert!(matches!(end(0), End::Failed { .. }));
    assert!(matches!(end(1), End::Completed { .. }));
}

/// As codex-acp 2.6.0 ends a turn whose provider has failed at each retry.
#[test]
fn a_turn_of_codex_whose_thread_has_failed_is_no_success() {
    let open = || {
        let mut talking = Talking::open("codex-acp", turn());
        // Its mode is set.
        talking.answers(json!({}));
        talking
    };
    let thread =
        |more: Value| json!({ "sessionUpdate": "session_info_update", "_meta": { "codex": more } });
    let retry = |info: Value| {
        let error = json!({ "message": "Reconnecting... 1/5", "codexErrorInfo": info,
            "additionalDetails": "High demand.", "willRetry": true });
        thread(json!({ "error": error }))
    };
    let nothing = json!({ "stopReason": "end_turn", "usage": null,
        "_meta": { "quota": { "token_count": null } } });
    let end = |info: Value| {
        let mut talking = open();
        talking.updates(retry(info));
        talking.updates(thread(json!({ "threadStatus": { "type": "systemError" } })));
        talking.says(None, "High demand.");
        talking.answers(nothing.clone());
        assert_eq!(talking.said(), [""; 0]);
        let trouble = Trouble::new(talking.trouble(), "High demand.");
        assert!(talking.told.iter().any(|it| matches!(it, Event::Retries { attempt: 1, .. })));
        assert_eq!(talking.end(), &End::Failed { trouble });
        talking.trouble()
    };
    let stream =
        |status: Value| json!({ "responseStreamDisconnected": { "httpStatusCode": status } });
    assert_eq!(end(stream(Value::Null)), TroubleKind::Overload);
    assert_eq!(end(stream(json!(429))), TroubleKind::Quota);
    assert_eq!(end(json!("usageLimitExceeded")), TroubleKind::Quota);

    let mut idle = open();
    idle.says(None, "Here is my status.");
    idle.answers(nothing.clone());
    assert_eq!(idle.trouble(), TroubleKind::Other);

    let mut recovered = open();
    recovered.updates(retry(stream(Value::Null)));
    recovered.updates(thread(json!({ "threadStatus": { "type": "idle" } })));
    recovered.says(Some("m"), "Done.");
    recovered.answers(done());
    assert_eq!(recovered.end(), &End::Completed { text: "Done.".to_owned() });
}

#[test]
fn history_is_left_out_before_and_after_the_answer_to_load() {
    let mut talking = Talking::with("acp", Turn { session: Some("s1".to_owned()), ..turn() });
    talking.answers(hello("gemini-cli"));
    let load = talking.last()["id"].clone();
    let user = json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "Old." } });
    talking.updates(user.clone());
    talking.says(None, "Old answer.");
    talking.hears(&json!({ "id": load, "result": opened() }));
    assert_eq!(talking.last()["method"], "session/prompt");
    talking.updates(user);
    talking.updates(json!({ "sessionUpdate": "tool_call", "toolCallId": "old",
        "status": "completed", "title": "x", "kind": "edit" }));
    talking.says(None, "Another old answer.");
    let commands = json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] });
    talking.updates(commands);
    talking.says(None, "New.");
    talking.answers(done());
    assert_eq!(talking.said(), ["New."]);
    assert!(!talking.told.iter().any(|it| matches!(it, Event::ToolStarted { .. })));
}

#[test]
fn where_the_end_of_a_history_does_not_show_the_last_message_is_ours() {
    let loaded = || {
        let mut talking = Talking::with("acp", Turn { session: Some("s1".to_owned()), ..turn() });
        talking.answers(hello("unknown"));
        let load = talking.last()["id"].clone();
        talking.says(Some("old"), "Old answer.");
        talking.hears(&json!({ "id": load, "result": null }));
        talking
    };
    let mut unnamed = loaded();
    unnamed.says(None, "New.");
    unnamed.answers(done());
    assert_eq!(*unnamed.end(), End::Completed { text: "New.".to_owned() });
    let mut named = loaded();
    named.says(Some("old"), "Old answer, more of it.");
    named.says(Some("new"), "New.");
    named.updates(
        json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress" }),
    );
    assert_eq!(named.said(), ["New."]);
    let mut cut = loaded();
    cut.says(None, "Old or new.");
    let acts = cut.adapter.hear(Heard::End);
    cut.did(acts);
    assert_eq!((cut.end(), cut.said().len()), (&End::Interrupted, 0));
}

#[test]
fn the_cost_of_a_session_is_taken_off_what_came_before() {
    let cost = |session: Option<&str>, before: Option<u64>, heard: &[f64], now: f64| {
        let turn =
            Turn { session: session.map(str::to_owned), session_cost_usd_micros: before, ..turn() };
        let mut talking = Talking::with("acp", turn);
        talking.answers(hello("claude-agent-acp"));
        let open = talking.last()["id"].clone();
        for dollars in heard {
            talking.costs(*dollars);
        }
        talking.hears(&json!({ "id": open, "result": opened() }));
        talking.costs(now);
        talking.answers(done());
        talking.spent().unwrap().cost_usd_micros
    };
    assert_eq!(cost(None, None, &[], 0.0048), Some(4800));
    assert_eq!(cost(Some("s1"), None, &[], 0.0138), None, "a total that nothing is known of");
    assert_eq!(cost(Some("s1"), Some(4800), &[], 0.0138), Some(9000));
    assert_eq!(cost(Some("s1"), None, &[0.0048], 0.0138), Some(9000));
    assert_eq!(cost(Some("s1"), Some(4800), &[], 0.001), Some(1000), "it counts anew");
}

#[test]
fn the_total_tells_what_the_input_and_the_output_have() {
    let spent = |usage: Value| {
        let mut talking = Talking::open("codex-acp", turn());
        talking.answers(json!({}));
        talking.answers(json!({ "stopReason": "end_turn", "usage": usage }));
        let spent = talking.spent().unwrap();
        (spent.input_tokens, spent.output_tokens, spent.cached_tokens)
    };
    let usage = |total: u64| {
        json!({ "inputTokens": 100, "outputTokens": 10, "cachedReadTokens": 40,
        "thoughtTokens": 7, "totalTokens": total })
    };
    assert_eq!(spent(usage(150)), (Some(100), Some(10), Some(40)));
    assert_eq!(spent(usage(157)), (Some(100), Some(17), Some(40)));
    assert_eq!(spent(usage(110)), (Some(60), Some(10), Some(40)));
    assert_eq!(spent(usage(117)), (Some(60), Some(17), Some(40)));
    assert_eq!(spent(json!({ "outputTokens": 3 })), (None, Some(3), None));
}

#[test]
fn garbage_and_answers_to_nothing_are_counted() {
    let mut talking = Talking::open("unknown", turn());
    for message in [
        json!({ "id": 99, "result": { "stopReason": "end_turn" } }),
        json!({ "id": null, "error": { "code": -32700 } }),
        json!({ "id": 3 }),
        json!({ "method": "session/new_thing" }),
        json!({ "method": "session/update", "params": { "update": { "sessionUpdate": "new" } } }),
    ] {
        talking.hears(&message);
    }
    assert_eq!(talking.told.last(), Some(&Event::NotUnderstood { lines: 5 }));
    talking.hears(&json!({ "method": "_vendor/notice", "params": {} }));
    talking.hears(&json!({ "method": "session/update", "params":
        { "sessionId": "another", "update": { "sessionUpdate": "new" } } }));
    assert_eq!(talking.told.last(), Some(&Event::NotUnderstood { lines: 5 }));
    talking.answers(done());
    assert!(matches!(talking.end(), End::Completed { .. }));
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let mut talking = Talking::with("acp", turn());
    talking.answers(json!({ "protocolVersion": 2 }));
    assert_eq!(talking.trouble(), TroubleKind::Other);
}

#[test]
fn a_cancel_takes_back_what_is_asked() {
    let mut early = Talking::with("acp", turn());
    let acts = early.adapter.cancel();
    early.did(acts);
    early.answers(hello("unknown"));
    assert_eq!((early.has_closed, early.sent.len(), early.told.len()), (true, 1, 0));
    let mut talking = Talking::open("unknown", turn());
    talking.asks(json!(7), "c1", options());
    let acts = talking.adapter.cancel();
    talking.did(acts);
    let [notice, answer] = &talking.sent[talking.sent.len() - 2..] else { panic!() };
    let params = json!({ "sessionId": "s1" });
    assert_eq!(*notice, json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
    assert_eq!(
        *answer,
        json!({ "jsonrpc": "2.0", "id": 7, "result": { "outcome": { "outcome": "cancelled" } } })
    );
    assert!(talking.adapter.cancel().is_empty());
    talking.asks(json!(8), "c2", options());
    assert_eq!(talking.last()["result"]["outcome"]["outcome"], "cancelled");
    talking.hears(&json!({ "id": 3, "result": { "stopReason": "cancelled", "usage": null } }));
    assert_eq!(talking.trouble(), TroubleKind::Cancelled);
}

#[test]
fn claude_asks_the_model_no_more_when_its_turn_is_cut_off_at_a_question() {
    let mut talking = Talking::open("@agentclientprotocol/claude-agent-acp", turn());
    talking.asks(json!(7), "c1", options());
    let sent = talking.sent.len();
    let acts = talking.adapter.cancel();
    talking.did(acts);
    let methods: Vec<_> = talking.sent[sent..].iter().map(|it| it["method"].clone()).collect();
    assert_eq!(methods, ["session/cancel"], "an answer to the question would reach the model");
    // What it asks although it has been told to stop is refused as ever.
    talking.asks(json!(8), "c2", options());
    assert_eq!(talking.last()["result"]["outcome"]["outcome"], "cancelled");
}
