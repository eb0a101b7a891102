//! What recordings do not show of pi: launches, dialogs, steering, typed errors, garbage.

use super::*;
use serde_json::json;

fn turn() -> Turn {
    Turn { prompt: "Do it.\n".to_owned(), ..Turn::default() }
}

fn pi(turn: Turn) -> Pi {
    Pi::new(turn)
}

fn approvals(mode: ApprovalMode, allow: &[&str]) -> Approvals {
    let allow = allow.iter().map(|it| (*it).to_owned()).collect();
    Approvals { mode, allow, ..Approvals::default() }
}

fn hears(pi: &mut Pi, message: &Value) -> Vec<Act> {
    pi.hear(Heard::Line(message.to_string().as_bytes()))
}

fn sends(text: &str) -> Act {
    Act::Send(format!("{text}\n").into_bytes())
}

fn state(id: &str) -> Value {
    json!({ "type": "response", "command": "get_state", "success": true,
        "data": { "sessionId": id, "model": { "id": "m1", "contextWindow": 1000 } } })
}

fn ends(message: &Value) -> Vec<Act> {
    let mut pi = pi(turn());
    assert_eq!(hears(&mut pi, &json!({ "type": "turn_end", "message": message })), []);
    hears(&mut pi, &json!({ "type": "agent_settled" }))
}

fn fails(words: &str) -> Trouble {
    let acts = ends(&json!({ "stopReason": "error", "errorMessage": words }));
    match acts.last() {
        Some(Act::Tell(Event::Ended(End::Failed { trouble }))) => trouble.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_turn_is_launched_without_its_prompt() {
    let launch = pi(turn()).launch();
    assert_eq!(launch.argv, ["pi", "--mode", "rpc", "--tools", "read,grep,find,ls"]);
    let turn = Turn {
        session: Some("s1".to_owned()),
        command: vec!["node".to_owned(), "pi.js".to_owned()],
        args: vec!["-e".to_owned(), "ext.ts".to_owned()],
        model: Some("anthropic/opus".to_owned()),
        effort: Some("high".to_owned()),
        permission_mode: Some("approve".to_owned()),
        approvals: approvals(ApprovalMode::Allow, &[]),
        ..turn()
    };
    let argv = pi(turn).launch().argv.join(" ");
    let expected = "node pi.js --mode rpc --session s1 --model anthropic/opus --thinking high --approve -e ext.ts";
    assert_eq!(argv, expected);
}

#[test]
fn a_tool_that_may_not_be_used_unasked_is_not_there() {
    let given = |mode, allow: &[&str]| tools(&approvals(mode, allow));
    let read = "read,grep,find,ls";
    assert_eq!(given(ApprovalMode::Deny, &[]).as_deref(), Some(read));
    let some = given(ApprovalMode::Park, &["edit", "wri*", "report_done", "read", "mcp_*"]);
    assert_eq!(some, Some(format!("{read},edit,write,report_done")));
    assert_eq!((given(ApprovalMode::Park, &["*"]), given(ApprovalMode::Allow, &[])), (None, None));
}

#[test]
fn the_prompt_follows_the_state() {
    let mut pi = pi(turn());
    assert_eq!(pi.begin(), [sends(r#"{"id":"state","type":"get_state"}"#)]);
    let model = Act::Tell(Event::Model { name: "m1".to_owned() });
    let prompt = sends(r#"{"id":"prompt","message":"Do it.\n","type":"prompt"}"#);
    assert_eq!(hears(&mut pi, &state("s1")), [model, prompt]);
    // Its file is not there yet.
    assert_eq!(hears(&mut pi, &state("s1")), []);
    let answer =
        json!({ "type": "message_end", "message": { "role": "assistant", "content": [] } });
    let told = Act::Tell(Event::Session { id: "s1".to_owned() });
    assert_eq!((hears(&mut pi, &answer), hears(&mut pi, &answer)), (vec![told], vec![]));
}

#[test]
fn another_conversation_than_the_one_that_was_asked_for_gets_no_prompt() {
    let resumed = || pi(Turn { session: Some("s1".to_owned()), ..turn() });
    let acts = hears(&mut resumed(), &state("s1"));
    assert_eq!(acts[0], Act::Tell(Event::Session { id: "s1".to_owned() }));
    let kind_of = |acts: Vec<Act>| match acts.last() {
        Some(Act::Tell(Event::Ended(End::Failed { trouble }))) => Some(trouble.kind),
        _ => None,
    };
    assert_eq!(kind_of(hears(&mut resumed(), &state("s2"))), Some(TroubleKind::CannotResume));
    let error = b"No session found matching 's1'";
    let mut one = resumed();
    assert_eq!(kind_of(one.hear_stderr(error)), Some(TroubleKind::CannotResume));
    assert_eq!((one.hear(Heard::End), one.hear_stderr(error)), (vec![], vec![]));
    let interrupted = [Act::Tell(Event::Ended(End::Interrupted))];
    assert_eq!(resumed().hear(Heard::End), interrupted);
    assert_eq!(pi(turn()).hear_stderr(error), []);
}

#[test]
fn a_running_turn_is_steered_and_cancelled_and_no_other() {
    let mut pi = pi(turn());
    assert_eq!((pi.steer(7, "more"), pi.cancel()), (None, vec![]));
    hears(&mut pi, &state("s1"));
    assert_eq!(pi.steer(7, "more"), None);
    assert_eq!(pi.cancel(), [sends(r#"{"id":"abort","type":"abort"}"#)]);
    hears(&mut pi, &json!({ "type": "agent_start" }));
    let steer = vec![sends(r#"{"id":"steer-7","message":"more","type":"steer"}"#)];
    assert_eq!(pi.steer(7, "more"), Some(steer));
    hears(&mut pi, &json!({ "type": "agent_settled" }));
    assert_eq!((pi.steer(7, "more"), pi.cancel()), (None, vec![]));
    assert_eq!(hears(&mut pi, &json!({ "type": "agent_settled" })), []);
    assert_eq!(pi.hear(Heard::End), []);
}

#[test]
fn errors_are_typed_by_their_status_and_body() {
    let quota = fails(r#"429: {"type":"usage_limit_reached","resets_at":1794770590}"#);
    assert_eq!((quota.kind, quota.until_ms), (TroubleKind::Quota, Some(1_794_770_590_000)));
    let nested = r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"slow"}}"#;
    assert_eq!((fails(nested).kind, fails(nested).until_ms), (TroubleKind::Throttle, None));
    let kinds = [
        (r#"401: {"type":"authentication_error"}"#, TroubleKind::Auth),
        (r#"529 {"type":"error","error":{"type":"overloaded_error"}}"#, TroubleKind::Overload),
        (r#"400: {"error":{"code":"context_length_exceeded"}}"#, TroubleKind::ContextFull),
        ("404: not json {", TroubleKind::NoModel),
        ("terminated", TroubleKind::Overload),
        ("You have hit your ChatGPT usage limit (plus plan).", TroubleKind::Quota),
        ("3 errors", TroubleKind::Other),
        ("", TroubleKind::Other),
    ];
    for (words, kind) in kinds {
        assert_eq!(fails(words).kind, kind, "{words}");
    }
}

#[test]
fn only_a_stop_is_a_success() {
    let said = json!({ "stopReason": "stop", "content": [{ "type": "thinking", "thinking": "hm" },
        { "type": "text", "text": "a" }, { "type": "text", "text": "b" }] });
    let completed = Act::Tell(Event::Ended(End::Completed { text: "a\nb".to_owned() }));
    assert_eq!(ends(&said), [Act::CloseInput, completed]);
    for message in
        [json!({ "stopReason": "length" }), json!({ "stopReason": "toolUse" }), json!({})]
    {
        let acts = ends(&message);
        assert!(matches!(acts[1], Act::Tell(Event::Ended(End::Failed { .. }))), "{acts:?}");
    }
    let acts = hears(&mut pi(turn()), &json!({ "type": "agent_settled" }));
    assert!(matches!(acts[1], Act::Tell(Event::Ended(End::Failed { .. }))), "{acts:?}");
}

#[test]
fn a_prompt_that_is_not_taken_fails_the_turn() {
    let refused = |command: &str, error: &str| {
        let message =
            json!({ "type": "response", "command": command, "success": false, "error": error });
        match hears(&mut pi(turn()), &message).as_slice() {
            [Act::CloseInput, Act::Tell(Event::Ended(End::Failed { trouble }))] => {
                Some(trouble.kind)
            }
            _ => None,
        }
    };
    assert_eq!(refused("prompt", "No API key found for anthropic."), Some(TroubleKind::Auth));
    assert_eq!(refused("prompt", "No model selected."), Some(TroubleKind::NoModel));
    assert_eq!(refused("parse", "Unexpected token"), Some(TroubleKind::Other));
    assert_eq!(refused("steer", "No."), None);
}

#[test]
fn what_a_compaction_a_tool_and_a_call_that_was_cut_off_used_up_is_counted() {
    let usage = |input: u64, cost: f64| json!({ "input": input, "output": 1, "cacheRead": 10, "cacheWrite": 5, "totalTokens": 9, "cost": { "total": cost } });
    let mut pi = pi(turn());
    hears(&mut pi, &json!({ "type": "compaction_end", "result": { "usage": usage(100, 0.5) } }));
    hears(
        &mut pi,
        &json!({ "type": "message_end", "message": { "role": "toolResult", "usage": usage(10, 0.25) } }),
    );
    hears(&mut pi, &json!({ "type": "message_update", "usage": usage(1, 0.0) }));
    let spent = Spent {
        input_tokens: Some(126),
        output_tokens: Some(3),
        cached_tokens: Some(30),
        cost_usd_micros: Some(750_000),
        is_floor: true,
    };
    let interrupted = Act::Tell(Event::Ended(End::Interrupted));
    assert_eq!(pi.hear(Heard::End), [Act::Tell(Event::Spent(spent)), interrupted]);
}

fn dialog(id: &str, method: &str) -> Value {
    json!({ "type": "extension_ui_request", "id": id, "method": method, "title": "Run rm?",
        "message": "All is gone.", "options": ["Allow", "Block"] })
}

#[test]
fn a_dialog_of_an_extension_is_a_question() {
    let mut pi = pi(turn());
    let acts = hears(&mut pi, &dialog("q1", "confirm"));
    let text = "Run rm?\nAll is gone.".to_owned();
    assert_eq!(acts, [Act::Tell(Event::Asked(Question { id: "q1".to_owned(), tool: None, text }))]);
    let answered =
        |pi: &mut Pi, id: &str, decision: Decision| match pi.decide(id, &decision).as_slice() {
            [Act::Send(bytes), Act::Tell(Event::Decided { .. })] => {
                String::from_utf8(bytes.clone()).unwrap()
            }
            other => panic!("{other:?}"),
        };
    let yes = answered(&mut pi, "q1", Decision::Allow);
    assert_eq!(yes, "{\"confirmed\":true,\"id\":\"q1\",\"type\":\"extension_ui_response\"}\n");
    assert_eq!(pi.decide("q1", &Decision::Allow), []);
    let text = |text: &str| Decision::Text { text: text.to_owned() };
    let cases = [
        ("confirm", Decision::Deny { why: String::new() }, "\"confirmed\":false"),
        ("select", text("Allow"), "\"value\":\"Allow\""),
        ("select", text("1"), "\"cancelled\":true"),
        ("select", Decision::Allow, "\"cancelled\":true"),
        ("input", text("blue"), "\"value\":\"blue\""),
        ("editor", Decision::Deny { why: String::new() }, "\"cancelled\":true"),
    ];
    for (method, decision, expected) in cases {
        hears(&mut pi, &dialog("q2", method));
        let answer = answered(&mut pi, "q2", decision);
        assert!(answer.contains(expected), "{method}: {answer}");
    }
    assert_eq!(hears(&mut pi, &dialog("q3", "notify")), []);
}

#[test]
fn a_policy_answers_a_dialog_as_far_as_it_can() {
    let with = |mode| pi(Turn { approvals: approvals(mode, &[]), ..turn() });
    let answers = |mode, method| {
        let acts = hears(&mut with(mode), &dialog("q1", method));
        acts.iter().find_map(|act| match act {
            Act::Send(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        })
    };
    assert!(answers(ApprovalMode::Allow, "confirm").unwrap().contains("\"confirmed\":true"));
    assert!(answers(ApprovalMode::Deny, "confirm").unwrap().contains("\"confirmed\":false"));
    assert!(answers(ApprovalMode::Deny, "select").unwrap().contains("\"cancelled\":true"));
    assert_eq!(answers(ApprovalMode::Allow, "select"), None);
    assert_eq!(answers(ApprovalMode::Park, "confirm"), None);
}

#[test]
fn garbage_and_news_are_counted() {
    let mut pi = pi(turn());
    let count = |lines| [Act::Tell(Event::NotUnderstood { lines })];
    assert_eq!(pi.hear(Heard::Line(b"\xff")), count(1));
    assert_eq!(hears(&mut pi, &json!({ "type": "sub_agent_start" })), count(2));
    assert_eq!(pi.hear(Heard::Line(b" ")), []);
}
