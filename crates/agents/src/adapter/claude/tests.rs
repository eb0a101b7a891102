//! What recordings do not show of Claude: messages before it can say that it has them, questions in full.

use serde_json::json;

use super::*;
use crate::adapter::SessionMark;

fn hears(claude: &mut dyn Adapter, message: &Value) -> Vec<Act> {
    claude.hear(Heard::Line(message.to_string().as_bytes()))
}

fn replayed(text: &str) -> Value {
    json!({ "type": "user", "isReplay": true, "message": { "role": "user", "content": [{ "type": "text", "text": text }] } })
}

fn asks(id: &str, input: &Value) -> Value {
    json!({ "type": "control_request", "request_id": id,
        "request": { "subtype": "can_use_tool", "tool_name": "Edit", "input": input } })
}

#[test]
fn a_message_waits_until_it_can_say_that_it_has_it() {
    let mut claude = Claude::new(Turn::default());
    claude.begin();
    assert_eq!(claude.steer(7, "more"), None, "it has not said that the model has the prompt");
    hears(&mut claude, &replayed(""));
    let acts = claude.steer(7, "more").unwrap();
    assert!(matches!(acts.as_slice(), [Act::Send(_)]), "nothing is said to be taken yet");
    let result =
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": "x" });
    assert!(!hears(&mut claude, &result).iter().any(|it| matches!(it, Act::Tell(Event::Ended(_)))));
    assert_eq!(hears(&mut claude, &replayed("more")), [Act::Tell(Event::Took { message: 7 })]);
    assert!(hears(&mut claude, &result).iter().any(|it| matches!(it, Act::Tell(Event::Ended(_)))));
}

#[test]
fn a_question_shows_all_that_would_be_done_and_a_yes_is_for_that_once() {
    let words = |acts: &[Act]| match &acts[0] {
        Act::Tell(Event::Asked(question)) => question.text.clone(),
        other => panic!("not a question: {other:?}"),
    };
    let harmless = json!({ "file_path": "/w/a.py", "new_string": "harmless" });
    let harmful = json!({ "file_path": "/w/a.py", "new_string": "harmful" });
    let mut claude = Claude::new(Turn::default());
    let granted = words(&hears(&mut claude, &asks("r1", &harmless)));
    assert_eq!(granted, "Edit: /w/a.py\n{\"new_string\":\"harmless\"}");
    // The same name again, while the first is open, is no other question.
    let again = hears(&mut claude, &asks("r1", &harmful));
    assert!(matches!(again.as_slice(), [Act::Tell(Event::NotUnderstood { .. })]), "{again:?}");
    let mut turn = Turn::default();
    turn.approvals.granted = vec![granted];
    let mut resumed = Claude::new(turn);
    assert_eq!(hears(&mut resumed, &asks("r1", &harmful)).len(), 1, "a person is asked");
    assert_eq!(hears(&mut resumed, &asks("r2", &harmless)).len(), 3, "it was allowed");
    assert_eq!(hears(&mut resumed, &asks("r3", &harmless)).len(), 1, "it was allowed once");
    let long = json!({ "command": "x".repeat(20_000) });
    let mut turn = Turn::default();
    turn.approvals.granted = vec![words(&hears(&mut claude, &asks("r4", &long)))];
    let mut resumed = Claude::new(turn);
    assert_eq!(
        hears(&mut resumed, &asks("r5", &long)).len(),
        1,
        "what was not shown is not allowed"
    );
}

#[test]
fn a_copy_of_a_conversation_is_resumed_under_a_name_of_its_own() {
    let resumed = Turn { session: Some("s".to_owned()), ..Turn::default() };
    let forked = Turn { fork: Some(SessionMark::default()), ..resumed.clone() };
    let argv = |turn| Claude::new(turn).launch().argv;
    let has = |argv: &[String]| argv.iter().any(|it| it == "--fork-session");
    assert!(!has(&argv(resumed)));
    let argv = argv(forked);
    assert!(has(&argv) && argv.windows(2).any(|it| it == ["--resume", "s"]), "{argv:?}");
}
